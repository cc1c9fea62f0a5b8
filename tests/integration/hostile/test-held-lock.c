/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client holds the lock of the inode of memory that it has: of what it shares with the broker, its release log and
 * hold cache, or of a buffer. Whatever the broker does with that memory, its loop must not want that lock.
 */
#include "tests/integration/clients.h"
#include "tests/integration/hostile/stall.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/hold_cache.h"
#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"

#define TIGHT "[pool tight]\nnodes = 0\ncapacity = 64M\n"
#define ALL   (64 * MIB)
#define SMALL (64 * KIB)
/* More than may be emptied at a time for one user. */
#define HELD 3

static int try_alloc(struct memclient_context *ctx, uint64_t size, struct memclient_buffer **buf)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pool = "tight";
    return memclient_alloc(ctx, size, &options, buf);
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

/* A session with its log, in raw packets: the library closes the log's descriptor. */
static int hello(const char *socket_path, int *ret_log)
{
    static uint8_t packet[MEMORYD_FRAME_MAX];
    Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;
    struct frame_header header = {.method = METHOD_HELLO, .sequence = 1};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct fd_received received;
    size_t size;

    m.version_max = MEMORYD_MINOR_MAX;
    m.release_log = true;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(envelope_pack(&m.base, packet + MEMORYD_HEADER_SIZE, sizeof(packet) - MEMORYD_HEADER_SIZE, &size) == 0);
    header.payload_length = (uint32_t)size;
    CHECK(frame_encode(packet, FRAME_FROM_CLIENT, &header) == MEMORYD_HEADER_SIZE);
    CHECK(fd_send(fd, packet, MEMORYD_HEADER_SIZE + size, NULL, 0, 0) > 0);
    CHECK(wait_readable(fd));
    received = fd_receive(fd, packet, sizeof(packet), 1, 0);
    CHECK(received.n == 1);
    *ret_log = received.fds[0];
    return fd;
}

static void hold_the_log(int channel, void *context)
{
    struct hold_cache *cache;
    struct session_memory *memory;
    struct stall stall;
    int log;

    stall_prepare(&stall);
    become(UID_STRANGER);
    (void)hello(context, &log);
    memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED, log, 0);
    CHECK(memory != MAP_FAILED);
    cache = &memory->cache;
    cache->in_hand = 1; /* the page is there */
    stall_begin(&stall, log, 0);
    tell(channel);
    hear(channel);
    CHECK(__atomic_load_n(&cache->wanted, __ATOMIC_SEQ_CST) == 1);
    stall_end(&stall);
}

static void a_held_log_stops_nobody(void **state)
{
    struct memclient_buffer *all, *more;
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct child child;
    pid_t pid;

    test_needs_root();
    broker = broker_for_test(TIGHT);
    ctx = broker_connect(broker);
    pid = broker_child(broker);
    child_start(&child, hold_the_log, broker->socket);
    child_hear(&child);
    assert_done(try_alloc(ctx, ALL, &all));
    /* no room: every client is told that memory is wanted */
    assert_refused(try_alloc(ctx, MIB, &more), ENOMEM);
    assert_done(memclient_broker_ping(ctx));
    assert_int_equal(broker_child(broker), pid);
    child_tell(&child);
    child_finish(&child);
    memclient_buffer_unref(all);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* ---- a buffer ---------------------------------------------------------------------------------------------------- */

/* A descriptor of this size that the library has of it. */
static int find_memory(off_t size)
{
    struct stat st;

    for (int fd = 3; fd < 1000; fd++) {
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == size &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR)
            return fcntl(fd, F_DUPFD_CLOEXEC, 3);
    }
    CHECK(!"the library has no descriptor");
    return -1;
}

/* The library says that nobody else has it, and knows nothing of what its process does with the descriptor. */
static void hold_cached_buffers(int channel, void *context)
{
    static struct memclient_buffer *bufs[HELD];
    struct stall stalls[HELD];
    struct memclient_context *ctx;
    int fds[HELD];
    void *p;

    for (unsigned i = 0; i < HELD; i++)
        stall_prepare(&stalls[i]);
    become(UID_STRANGER);
    ctx = broker_connect_in_child(context);
    for (unsigned i = 0; i < HELD; i++) {
        uint64_t size = SMALL + i * page_size();

        CHECK_DONE(try_alloc(ctx, size, &bufs[i]));
        CHECK_DONE(memclient_map(bufs[i], NULL, &p));
        fds[i] = find_memory((off_t)size);
        CHECK_DONE(memclient_cache_put(bufs[i]));
        stall_begin(&stalls[i], fds[i], 0);
    }
    tell(channel);
    hear(channel);
    for (unsigned i = 0; i < HELD; i++) {
        CHECK(memclient_cache_is_lost(bufs[i]));
        stall_end(&stalls[i]);
        CHECK(close(fds[i]) == 0);
    }
    tell(channel);
    hear(channel);
    memclient_context_close(ctx);
}

/* The broker takes them from the cache and empties them. Nobody waits for that: neither the loop nor who needs room. */
static void held_buffers_stop_nobody(void **state)
{
    struct memclient_buffer *most, *more = NULL;
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct child child;
    pid_t pid;

    test_needs_root();
    broker = broker_for_test(TIGHT);
    ctx = broker_connect(broker);
    pid = broker_child(broker);
    child_start(&child, hold_cached_buffers, broker->socket);
    child_hear(&child);
    assert_done(try_alloc(ctx, ALL - HELD * (SMALL + HELD * page_size()), &most));
    assert_refused(try_alloc(ctx, HELD * SMALL, &more), ENOMEM);
    assert_refused(try_alloc(ctx, HELD * SMALL, &more), ENOMEM);
    assert_done(memclient_broker_ping(ctx));
    assert_int_equal(broker_child(broker), pid);
    broker_check(broker);
    child_tell(&child);
    child_hear(&child);
    assert_true(WAIT_UNTIL(try_alloc(ctx, HELD * SMALL, &more) == 0));
    child_tell(&child);
    child_finish(&child);
    memclient_buffer_unref(more);
    memclient_buffer_unref(most);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_held_log_stops_nobody),
        at_broker(held_buffers_stop_nobody),
    };

    return test_run(tests, NULL, NULL);
}
