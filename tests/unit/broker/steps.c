/* SPDX-License-Identifier: Apache-2.0 */
/* See steps.h. */
#include "tests/unit/broker/steps.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "broker/events.h"
#include "mem/buffer.h"
#include "mem/name.h"
#include "mem/token.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"
#include "tests/unit/broker/keeper.h"

#define HOUR_MS UINT64_C(3600000)

struct shared *shared;

/* ---- what is done, step by step ---------------------------------------------------------------------------------- */

static void begin_session(void)
{
    shared->sessions[0] = host_session_of(1, keeper_test, getuid());
    memcpy(shared->secret, host.secret, sizeof(shared->secret));
}

static void alloc_small(void)
{
    assert_int_equal(host_alloc(shared->sessions[0], 4096, 0, &shared->buffers[0]), 0);
}

static void alloc_by_worker(void)
{
    assert_int_equal(host_alloc(shared->sessions[0], 200000, 0, &shared->buffers[1]), 0);
}

static void alloc_publishable(void)
{
    assert_int_equal(host_alloc(shared->sessions[0], 65536, BUFFER_PUBLISHABLE, &shared->buffers[2]), 0);
}

static void publish(void)
{
    assert_int_equal(CALL(shared->sessions[0], op_publish, shared->buffers[2], false), 0);
}

static void move(void)
{
    assert_int_equal(CALL(shared->sessions[0], op_move, shared->buffers[1], 2), 0);
}

static void bind_for_good(void)
{
    assert_int_equal(host_bind(shared->sessions[0], shared->buffers[0], "a/keep", NAME_KEEP, 0), 0);
}

static void bind_for_an_hour(void)
{
    assert_int_equal(host_bind(shared->sessions[0], shared->buffers[1], "a/for", NAME_KEEP_FOR, HOUR_MS), 0);
}

static void share(void)
{
    const struct share_args terms = {.rights = RIGHT_READ, .flags = TOKEN_KEEPING, .uses = 3, .expiry_ms = HOUR_MS};

    assert_int_equal(host_share(shared->sessions[0], shared->buffers[0], &terms, shared->token), 0);
}

static void open_by_another(void)
{
    shared->sessions[1] = host_session_of(2, keeper_test, getuid());
    assert_int_equal(host_open(shared->sessions[1], shared->token, RIGHT_READ, NULL), 0);
}

static void reserve(void)
{
    assert_int_equal(CALL(shared->sessions[0], op_reserve, 1 << 20, 0, 0, &shared->reservation, &shared->reserved), 0);
}

static void alloc_without_home(void)
{
    assert_int_equal(host_alloc(shared->sessions[0], 8192, BUFFER_NO_ADDRESS, &shared->buffers[3]), 0);
}

static void place(void)
{
    assert_int_equal(CALL(shared->sessions[0], op_place, shared->buffers[3], shared->reservation, HOME_OFFSET), 0);
}

static void export(void)
{
    (void)fd_close(host_export(shared->sessions[0], shared->buffers[1], RIGHT_READ | RIGHT_WRITE));
    assert_int_equal(host_status, 0);
}

static void subscribe(void)
{
    assert_int_equal(CALL(shared->sessions[0], op_subscribe, EVENT_NAME), 0);
}

static void adopt(void)
{
    _cleanup_close_ int fd = memfd_create("elsewhere", MFD_CLOEXEC);

    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(host_adopt(shared->sessions[0], fd, &shared->buffers[4]), 0);
}

static void release_adopted(void)
{
    assert_int_equal(host_release(shared->sessions[0], shared->buffers[4]), 0);
}

static void release_named(void)
{
    assert_int_equal(host_release(shared->sessions[0], shared->buffers[0]), 0);
}

static void end_another(void)
{
    assert_int_equal(CALL(shared->sessions[1], op_goodbye), 0);
}

static void unbind(void)
{
    assert_int_equal(CALL(shared->sessions[0], op_name_unbind, "a/keep"), 0);
}

static void destroy(void)
{
    assert_int_equal(CALL(shared->sessions[0], op_destroy, shared->buffers[2], false), 0);
}

static void release_placed(void)
{
    assert_int_equal(host_release(shared->sessions[0], shared->buffers[3]), 0);
}

static void end_session(void)
{
    assert_int_equal(CALL(shared->sessions[0], op_goodbye), 0);
}

const struct step steps[] = {
    {begin_session, false},  {alloc_small, false},
    {alloc_by_worker, true}, {alloc_publishable, false},
    {publish, true},         {move, false},
    {bind_for_good, false},  {bind_for_an_hour, false},
    {share, false},          {open_by_another, false},
    {reserve, false},        {alloc_without_home, false},
    {place, false},          {export, false},
    {subscribe, false},      {adopt, false},
    {release_named, false},  {end_another, false},
    {unbind, false},         {destroy, false},
    {release_placed, false}, {release_adopted, false},
    {end_session, false},
};

const unsigned n_steps = sizeof(steps) / sizeof(*steps);

/* So many make the most of everything. */
#define N_FULL 16

void steps_look(struct status_info *status, uint64_t *used)
{
    assert_int_equal(CALL(shared->observer, op_status, status), 0);
    *used = host_used();
}

/* Whether somebody still has what is over the kernel is asked again for a while. */
static bool nothing_is_ending(void)
{
    struct status_info status;
    uint64_t used;

    steps_look(&status, &used);
    return !status.buffers_detached && !status.buffers_ending;
}

void steps_do(void)
{
    shared->observer = host_session_of(9, keeper_test, getuid());
    for (unsigned i = 0; i < shared->n_steps; i++)
        steps[i].fn();
    host_settle();
    assert_true(HOST_UNTIL(nothing_is_ending()));
    steps_look(&shared->status, &shared->used);
    for (unsigned i = 0; i < STEPS_BUFFERS && shared->n_steps == N_FULL; i++)
        assert_int_equal(host_info(shared->sessions[0], shared->buffers[i], &shared->infos[i]), 0);
}

void steps_do_and_die_in_the_next(void)
{
    steps_do();
    host.no_commit = true;
    steps[shared->n_steps].fn();
}

void steps_assert_same(void)
{
    struct status_info status;
    uint64_t used;

    host_settle();
    assert_true(HOST_UNTIL(nothing_is_ending()));
    steps_look(&status, &used);
    assert_int_equal(status.sessions, shared->status.sessions);
    assert_int_equal(status.buffers, shared->status.buffers);
    assert_int_equal(status.buffers_detached, shared->status.buffers_detached);
    assert_int_equal(status.bytes, shared->status.bytes);
    assert_int_equal(status.names, shared->status.names);
    assert_int_equal(status.tokens, shared->status.tokens);
    assert_int_equal(status.reservations, shared->status.reservations);
    assert_int_equal(status.quarantined, 0);
    assert_int_equal(used, shared->used);
    assert_int_equal(host_check(shared->observer), 0);
}

/* A dead broker that had done everything but the ends. */
void steps_run_full(void)
{
    shared->n_steps = N_FULL;
    generation_run(steps_do);
}

int steps_set_up(void **state)
{
    host_reset(3);
    host.grace_ms = PATIENCE_MS; /* nobody resumes the sessions, and all are to be seen */
    if (host_no_pidfds)
        test_skip("there are no pidfds here, so a session does not outlive its broker");
    if (!shared) {
        void *p = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(p, MAP_FAILED);
        shared = p;
    }
    memset(shared, 0, sizeof(*shared));
    return 0;
}

int steps_tear_down(void **state)
{
    kept_unmap();
    generation_forget();
    return 0;
}
