/* SPDX-License-Identifier: Apache-2.0 */
/* See attacks.h. */
#include "tests/bench/attacks.h"

#include <errno.h>
#include <grp.h>
#include <memclient/memclient.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "tests/bench/bench.h"
#include "tests/bench/raw.h"
#include "tests/bench/stream.h"

/* Far from the users of other tests. */
#define UID_HOSTILE 61004

enum { EVENTS = 64, BATCHERS = 8, ITEMS = 64, REQUEST_MAX = 1024 };

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void take_processor(const struct attack *attack)
{
    cpu_set_t set;

    bench_must(!setpgid(0, 0), "setpgid");
    CPU_ZERO(&set);
    CPU_SET(attack->processor, &set);
    bench_must(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void become_hostile(const struct attack *attack)
{
    struct rlimit most;

    take_processor(attack);
    bench_must(!getrlimit(RLIMIT_NOFILE, &most), "getrlimit");
    most.rlim_cur = most.rlim_max;
    bench_must(!setrlimit(RLIMIT_NOFILE, &most), "setrlimit");
    bench_must(!setgroups(0, NULL) && !setresgid(UID_HOSTILE, UID_HOSTILE, UID_HOSTILE) &&
                   !setresuid(UID_HOSTILE, UID_HOSTILE, UID_HOSTILE),
               "another user");
    /* which the kernel has forgotten with the uid */
    bench_must(!prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
}

void attack_burn(int line, void *context)
{
    volatile unsigned n = 0;

    take_processor(context);
    line_tell(line);
    for (;;)
        n++;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

struct caller {
    int fd;
    uint64_t sequence, buffer;
};

static bool caller_ask(struct caller *caller, uint16_t method, const ProtobufCMessage *message, int flags)
{
    struct frame_header header = {.method = method, .sequence = caller->sequence + 1, .acknowledged = caller->sequence};
    uint8_t payload[REQUEST_MAX], packet[MEMORYD_HEADER_LONG + REQUEST_MAX];
    size_t size = 0, length;

    if (message)
        bench_must(!envelope_pack(message, payload, sizeof(payload), &size), "packing a request");
    header.payload_length = (uint32_t)size;
    length = frame_encode(packet, FRAME_FROM_CLIENT, &header);
    memcpy(packet + length, payload, size);
    if (send(caller->fd, packet, length + size, MSG_NOSIGNAL | flags) != (ssize_t)(length + size))
        return false;
    caller->sequence++;
    return true;
}

static size_t caller_hear(struct caller *caller, uint8_t reply[MEMORYD_FRAME_MAX])
{
    ssize_t n = recv(caller->fd, reply, MEMORYD_FRAME_MAX, 0);

    bench_must(n >= MEMORYD_HEADER_SIZE, "an attacker's reply");
    return (size_t)n;
}

/* A buffer of its own. */
static void caller_allocate(struct caller *caller)
{
    static uint8_t reply[MEMORYD_FRAME_MAX];
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__Buffers *buffers;
    struct frame_header header;
    const uint8_t *payload;
    uint64_t size = 4096;
    size_t n;

    m.sizes = &size;
    m.n_sizes = 1;
    bench_must(caller_ask(caller, METHOD_ALLOC, &m.base, 0), "an attacker's ALLOC");
    n = caller_hear(caller, reply);
    bench_must(!frame_decode(reply, n, 0, FRAME_FROM_BROKER, &header, &payload) && !header.status, "its reply");
    buffers = memoryd__v1__buffers__unpack(NULL, header.payload_length, payload);
    bench_must(buffers && buffers->n_ids == 1, "its buffer");
    caller->buffer = buffers->ids[0];
    memoryd__v1__buffers__free_unpacked(buffers, NULL);
}

static bool caller_repeat(struct caller *caller, uint16_t method, int flags)
{
    Memoryd__V1__ExportRequest export = MEMORYD__V1__EXPORT_REQUEST__INIT;
    Memoryd__V1__InfoRequest info = MEMORYD__V1__INFO_REQUEST__INIT;
    uint64_t buffers[ITEMS];
    uint32_t rights[ITEMS];

    if (method == METHOD_INFO) {
        info.buffer = caller->buffer;
        return caller_ask(caller, method, &info.base, flags);
    }
    if (method != METHOD_EXPORT)
        return caller_ask(caller, method, NULL, flags);
    for (unsigned i = 0; i < ITEMS; i++) {
        buffers[i] = caller->buffer;
        rights[i] = MEMORYD__V1__RIGHT__RIGHT_READ;
    }
    export.buffers = buffers;
    export.rights = rights;
    export.n_buffers = export.n_rights = ITEMS;
    return caller_ask(caller, method, &export.base, flags);
}

static struct caller *callers_open(const struct attack *attack)
{
    struct caller *callers = calloc(attack->connections, sizeof(*callers));

    bench_must(!!callers, "calloc");
    for (unsigned i = 0; i < attack->connections; i++) {
        callers[i] = (struct caller){.fd = stream_connect(), .sequence = 1};
        if (attack->method == METHOD_INFO || attack->method == METHOD_EXPORT)
            caller_allocate(&callers[i]);
    }
    return callers;
}

void attack_call(int line, void *context)
{
    static uint8_t reply[MEMORYD_FRAME_MAX];
    const struct attack *attack = context;
    struct epoll_event events[EVENTS];
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct caller *callers;

    become_hostile(attack);
    callers = callers_open(attack);
    for (unsigned i = 0; i < attack->connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &callers[i]};

        bench_must(!epoll_ctl(set, EPOLL_CTL_ADD, callers[i].fd, &event), "epoll_ctl");
        for (unsigned n = 0; n < attack->depth; n++)
            bench_must(caller_repeat(&callers[i], attack->method, 0), "an attacker's request");
    }
    line_tell(line);
    for (;;) {
        int n = epoll_wait(set, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            (void)caller_hear(events[i].data.ptr, reply);
            bench_must(caller_repeat(events[i].data.ptr, attack->method, 0), "an attacker's request");
        }
    }
}

void attack_unread(int line, void *context)
{
    const struct attack *attack = context;
    struct caller *callers;

    become_hostile(attack);
    callers = callers_open(attack);
    line_tell(line);
    for (;;)
        for (unsigned i = 0; i < attack->connections; i++)
            (void)caller_repeat(&callers[i], attack->method, MSG_DONTWAIT);
}

void attack_allocate(int line, void *context)
{
    struct memclient_buffer *buffers[ITEMS];
    void *addresses[ITEMS];
    uint64_t sizes[ITEMS];
    struct memclient_context *ctx;

    become_hostile(context);
    for (unsigned i = 0; i < ITEMS; i++)
        sizes[i] = 4096;
    for (unsigned i = 1; i < BATCHERS && fork(); i++)
        ;
    bench_must(!prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
    bench_did(memclient_context_open(NULL, &ctx));
    if (getpid() == getpgrp())
        line_tell(line);
    for (;;) {
        bench_did(memclient_alloc_many(ctx, ITEMS, sizes, NULL, buffers));
        bench_did(memclient_map_many(ITEMS, buffers, NULL, addresses));
        for (unsigned i = 0; i < ITEMS; i++)
            bench_did(memclient_unmap(ctx, addresses[i], sizes[i]));
        memclient_buffer_unref_many(ITEMS, buffers);
    }
}

void attack_destroy(int line, void *context)
{
    static uint8_t reply[MEMORYD_FRAME_MAX];
    const struct attack *attack = context;
    Memoryd__V1__DestroyRequest destroy = MEMORYD__V1__DESTROY_REQUEST__INIT;
    Memoryd__V1__LookupRequest lookup = MEMORYD__V1__LOOKUP_REQUEST__INIT;
    struct caller *callers;

    become_hostile(attack);
    callers = callers_open(attack);
    line_tell(line);
    for (;;) {
        caller_allocate(&callers[0]);
        lookup.id = destroy.buffer = callers[0].buffer;
        for (unsigned i = 1; i < attack->connections; i++)
            bench_must(caller_ask(&callers[i], METHOD_LOOKUP, &lookup.base, 0), "LOOKUP");
        for (unsigned i = 1; i < attack->connections; i++)
            (void)caller_hear(&callers[i], reply);
        bench_must(caller_ask(&callers[0], METHOD_DESTROY, &destroy.base, 0), "DESTROY");
        (void)caller_hear(&callers[0], reply);
    }
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Batches of buffers come and go, and nobody maps them. */
static void watched_allocate(void)
{
    struct memclient_buffer *buffers[ITEMS];
    uint64_t sizes[ITEMS];
    struct memclient_context *ctx;

    bench_must(!prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
    for (unsigned i = 0; i < ITEMS; i++)
        sizes[i] = 4096;
    bench_did(memclient_context_open(NULL, &ctx));
    for (;;) {
        bench_did(memclient_alloc_many(ctx, ITEMS, sizes, NULL, buffers));
        memclient_buffer_unref_many(ITEMS, buffers);
    }
}

void attack_watch(int line, void *context)
{
    static uint8_t packet[MEMORYD_FRAME_MAX];
    const struct attack *attack = context;
    Memoryd__V1__SubscribeRequest all = MEMORYD__V1__SUBSCRIBE_REQUEST__INIT;
    struct caller *callers;

    become_hostile(attack);
    callers = callers_open(attack);
    all.mask = MEMORYD__V1__EVENT_KIND__EVENT_HELD | MEMORYD__V1__EVENT_KIND__EVENT_LEFT |
               MEMORYD__V1__EVENT_KIND__EVENT_DESTROYED;
    for (unsigned i = 0; i < attack->connections; i++) {
        bench_must(caller_ask(&callers[i], METHOD_SUBSCRIBE, &all.base, 0), "SUBSCRIBE");
        (void)caller_hear(&callers[i], packet);
    }
    line_tell(line);
    if (!fork())
        watched_allocate();
    for (;;)
        for (unsigned i = 0; i < attack->connections; i++)
            while (recv(callers[i].fd, packet, sizeof(packet), MSG_DONTWAIT) > 0)
                ;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

void attack_die(int line, void *context)
{
    const struct attack *attack = context;

    become_hostile(attack);
    line_tell(line);
    for (;;) {
        pid_t child = fork();

        bench_must(child >= 0, "fork");
        if (!child) {
            bench_must(!prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
            for (unsigned i = 0; i < attack->connections; i++)
                (void)stream_connect();
            raise(SIGKILL);
        }
        (void)waitpid(child, NULL, 0);
    }
}

static int attack_socket(int flags)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *place = getenv("MEMORYD_SOCKET");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

    bench_must(place && strlen(place) < sizeof(address.sun_path), "MEMORYD_SOCKET");
    bench_must(fd >= 0, "socket");
    memcpy(address.sun_path, place, strlen(place) + 1);
    (void)connect(fd, (struct sockaddr *)&address, sizeof(address));
    return fd;
}

void attack_connect(int line, void *context)
{
    become_hostile(context);
    line_tell(line);
    for (;;)
        close(attack_socket(SOCK_NONBLOCK));
}

static void attack_connect_in_turn(int line, const struct attack *attack, int flags)
{
    int *sockets = calloc(attack->connections, sizeof(*sockets));

    bench_must(!!sockets, "calloc");
    become_hostile(attack);
    for (unsigned i = 0; i < attack->connections; i++)
        sockets[i] = -1;
    line_tell(line);
    for (unsigned i = 0;; i = (i + 1) % attack->connections) {
        if (sockets[i] >= 0)
            close(sockets[i]);
        sockets[i] = attack_socket(flags);
    }
}

void attack_half_open(int line, void *context)
{
    attack_connect_in_turn(line, context, 0);
}

void attack_crowd(int line, void *context)
{
    attack_connect_in_turn(line, context, SOCK_NONBLOCK);
}

void attack_garbage(int line, void *context)
{
    const uint8_t garbage[64] = {7};

    become_hostile(context);
    line_tell(line);
    for (;;) {
        int fd = attack_socket(0);

        (void)send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL);
        close(fd);
    }
}
