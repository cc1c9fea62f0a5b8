/* SPDX-License-Identifier: Apache-2.0 */
/* See scenarios.h. */
#include "tests/torture/scenarios.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define SIZE (64 * KIB)
#define SEED 77

/* ---- what they have in common ------------------------------------------------------------------------------------ */

static struct memclient_context *join(const struct actor *a)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx;

    options.socket = a->socket;
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    options.deadline_ms = PATIENCE_MS;
    CHECK_DONE(memclient_context_open(&options, &ctx));
    return ctx;
}

static struct memclient_broker_info status(struct actor *a)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;

    CHECK_DONE(memclient_broker_query(a->ctx, &status));
    return status;
}

static struct memclient_buffer_info info(struct memclient_buffer *buf)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

    CHECK_DONE(memclient_buffer_query(buf, &info));
    return info;
}

static void make(struct actor *a, unsigned flags, const char *name)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.flags = flags;
    options.name = name;
    CHECK_DONE(memclient_alloc(a->ctx, SIZE, &options, &a->buf));
    a->id = memclient_buffer_id(a->buf);
}

static void make_and_fill(struct actor *a, unsigned flags, const char *name)
{
    make(a, flags, name);
    CHECK_DONE(memclient_map(a->buf, NULL, &a->address));
    pattern_write(a->address, SIZE, SEED);
}

static void just_a_buffer(struct actor *a)
{
    make(a, 0, NULL);
}

static void a_full_buffer(struct actor *a)
{
    make_and_fill(a, 0, NULL);
}

static void nothing(struct actor *a)
{
    (void)a;
}

static void unmap_and_drop(struct actor *a)
{
    CHECK_DONE(memclient_unmap(a->ctx, a->address, 0));
    a->buf = memclient_buffer_unref(a->buf);
}

static void drop(struct actor *a)
{
    a->buf = memclient_buffer_unref(a->buf);
}

/* The other session has got a buffer of this one, with one claim: it ends with one release. */
static void verify_that_the_other_has_it(struct actor *a)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *p;

    options.flags = MEMCLIENT_MAP_NOT_HOME;
    CHECK(memclient_buffer_id(a->bufs[0]) == a->id);
    CHECK(info(a->buf).holds == 2);
    CHECK_DONE(memclient_map(a->bufs[0], &options, &p));
    CHECK(pattern_holds(p, SIZE, SEED));
    CHECK_DONE(memclient_unmap(a->other, p, 0));
    a->bufs[0] = memclient_buffer_unref(a->bufs[0]);
    CHECK_DONE(memclient_broker_ping(a->other));
    CHECK(info(a->buf).holds == 1);
    CHECK(pattern_holds(a->address, SIZE, SEED));
}

/* ---- the session ------------------------------------------------------------------------------------------------- */

/* In a process of its own: a session whose HELLO was done and never answered ends with its process. */
static void act_hello(struct actor *a)
{
    struct memclient_context *ctx;
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        ctx = join(a);
        CHECK_DONE(memclient_broker_ping(ctx));
        memclient_context_close(ctx);
        _exit(EXIT_SUCCESS);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void prepare_goodbye(struct actor *a)
{
    a->third = join(a);
    CHECK_DONE(memclient_alloc(a->third, SIZE, NULL, &a->buf));
}

static void act_goodbye(struct actor *a)
{
    memclient_context_close(a->third);
}

static void act_ping(struct actor *a)
{
    CHECK_DONE(memclient_broker_ping(a->ctx));
}

static void act_subscribe(struct actor *a)
{
    CHECK_DONE(memclient_event_subscribe(a->ctx, MEMCLIENT_EVENT_NAME));
}

static bool comes(struct memclient_context *ctx, unsigned kind)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    int r;

    CHECK_DONE(memclient_broker_ping(ctx));
    do
        r = memclient_event_next(ctx, &event);
    while (r == 0 && event.kind != kind);
    return r == 0;
}

static void verify_subscribe(struct actor *a)
{
    make(a, 0, "matrix/subscribed");
    CHECK(WAIT_UNTIL(comes(a->ctx, MEMCLIENT_EVENT_NAME)));
    CHECK_DONE(memclient_unbind_name(a->ctx, "matrix/subscribed"));
    CHECK_DONE(memclient_event_subscribe(a->ctx, 0));
    while (comes(a->ctx, MEMCLIENT_EVENT_NAME))
        ;
    drop(a);
}

static void act_subscribe_to(struct actor *a)
{
    CHECK_DONE(memclient_event_subscribe_buffer(a->ctx, memclient_buffer_id(a->buf), MEMCLIENT_EVENT_DESTROYED));
}

/* Another broker learns of it when the session is resumed, which is before the reply to this ping. */
static void verify_subscribe_to(struct actor *a)
{
    CHECK_DONE(memclient_broker_ping(a->ctx));
    CHECK_DONE(memclient_destroy_id(a->ctx, memclient_buffer_id(a->buf), 0));
    CHECK(WAIT_UNTIL(comes(a->ctx, MEMCLIENT_EVENT_DESTROYED)));
    drop(a);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static void act_alloc(struct actor *a)
{
    const uint64_t sizes[3] = {SIZE, 4 * SIZE, SIZE};

    CHECK_DONE(memclient_alloc_many(a->ctx, 3, sizes, NULL, a->bufs));
}

static void verify_alloc(struct actor *a)
{
    struct memclient_broker_info now = status(a);

    CHECK(now.buffers == a->before.buffers + 3);
    CHECK(now.bytes == a->before.bytes + 6 * SIZE);
    for (size_t i = 0; i < 3; i++) {
        void *p;

        CHECK(info(a->bufs[i]).holds == 1);
        CHECK_DONE(memclient_map(a->bufs[i], NULL, &p));
        CHECK(all_zero(p, memclient_buffer_size(a->bufs[i])));
        pattern_write(p, SIZE, SEED);
        CHECK_DONE(memclient_unmap(a->ctx, p, 0));
        a->bufs[i] = memclient_buffer_unref(a->bufs[i]);
    }
}

/* A program that shares what it allocates gets the token along. */
static void prepare_alloc_shared(struct actor *a)
{
    for (unsigned i = 0; i < 8; i++) {
        struct memclient_token token;

        make(a, 0, NULL);
        CHECK_DONE(memclient_share(a->buf, NULL, &token));
        drop(a);
    }
    CHECK_DONE(memclient_broker_ping(a->ctx));
}

static void act_alloc_shared(struct actor *a)
{
    make_and_fill(a, 0, NULL);
}

static void verify_alloc_shared(struct actor *a)
{
    struct memclient_token token;

    CHECK(info(a->buf).tokens == 1);
    CHECK_DONE(memclient_share(a->buf, NULL, &token));
    CHECK(info(a->buf).tokens == 1);
    CHECK_DONE(memclient_open_token(a->other, &token, 0, &a->bufs[0]));
    verify_that_the_other_has_it(a);
    unmap_and_drop(a);
}

static void act_alloc_named(struct actor *a)
{
    make(a, 0, "matrix/alloc");
}

static void verify_alloc_named(struct actor *a)
{
    CHECK(info(a->buf).names == 1);
    CHECK(status(a).buffers == a->before.buffers + 1);
    CHECK_DONE(memclient_unbind_name(a->ctx, "matrix/alloc"));
    drop(a);
}

static int add_ready(const struct memclient_pool_info *pool, void *data)
{
    *(uint64_t *)data += pool->stock_ready;
    return 0;
}

static uint64_t ready(struct actor *a)
{
    uint64_t bytes = 0;

    CHECK_DONE(memclient_list_pools(a->ctx, add_ready, &bytes));
    return bytes;
}

/* Only SIZE is asked for so often that there is some; the next one comes from it. */
static void prepare_alloc_ready(struct actor *a)
{
    while (!ready(a)) {
        make(a, 0, NULL);
        drop(a);
        CHECK_DONE(memclient_broker_ping(a->ctx));
        usleep(1000);
    }
}

static void verify_alloc_ready(struct actor *a)
{
    void *p;

    CHECK(status(a).buffers == a->before.buffers + 1);
    CHECK(status(a).bytes == a->before.bytes + SIZE);
    CHECK(info(a->buf).holds == 1);
    CHECK_DONE(memclient_map(a->buf, NULL, &p));
    CHECK(all_zero(p, SIZE));
    pattern_write(p, SIZE, SEED);
    CHECK_DONE(memclient_unmap(a->ctx, p, 0));
    drop(a);
}

/* The last call sees that it has arrived. */
static void act_release(struct actor *a)
{
    drop(a);
    CHECK_DONE(memclient_broker_ping(a->ctx));
}

/* So many that it takes several turns. */
static void prepare_release_many(struct actor *a)
{
    const uint64_t sizes[] = {SIZE, SIZE, SIZE};

    CHECK_DONE(memclient_alloc_many(a->ctx, 3, sizes, NULL, a->bufs));
}

static void act_release_many(struct actor *a)
{
    memclient_buffer_unref_many(3, a->bufs);
    CHECK_DONE(memclient_broker_ping(a->ctx));
}

static void act_export(struct actor *a)
{
    CHECK_DONE(memclient_export_fd(a->buf, MEMCLIENT_READ, &a->fd));
}

static void verify_export(struct actor *a)
{
    void *p = map_shared(a->fd, SIZE, PROT_READ);

    CHECK(p != MAP_FAILED);
    CHECK((fcntl(a->fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    CHECK(pattern_holds(p, SIZE, SEED));
    CHECK(munmap(p, SIZE) == 0);
    close(a->fd);
    unmap_and_drop(a);
}

static void prepare_import(struct actor *a)
{
    make_and_fill(a, 0, NULL);
    CHECK_DONE(memclient_export_fd(a->buf, 0, &a->fd));
}

static void act_import(struct actor *a)
{
    CHECK_DONE(memclient_import_fd(a->other, a->fd, &a->bufs[0]));
}

static void verify_import(struct actor *a)
{
    close(a->fd);
    verify_that_the_other_has_it(a);
    unmap_and_drop(a);
}

static void prepare_adopt(struct actor *a)
{
    void *p;

    a->fd = memfd_create("memoryd-adopted", MFD_CLOEXEC); /* so that it is looked for */
    CHECK(a->fd >= 0 && ftruncate(a->fd, SIZE) == 0);
    p = map_shared(a->fd, SIZE, PROT_READ | PROT_WRITE);
    CHECK(p != MAP_FAILED);
    pattern_write(p, SIZE, SEED);
    CHECK(munmap(p, SIZE) == 0);
}

static void act_adopt(struct actor *a)
{
    CHECK_DONE(memclient_adopt_fd(a->ctx, a->fd, &a->buf));
}

/* As a program does that closes what it does not know: the library asks for another socket to the door. It is the one
 * without a name that is not of the test program. */
static void act_door(struct actor *a)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_un name;
        struct ucred peer;
        socklen_t size = sizeof(name), n = sizeof(peer);

        if (!getpeername(fd, (struct sockaddr *)&name, &size) && size == sizeof(name.sun_family) &&
            !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && peer.pid != getppid())
            close(fd);
    }
    act_adopt(a);
}

/* One, however often it was asked for. */
static void verify_adopt(struct actor *a)
{
    void *p;

    close(a->fd);
    CHECK(status(a).buffers == a->before.buffers + 1);
    CHECK(status(a).bytes == a->before.bytes);
    CHECK_DONE(memclient_export_fd(a->buf, 0, &a->fd));
    p = map_shared(a->fd, SIZE, PROT_READ);
    CHECK(p != MAP_FAILED);
    CHECK(pattern_holds(p, SIZE, SEED));
    CHECK(munmap(p, SIZE) == 0);
    close(a->fd);
    drop(a);
}

static void prepare_open(struct actor *a)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;

    make_and_fill(a, 0, NULL);
    options.uses = 2;
    CHECK_DONE(memclient_share(a->buf, &options, &a->token));
}

static void act_open(struct actor *a)
{
    CHECK_DONE(memclient_open_token(a->other, &a->token, 0, &a->bufs[0]));
}

/* One of two uses is left. */
static void verify_open(struct actor *a)
{
    struct memclient_buffer *again;

    verify_that_the_other_has_it(a);
    CHECK_DONE(memclient_open_token(a->other, &a->token, 0, &again));
    memclient_buffer_unref(again);
    CHECK_REFUSED(memclient_open_token(a->other, &a->token, 0, &again), EKEYEXPIRED);
    unmap_and_drop(a);
}

static void prepare_lookup(struct actor *a)
{
    make_and_fill(a, 0, "matrix/lookup");
}

static void act_lookup(struct actor *a)
{
    CHECK_DONE(memclient_open_name(a->other, "matrix/lookup", 0, &a->bufs[0]));
}

static void verify_lookup(struct actor *a)
{
    verify_that_the_other_has_it(a);
    CHECK_DONE(memclient_unbind_name(a->ctx, "matrix/lookup"));
    unmap_and_drop(a);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* With terms, so that the library has none ready. */
static void act_share(struct actor *a)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;

    options.uses = 2;
    CHECK_DONE(memclient_share(a->buf, &options, &a->token));
}

static void verify_share(struct actor *a)
{
    CHECK(info(a->buf).tokens == 1);
    CHECK_DONE(memclient_open_token(a->other, &a->token, 0, &a->bufs[0]));
    verify_that_the_other_has_it(a);
    CHECK_DONE(memclient_revoke_token(a->ctx, &a->token));
    CHECK(info(a->buf).tokens == 0);
    unmap_and_drop(a);
}

static void prepare_revoke(struct actor *a)
{
    make(a, 0, NULL);
    CHECK_DONE(memclient_share(a->buf, NULL, &a->token));
}

static void act_revoke(struct actor *a)
{
    CHECK_DONE(memclient_revoke_token(a->ctx, &a->token));
}

static void verify_revoked(struct actor *a)
{
    CHECK(info(a->buf).tokens == 0);
    CHECK_REFUSED(memclient_open_token(a->other, &a->token, 0, &a->bufs[0]), EKEYREVOKED);
}

static void verify_revoke(struct actor *a)
{
    verify_revoked(a);
    drop(a);
}

/* More than one turn of the loop takes away. */
static void prepare_many_tokens(struct actor *a)
{
    make_and_fill(a, 0, "matrix/destroy");
    for (unsigned i = 0; i < 40; i++)
        act_share(a);
}

static void act_revoke_all(struct actor *a)
{
    CHECK_DONE(memclient_revoke_all_tokens(a->buf));
}

static void verify_revoke_all(struct actor *a)
{
    verify_revoked(a);
    CHECK_DONE(memclient_unbind_name(a->ctx, "matrix/destroy"));
    unmap_and_drop(a);
}

/* ---- what is done to buffers ------------------------------------------------------------------------------------- */

static void prepare_publish(struct actor *a)
{
    make_and_fill(a, MEMCLIENT_ALLOC_PUBLISHABLE, NULL);
}

static void act_publish(struct actor *a)
{
    CHECK_DONE(memclient_publish(a->buf, 0));
}

static void verify_publish(struct actor *a)
{
    CHECK(info(a->buf).flags & MEMCLIENT_BUFFER_PUBLISHED);
    CHECK_REFUSED(memclient_export_fd(a->buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &a->fd), EROFS);
    CHECK_DONE(memclient_export_fd(a->buf, MEMCLIENT_READ, &a->fd));
    CHECK(fcntl(a->fd, F_GET_SEALS) & F_SEAL_WRITE);
    close(a->fd);
    CHECK(pattern_holds(a->address, SIZE, SEED));
    unmap_and_drop(a);
}

static void act_discard(struct actor *a)
{
    CHECK_DONE(memclient_discard(a->buf, SIZE / 2, 0));
}

static void verify_discard(struct actor *a)
{
    CHECK(pattern_holds(a->address, SIZE / 2, SEED));
    CHECK(all_zero((char *)a->address + SIZE / 2, SIZE / 2));
    CHECK(info(a->buf).bytes == SIZE);
    CHECK(status(a).bytes == a->before.bytes + SIZE);
    unmap_and_drop(a);
}

static void prepare_move(struct actor *a)
{
    a_full_buffer(a);
    CHECK_DONE(memclient_move(a->buf, 0));
}

static void act_move(struct actor *a)
{
    CHECK_DONE(memclient_move(a->buf, 1));
}

static void verify_move(struct actor *a)
{
    struct memclient_buffer_info moved = info(a->buf);

    CHECK(moved.n_nodes == 1 && moved.nodes[0] == 1 && moved.node_bytes[0] == SIZE);
    CHECK(pattern_holds(a->address, SIZE, SEED));
    unmap_and_drop(a);
}

static void prepare_destroy(struct actor *a)
{
    make_and_fill(a, 0, "matrix/destroy");
}

static void act_destroy(struct actor *a)
{
    CHECK_DONE(memclient_destroy_id(a->ctx, a->id, 0));
}

static void act_destroy_by_force(struct actor *a)
{
    CHECK_DONE(memclient_destroy_id(a->ctx, a->id, MEMCLIENT_DESTROY_FORCE));
}

static void verify_destroy(struct actor *a)
{
    CHECK_REFUSED(memclient_open_name(a->other, "matrix/destroy", 0, &a->bufs[0]), ENOENT);
    CHECK_REFUSED(memclient_open_id(a->other, a->id, 0, &a->bufs[0]), ESTALE);
    CHECK(pattern_holds(a->address, SIZE, SEED));
    unmap_and_drop(a);
}

static void verify_destroy_with_tokens(struct actor *a)
{
    CHECK_REFUSED(memclient_open_token(a->other, &a->token, 0, &a->bufs[0]), ESTALE);
    verify_destroy(a);
}

static void verify_destroy_by_force(struct actor *a)
{
    CHECK_REFUSED(memclient_open_name(a->other, "matrix/destroy", 0, &a->bufs[0]), ENOENT);
    CHECK(all_zero(a->address, SIZE));
    unmap_and_drop(a);
}

static void act_info(struct actor *a)
{
    CHECK(info(a->buf).id == a->id);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void act_bind(struct actor *a)
{
    CHECK_DONE(memclient_bind_name(a->buf, "matrix/bind", NULL));
}

static void verify_bind(struct actor *a)
{
    CHECK(info(a->buf).names == 1);
    CHECK(status(a).names == a->before.names + 1);
    CHECK_REFUSED(memclient_bind_name(a->buf, "matrix/bind", NULL), EEXIST);
    CHECK_DONE(memclient_unbind_name(a->ctx, "matrix/bind"));
    CHECK(info(a->buf).names == 0);
    drop(a);
}

static void prepare_unbind(struct actor *a)
{
    make(a, 0, "matrix/unbind");
}

static void act_unbind(struct actor *a)
{
    CHECK_DONE(memclient_unbind_name(a->ctx, "matrix/unbind"));
}

static void verify_unbind(struct actor *a)
{
    CHECK(info(a->buf).names == 0);
    CHECK_REFUSED(memclient_unbind_name(a->ctx, "matrix/unbind"), ENOENT);
    drop(a);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static void act_reserve(struct actor *a)
{
    CHECK_DONE(memclient_reserve(a->ctx, SIZE, NULL, &a->reservation));
}

static void release_reservation(struct actor *a)
{
    CHECK_DONE(memclient_reservation_release(a->reservation));
}

static void verify_reserve(struct actor *a)
{
    CHECK(status(a).reservations == a->before.reservations + 1);
    release_reservation(a);
}

static void act_unreserve(struct actor *a)
{
    release_reservation(a);
    CHECK_DONE(memclient_broker_ping(a->ctx));
}

static void verify_unreserve(struct actor *a)
{
    CHECK(status(a).reservations == a->before.reservations);
}

static void prepare_place(struct actor *a)
{
    make(a, MEMCLIENT_ALLOC_NO_HOME, NULL);
    act_reserve(a);
}

static void act_place(struct actor *a)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

    options.address = memclient_reservation_address(a->reservation);
    CHECK_DONE(memclient_map(a->buf, &options, &a->address));
}

static void verify_place(struct actor *a)
{
    CHECK(a->address == memclient_reservation_address(a->reservation));
    CHECK(info(a->buf).address == (uintptr_t)a->address);
    pattern_write(a->address, SIZE, SEED);
    unmap_and_drop(a);
    release_reservation(a);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static void act_status(struct actor *a)
{
    CHECK(status(a).sessions == a->before.sessions);
}

static void act_check(struct actor *a)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;

    CHECK_DONE(memclient_broker_check(a->ctx, &result));
    CHECK(result.faults == 0);
}

static void act_upgrade(struct actor *a)
{
    CHECK_DONE(memclient_broker_upgrade(a->ctx));
}

static void verify_upgrade(struct actor *a)
{
    CHECK(WAIT_UNTIL(status(a).broker_pid != a->before.broker_pid));
    CHECK(status(a).keeper_pid == a->before.keeper_pid);
    CHECK(pattern_holds(a->address, SIZE, SEED));
    unmap_and_drop(a);
}

static void act_reload(struct actor *a)
{
    struct memclient_reload_result result = MEMCLIENT_RELOAD_RESULT_INIT;

    CHECK_DONE(memclient_broker_reload(a->ctx, &result));
    CHECK(result.n_lines == 0);
}

static void prepare_lists(struct actor *a)
{
    make(a, 0, "matrix/lists");
    act_share(a);
    act_reserve(a);
    a->counted = 0;
}

/* Each sees what there is, once. */
#define LISTING(name, type)                                                 \
    static int see_##name(const struct type *item, void *data)              \
    {                                                                       \
        (void)item;                                                         \
        ++*(uint64_t *)data;                                                \
        return 0;                                                           \
    }                                                                       \
    static void act_list_##name(struct actor *a)                            \
    {                                                                       \
        a->counted = 0;                                                     \
        CHECK_DONE(memclient_list_##name(a->ctx, see_##name, &a->counted)); \
    }
LISTING(nodes, memclient_node_info)
LISTING(pools, memclient_pool_info)
LISTING(buffers, memclient_buffer_info)
LISTING(sessions, memclient_session_info)
LISTING(reservations, memclient_reservation_info)
LISTING(names, memclient_name_info)
LISTING(tokens, memclient_token_info)
LISTING(limits, memclient_limit_info)

static int see_history(const struct memclient_history_entry *item, void *data)
{
    (void)item;
    ++*(uint64_t *)data;
    return 0;
}

/* Something was refused before. */
static void act_list_history(struct actor *a)
{
    a->counted = 0;
    CHECK_DONE(memclient_list_history(a->ctx, 0, see_history, &a->counted));
}

static void act_select_buffers(struct actor *a)
{
    struct memclient_select_options options = MEMCLIENT_SELECT_OPTIONS_INIT;
    struct memclient_buffer_sums sums = MEMCLIENT_BUFFER_SUMS_INIT;

    options.most = 20;
    a->counted = 0;
    CHECK_DONE(memclient_select_buffers(a->ctx, &options, &sums, see_buffers, &a->counted));
    CHECK(sums.buffers == 1);
}

static void prepare_history(struct actor *a)
{
    struct memclient_buffer *none;

    prepare_lists(a);
    CHECK(memclient_alloc(a->ctx, UINT64_C(1) << 50, NULL, &none) < 0);
}

static void take_apart(struct actor *a)
{
    CHECK_DONE(memclient_revoke_token(a->ctx, &a->token));
    CHECK_DONE(memclient_unbind_name(a->ctx, "matrix/lists"));
    release_reservation(a);
    drop(a);
}

static void verify_some(struct actor *a)
{
    CHECK(a->counted >= 1);
    take_apart(a);
}

static void verify_one(struct actor *a)
{
    CHECK(a->counted == 1);
    take_apart(a);
}

static void verify_sessions(struct actor *a)
{
    CHECK(a->counted == a->before.sessions);
    take_apart(a);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

const struct scenario scenarios[] = {
    {METHOD_HELLO, NULL, nothing, act_hello, nothing},
    {METHOD_GOODBYE, NULL, prepare_goodbye, act_goodbye, nothing},
    {METHOD_PING, NULL, nothing, act_ping, nothing},
    {METHOD_SUBSCRIBE, NULL, nothing, act_subscribe, verify_subscribe},
    {METHOD_DOOR, NULL, prepare_adopt, act_door, verify_adopt},
    {METHOD_SUBSCRIBE_TO, NULL, just_a_buffer, act_subscribe_to, verify_subscribe_to},
    {METHOD_ALLOC, NULL, nothing, act_alloc, verify_alloc},
    {METHOD_ALLOC, "with a token", prepare_alloc_shared, act_alloc_shared, verify_alloc_shared},
    {METHOD_ALLOC, "with a name", nothing, act_alloc_named, verify_alloc_named},
    {METHOD_ALLOC, "from stock", prepare_alloc_ready, just_a_buffer, verify_alloc_ready},
    {METHOD_RELEASE, NULL, just_a_buffer, act_release, nothing},
    {METHOD_RELEASE, "of a batch", prepare_release_many, act_release_many, nothing},
    {METHOD_EXPORT, NULL, a_full_buffer, act_export, verify_export},
    {METHOD_IMPORT, NULL, prepare_import, act_import, verify_import},
    {METHOD_ADOPT, NULL, prepare_adopt, act_adopt, verify_adopt},
    {METHOD_OPEN, NULL, prepare_open, act_open, verify_open},
    {METHOD_LOOKUP, NULL, prepare_lookup, act_lookup, verify_lookup},
    {METHOD_SHARE, NULL, a_full_buffer, act_share, verify_share},
    {METHOD_REVOKE, NULL, prepare_revoke, act_revoke, verify_revoke},
    {METHOD_REVOKE, "of all", prepare_many_tokens, act_revoke_all, verify_revoke_all},
    {METHOD_PUBLISH, NULL, prepare_publish, act_publish, verify_publish},
    {METHOD_DISCARD, NULL, a_full_buffer, act_discard, verify_discard},
    {METHOD_MOVE, NULL, prepare_move, act_move, verify_move},
    {METHOD_DESTROY, NULL, prepare_destroy, act_destroy, verify_destroy},
    {METHOD_DESTROY, "by force", prepare_destroy, act_destroy_by_force, verify_destroy_by_force},
    {METHOD_DESTROY, "with many tokens", prepare_many_tokens, act_destroy, verify_destroy_with_tokens},
    {METHOD_INFO, NULL, just_a_buffer, act_info, drop},
    {METHOD_NAME_BIND, NULL, just_a_buffer, act_bind, verify_bind},
    {METHOD_NAME_UNBIND, NULL, prepare_unbind, act_unbind, verify_unbind},
    {METHOD_RESERVE, NULL, nothing, act_reserve, verify_reserve},
    {METHOD_UNRESERVE, NULL, act_reserve, act_unreserve, verify_unreserve},
    {METHOD_PLACE, NULL, prepare_place, act_place, verify_place},
    {METHOD_STATUS, NULL, nothing, act_status, nothing},
    {METHOD_CHECK, NULL, nothing, act_check, nothing},
    {METHOD_UPGRADE, NULL, a_full_buffer, act_upgrade, verify_upgrade},
    {METHOD_RELOAD, NULL, nothing, act_reload, nothing},
    {METHOD_LIST_NODES, NULL, prepare_lists, act_list_nodes, verify_some},
    {METHOD_LIST_POOLS, NULL, prepare_lists, act_list_pools, verify_some},
    {METHOD_LIST_BUFFERS, NULL, prepare_lists, act_list_buffers, verify_one},
    {METHOD_LIST_SESSIONS, NULL, prepare_lists, act_list_sessions, verify_sessions},
    {METHOD_LIST_RESERVATIONS, NULL, prepare_lists, act_list_reservations, verify_one},
    {METHOD_LIST_NAMES, NULL, prepare_lists, act_list_names, verify_one},
    {METHOD_LIST_TOKENS, NULL, prepare_lists, act_list_tokens, verify_one},
    {METHOD_LIST_HISTORY, NULL, prepare_history, act_list_history, verify_some},
    {METHOD_LIST_LIMITS, NULL, prepare_lists, act_list_limits, verify_some},
    {METHOD_SELECT_BUFFERS, NULL, prepare_lists, act_select_buffers, verify_one},
};
const size_t n_scenarios = sizeof(scenarios) / sizeof(scenarios[0]);
