/* SPDX-License-Identifier: Apache-2.0 */
/* The test's loop: poll() over workers, watch and processes, and one deadline. */
#include "tests/unit/broker/host.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/survey.h"
#include "mem/pool.h"
#include "sys/numa.h"
#include "sys/peer.h"
#include "sys/sys.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "work/turn.h"
#include "work/work.h"

struct host host;
const char *host_sentence = "";
int host_status;
struct opened_item host_opened;
bool host_accepts_foreign;

static void on_event(void *userdata, void *connection, const struct broker_event *event)
{
    struct host_event *mine;

    (void)userdata;
    assert_non_null(connection);
    if (host.n_events == 64)
        return;
    mine = &host.events[host.n_events++];
    mine->event = *event;
    mine->connection = connection;
    (void)snprintf(mine->pool, sizeof(mine->pool), "%s", event->pool ? event->pool : "");
    (void)snprintf(mine->name, sizeof(mine->name), "%s", event->name ? event->name : "");
}

static void on_disconnect(void *userdata, void *connection)
{
    (void)userdata;
    if (host.n_disconnected < 64)
        host.disconnected[host.n_disconnected++] = connection;
}

static int on_watch_process(void *userdata, uint64_t session, uid_t uid, int pidfd)
{
    (void)userdata;
    assert_true(host.n_watched < HOST_WATCHED_MAX);
    host.watched[host.n_watched].session = session;
    host.watched[host.n_watched++].pidfd = pidfd;
    return 0;
}

static void on_unwatch_process(void *userdata, uint64_t session)
{
    (void)userdata;
    for (unsigned i = 0; i < host.n_watched; i++) {
        if (host.watched[i].session == session) {
            host.watched[i] = host.watched[--host.n_watched];
            return;
        }
    }
    fail_msg("session %llu was not watched", (unsigned long long)session);
}

static void on_schedule(void *userdata, uint64_t in_ms)
{
    (void)userdata;
    host.due_set = true;
    host.due = deadline_after_ms(in_ms);
}

/* As if each operation were another user's. */
static void on_take_turn(void *userdata, struct user_task *task, uid_t uid)
{
    (void)uid;
    assert_null(task->user);
    task->user = userdata;
    list_append(&host.turns, &task->task.link);
}

static void on_give_up_turn(void *userdata, struct user_task *task)
{
    (void)userdata;
    list_remove(&task->task.link);
    task->user = NULL;
}

int host_no_lease(int fd, int type)
{
    errno = EINVAL;
    return -1;
}

void host_take_turns(void)
{
    struct list turns = LIST_INIT(turns);
    struct list *link;

    list_splice(&turns, &host.turns);
    while ((link = list_pop(&turns))) {
        struct user_task *task = container_of(link, struct user_task, task.link);

        task->user = NULL;
        task->run(task);
        broker_commit(host.broker);
    }
}

static void on_connection_info(void *userdata, void *connection, struct connection_info *ret)
{
    (void)userdata;
    (void)connection;
    *ret = (struct connection_info){.fds_in_flight = 1, .queued_bytes = 2, .requests = 3};
}

static const char *on_crowded(void *userdata, void *connection)
{
    return NULL;
}

static bool on_is_left(void *userdata)
{
    return false;
}

static const struct broker_host callbacks = {
    .crowded = on_crowded,
    .is_left = on_is_left,
    .userdata = &host,
    .take_turn = on_take_turn,
    .give_up_turn = on_give_up_turn,
    .event = on_event,
    .disconnect = on_disconnect,
    .watch_process = on_watch_process,
    .unwatch_process = on_unwatch_process,
    .schedule = on_schedule,
    .connection_info = on_connection_info,
};

/* It goes on without a keeper, if only for a while. */
static void orphaned(void *userdata)
{
    (void)userdata;
}

void host_turn(int timeout_ms)
{
    static const struct keeper_link_events events = {.orphaned = orphaned};
    struct pollfd fds[2 + HOST_WATCHED_MAX];
    uint64_t sessions[HOST_WATCHED_MAX];
    unsigned n = 2, n_sessions = host.n_watched;
    uint64_t now = clock_now_ns();

    fds[0] = (struct pollfd){.fd = work_fd(host.work), .events = POLLIN};
    fds[1] = (struct pollfd){.fd = broker_watch_fd(host.broker), .events = POLLIN};
    for (unsigned i = 0; i < n_sessions; i++) {
        sessions[i] = host.watched[i].session;
        fds[n++] = (struct pollfd){.fd = host.watched[i].pidfd, .events = POLLIN};
    }
    if (host.due_set) {
        int until = deadline_poll_ms(host.due, now);

        if (until >= 0 && until < timeout_ms)
            timeout_ms = until;
    }
    if (!list_is_empty(&host.turns))
        timeout_ms = 0;
    if (poll(fds, n, timeout_ms) < 0)
        assert_int_equal(errno, EINTR);
    if (fds[0].revents) {
        assert_int_equal(work_dispatch(host.work), 0);
        broker_commit(host.broker);
    }
    assert_int_equal(keeper_link_dispatch(host.keeper, &events, NULL), 0);
    broker_commit(host.broker);
    if (fds[1].revents)
        assert_int_equal(broker_watch_ready(host.broker), 0);
    broker_deaths_ready(host.broker);
    for (unsigned i = 0; i < n_sessions; i++)
        if (fds[2 + i].revents)
            assert_int_equal(broker_session_exited(host.broker, sessions[i]), 0);
    host_take_turns();
    if (host.due_set && deadline_passed(host.due, clock_now_ns())) {
        host.due_set = false;
        assert_int_equal(broker_tick(host.broker), 0);
    }
}

/* Quiet: no job, and nothing comes any more for a moment. */
void host_settle(void)
{
    int64_t end = wait_now_ms() + PATIENCE_MS;
    int64_t quiet = wait_now_ms();

    while (wait_now_ms() < end) {
        struct pollfd watch = {.fd = broker_watch_fd(host.broker), .events = POLLIN};
        bool busy = work_pending(host.work) || !list_is_empty(&host.turns) || poll(&watch, 1, 0) > 0 ||
                    (host.due_set && deadline_passed(host.due, clock_now_ns() + NSEC_PER_MSEC));

        if (busy)
            quiet = wait_now_ms();
        else if (wait_now_ms() - quiet > 3)
            return;
        host_turn(1);
    }
    fail_msg("the broker does not come to rest");
}

/* As they come from the keeper. */
static struct survey *survey_of_things(void)
{
    struct survey *survey = survey_begin(host.n_inherited);

    for (size_t i = 0; i < host.n_inherited; i++) {
        host.inherited[i].nth = (uint32_t)i;
        survey_add(survey, host.inherited[i].key.kind == KEEPER_BUFFER ? host.inherited[i].fd : -1);
    }
    return survey;
}

void host_try_start(void)
{
    const struct pools_config pools = {
        .capacity = {.bytes = host.pool_bytes},
        .stock = host.stock,
        .huge_stock = host.stock,
        .base_pages = !host.pages_by_size,
    };
    struct problem problem = PROBLEM_NULL;

    host.topology = calloc(1, sizeof(*host.topology));
    assert_non_null(host.topology);
    assert_int_equal(topology_load(host.topology, host.nodes), 0);
    if (pools_new(&host.pools, host.topology, &pools, &problem))
        fail_msg("pools: %s", problem.sentence);
    assert_int_equal(work_new(&host.work, 1), 0);
    host.options = (struct broker_options){
        .topology = host.topology,
        .pools = host.pools,
        .work = host.work,
        .limits = &host.limits,
        .host = &callbacks,
        .arena_base = UINT64_C(0x566000000000),
        .arena_size = UINT64_C(128) << 30,
        .grace_ms = host.grace_ms,
        .groups_root = host.groups_root,
        .uid = getuid(),
        .keeper = host.keeper,
        .inherited = host.inherited,
        .n_inherited = host.n_inherited,
        .survey = survey_of_things(),
    };
    if (host.arena_base)
        host.options.arena_base = host.arena_base;
    host_status = broker_new(&host.broker, &host.options);
}

void host_start(void)
{
    host_try_start();
    assert_int_equal(host_status, 0);
}

void host_stop(void)
{
    if (host.broker)
        host_take_apart(host.broker);
    host.broker = NULL;
    assert_int_equal(work_pending(host.work), 0);
    host.work = work_free(host.work);
    /* What the broker had is given back in full: nothing of its pools is used. */
    for (uint32_t i = 0; i < pools_count(host.pools); i++) {
        assert_int_equal(tally_used(&pools_get(host.pools, i)->bytes), 0);
        assert_int_equal(pools_get(host.pools, i)->bytes.in[TALLY_STOCK], 0);
    }
    host.pools = pools_free(host.pools);
    free(host.topology);
    assert_int_equal(host.n_watched, 0);
}

void host_no_limits(struct account_limits *limits)
{
    *limits = (struct account_limits){.by_descriptors = false};
    for (unsigned i = 0; i < ACCOUNT_SLOTS; i++)
        limits->user[i] = limits->session[i] = ACCOUNT_NO_LIMIT;
}

/* valgrind knows no pidfds: something that can be polled takes their place, and nobody is ever seen to die. */
bool host_no_pidfds;

static int no_pidfd_open(pid_t pid, unsigned flags)
{
    (void)pid;
    (void)flags;
    return eventfd(0, EFD_CLOEXEC);
}

static void find_out_about_pidfds(void)
{
    static struct sys_calls calls;
    int fd = sys_kernel.pidfd_open(getpid(), 0);

    sys = &sys_kernel;
    host_no_pidfds = fd < 0 && errno == ENOSYS;
    if (host_no_pidfds) {
        calls = sys_kernel;
        calls.pidfd_open = no_pidfd_open;
        sys = &calls;
    }
    (void)fd_close(fd);
}

void host_reset(uint32_t nodes)
{
    memset(&host, 0, sizeof(host));
    list_init(&host.turns);
    host.nodes = nodes;
    host.pool_bytes = HOST_POOL_BYTES;
    find_out_about_pidfds();
    host.grace_ms = 20;
    host_no_limits(&host.limits);
    assert_int_equal(sigaction(SIGIO, &(struct sigaction){.sa_handler = SIG_IGN}, NULL), 0);
}

static int setup(uint32_t nodes, uint64_t pool_bytes)
{
    host_reset(nodes);
    host.pool_bytes = pool_bytes;
    host_start();
    return 0;
}

int host_setup(void **state)
{
    return setup(0, HOST_POOL_BYTES);
}

int host_setup_stock(void **state)
{
    host_reset(0);
    host.stock = (struct pool_capacity){.percent = 25};
    host_start();
    return 0;
}

int host_setup_large(void **state)
{
    return setup(0, HOST_LARGE_BYTES);
}

int host_setup_nodes(void **state)
{
    return setup(3, HOST_POOL_BYTES);
}

int host_teardown(void **state)
{
    host_stop();
    return 0;
}

static void call_done(struct op *op, int status)
{
    struct call *call = (struct call *)op;

    assert_false(call->ended);
    call->ended = true;
    call->status = status;
}

void call_init(struct call *call, uint64_t session)
{
    memset(call, 0, sizeof(*call));
    call->op.broker = host.broker;
    call->op.session = session;
    call->op.done = call_done;
}

int call_finish(struct call *call, int r)
{
    assert_true(r >= 0);
    if (!host.no_commit)
        broker_commit(host.broker);
    if (r != OP_PENDING && r != OP_SETTLING)
        call->status = r;
    else
        assert_true(HOST_UNTIL(call->ended));
    if (call->status && !call->op.problem.sentence[0])
        fail_msg("refused with status %d, and no sentence", call->status);
    return call->status;
}

uint64_t host_session_of(uintptr_t connection, pid_t pid, uid_t uid)
{
    struct peer peer = PEER_NULL;
    struct hello_args args = {.connection = (void *)connection, .program = "test"};
    struct hello_result result;
    struct call call;

    assert_int_equal(peer_init_pid(&peer, pid), 0);
    peer.uid = uid;
    args.peer = &peer;
    call_init(&call, 0);
    assert_int_equal(call_finish(&call, op_hello(&call.op, &args, &result)), 0);
    assert_int_equal(peer.pidfd, -1);
    peer_deinit(&peer);
    memcpy(host.secret, result.secret, sizeof(host.secret));
    return result.session;
}

uint64_t host_session(uintptr_t connection)
{
    return host_session_of(connection, getpid(), getuid());
}

int host_alloc(uint64_t session, uint64_t size, uint32_t flags, uint64_t *ret)
{
    struct alloc_spec args = {.n = 1, .sizes = {size}, .memory.flags = flags};
    static struct opened result;
    int r;

    memset(&result, 0, sizeof(result));
    r = CALL(session, op_alloc, &args, &result);
    if (!r) {
        assert_int_equal(result.n, 1);
        assert_int_equal(result.items[0].status, 0);
        *ret = result.items[0].id;
    }
    fdset_deinit(&result.fds);
    return r;
}

void host_open_fds(uint64_t session, struct opened *opened, struct fdset *ret)
{
    static struct fd_list list;
    struct statuses statuses = {.n = 0};
    struct call call;
    int r;

    fdset_init(ret);
    fd_list_init(&list, session);
    for (uint32_t i = 0; i < opened->n && opened->with_fds; i++)
        if (!opened->items[i].status)
            fd_list_add(&list, opened->items[i].id, opened->items[i].rights);
    call_init(&call, session);
    do
        r = op_open_fds(&call.op, &list, &opened->fds, &statuses, ret);
    while (r == OP_PENDING);
    assert_int_equal(r, 0);
    fdset_deinit(&opened->fds);
    assert_int_equal(fdset_count(ret), list.n);
}

int host_open_release_log(uint64_t session)
{
    struct fd_list list = {.session = session, .n = 1, .release_log = true};
    struct statuses statuses = {.n = 0};
    struct fdset fds = FDSET_NULL;

    assert_int_equal(CALL(session, op_open_fds, &list, NULL, &statuses, &fds), 0);
    return fdset_steal(&fds, 0);
}

int host_export(uint64_t session, uint64_t buffer, uint32_t rights)
{
    struct export_args args = {.buffers = {.n = 1, .id = {buffer}}, .rights = {rights}};
    struct fd_list list = {.session = session, .n = 1, .items = {{buffer, rights}}};
    struct statuses result = {.n = 0}, opened = {.n = 0};
    struct fdset fds = FDSET_NULL;

    assert_int_equal(CALL(session, op_export, &args, &result), 0);
    assert_int_equal(result.n, 1);
    host_status = result.status[0];
    if (host_status)
        return -1;
    assert_int_equal(CALL(session, op_open_fds, &list, NULL, &opened, &fds), 0);
    assert_int_equal(opened.status[0], 0);
    return fdset_steal(&fds, 0);
}

int host_release(uint64_t session, uint64_t buffer)
{
    struct ids ids = {.n = 1, .id = {buffer}};
    struct statuses result = {.n = 0};

    assert_int_equal(CALL(session, op_release, &ids, &result), 0);
    return result.status[0];
}

/* As the door shows it. */
int host_import(uint64_t session, int fd, uint64_t *ret)
{
    struct problem problem = PROBLEM_NULL;
    struct handle_shown shown;
    static struct opened result;
    int r = handle_show(fd, geteuid(), &shown, &problem);

    if (r)
        return r;
    memset(&result, 0, sizeof(result));
    assert_int_equal(CALL(session, op_import, &shown, 1, &result), 0);
    if (!result.items[0].status && ret)
        *ret = result.items[0].id;
    host_opened = result.items[0];
    return result.items[0].status;
}

int host_adopt(uint64_t session, int fd, uint64_t *ret)
{
    static struct opened result;
    int r;

    memset(&result, 0, sizeof(result));
    r = CALL(session, op_adopt, fd, &result);
    host_opened = result.items[0];
    if (!r)
        *ret = result.items[0].id;
    return r;
}

int host_share(uint64_t session, uint64_t buffer, const struct share_args *terms, uint8_t token[32])
{
    struct share_args args = *terms;
    struct share_result result;

    args.buffers = (struct ids){.n = 1, .id = {buffer}};
    assert_int_equal(CALL(session, op_share, &args, &result), 0);
    if (!result.status[0])
        memcpy(token, result.tokens[0], 32);
    return result.status[0];
}

static int open_first(uint64_t session, struct opened *opened)
{
    struct fdset fds;

    host_open_fds(session, opened, &fds);
    return fdset_steal(&fds, 0);
}

int host_open(uint64_t session, const uint8_t token[32], uint32_t rights, int *ret_fd)
{
    static struct open_args args;
    static struct opened result;

    args = (struct open_args){.n = 1, .rights = rights, .want_fds = ret_fd != NULL, .foreign = host_accepts_foreign};
    memcpy(args.tokens[0], token, 32);
    memset(&result, 0, sizeof(result));
    assert_int_equal(CALL(session, op_open, &args, &result), 0);
    host_opened = result.items[0];
    if (ret_fd)
        *ret_fd = open_first(session, &result);
    return result.items[0].status;
}

int host_bind(uint64_t session, uint64_t buffer, const char *name, uint32_t policy, uint64_t keep_ms)
{
    struct name_args args = {.buffer = buffer, .policy = policy, .keep_ms = keep_ms};

    (void)snprintf(args.name, sizeof(args.name), "%s", name);
    return CALL(session, op_name_bind, &args);
}

int host_lookup(uint64_t session, const char *name, uint64_t id, uint32_t rights, int *ret_fd)
{
    struct lookup_args args = {.id = id, .rights = rights, .want_fd = ret_fd != NULL, .foreign = host_accepts_foreign};
    static struct opened result;
    int r;

    memset(&result, 0, sizeof(result));
    (void)snprintf(args.name, sizeof(args.name), "%s", name ? name : "");
    r = CALL(session, op_lookup, &args, &result);
    host_opened = result.items[0];
    if (ret_fd)
        *ret_fd = r ? -1 : open_first(session, &result);
    return r;
}

int host_info(uint64_t session, uint64_t buffer, struct buffer_info *info)
{
    return CALL(session, op_info, buffer, info);
}

uint64_t host_used(void)
{
    uint64_t used = 0;

    for (uint32_t i = 0; i < pools_count(host.pools); i++)
        used += tally_used(&pools_get(host.pools, i)->bytes);
    return used;
}

uint64_t host_stock(void)
{
    uint64_t stock = 0;

    for (uint32_t i = 0; i < pools_count(host.pools); i++)
        stock += pools_get(host.pools, i)->bytes.in[TALLY_STOCK];
    return stock;
}

uint32_t host_check(uint64_t admin)
{
    struct check_result result = {.faults = 0};

    assert_int_equal(CALL(admin, op_check, &result), 0);
    for (uint32_t i = 0; i < result.n_sentences; i++)
        print_error("check: %s\n", result.sentences[i]);
    return result.faults;
}
