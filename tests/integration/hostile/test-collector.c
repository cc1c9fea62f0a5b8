/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's collector of sockets in flight, kept at work by strangers, beside the queues in which our descriptors
 * wait: the fd stash when the keeper is killed, what the keeper hands to the next broker, replies that nobody has read.
 * None may be lost there and none stay behind, whatever others have in flight and peek at (MSG_PEEK).
 *
 * Sockets that only other sockets in flight refer to are collected: a stranger makes rings of them without end, follows
 * one round by peeking while it is looked at, and sees by the end of a pipe that it was collected. make check kills
 * the broker and the keeper some times, and make check-long some hundred times (COLLECTOR=300).
 */
#include "tests/integration/clients.h"
#include "tests/integration/wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"

/* Each keeps a few packets in flight at each death. */
#define NAMED  192
#define MAPPED 32
#define SIZE   4096

#define RING      4
#define STRANGERS 2
/* Replies with a descriptor in each, that nobody reads. */
#define UNREAD 16

#define MEMORY_FILE "/memfd:memoryd-"

struct shared {
    _Atomic bool over;
    _Atomic uint64_t collected; /* rings that were seen to be */
    _Atomic uint64_t peeked;
};

static struct shared *shared;

static unsigned long rounds(void)
{
    const char *text = getenv("COLLECTOR");

    return text ? strtoul(text, NULL, 10) : 8;
}

/* ---- strangers --------------------------------------------------------------------------------------------------- */

/* Peeks at the next socket of the ring and lets go of this one. -1: it has nothing. */
static int next_of_ring(int fd)
{
    char byte;
    struct fd_received received = fd_receive(fd, &byte, 1, 2, MSG_PEEK | MSG_DONTWAIT);
    int next = received.n ? received.fds[0] : -1;

    for (unsigned i = 1; i < received.n; i++)
        close(received.fds[i]);
    close(fd);
    return next;
}

/* Each socket waits in the queue of the one before it, the end of a pipe beside it. Nothing else refers to them but
 * what is returned, a duplicate of the first. */
static int ring_new(int writer)
{
    int here[RING], there[RING], first;

    for (unsigned i = 0; i < RING; i++) {
        int ends[2];

        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        here[i] = ends[0];
        there[i] = ends[1];
    }
    for (unsigned i = 0; i < RING; i++) {
        const int fds[] = {here[(i + 1) % RING], writer};

        CHECK(fd_send(there[i], "", 1, fds, 2, 0) == 1);
    }
    first = fcntl(here[0], F_DUPFD_CLOEXEC, 0);
    CHECK(first >= 0);
    for (unsigned i = 0; i < RING; i++) {
        CHECK(close(here[i]) == 0);
        CHECK(close(there[i]) == 0);
    }
    return first;
}

static void make_rings(int channel, void *context)
{
    become(UID_STRANGER);
    tell(channel);
    while (!atomic_load(&shared->over)) {
        int ends[2], at;

        CHECK(pipe2(ends, O_CLOEXEC) == 0);
        at = ring_new(ends[1]);
        CHECK(close(ends[1]) == 0);
        for (unsigned i = 0; i < 8 * RING && at >= 0; i++) {
            at = next_of_ring(at);
            atomic_fetch_add(&shared->peeked, at >= 0);
        }
        if (at >= 0)
            CHECK(close(at) == 0);
        CHECK(wait_readable(ends[0])); /* its end: nobody has the other any more */
        CHECK(close(ends[0]) == 0);
        atomic_fetch_add(&shared->collected, 1);
    }
}

/* ---- replies in a ring ------------------------------------------------------------------------------------------- */

/* A connection whose client has never read goes into a ring, with descriptors of ours waiting in its queue. The client
 * dies; the collector closes them, and then the connection. */
static void leave_replies_to_the_collector(int channel, void *context)
{
    Memoryd__V1__AllocRequest request = MEMORYD__V1__ALLOC_REQUEST__INIT;
    struct wire wire = {.broker = NULL};
    static struct wire_packet packet;
    uint64_t size = SIZE;
    int ends[2];

    (void)channel;
    wire_open(&wire, context);
    request.n_sizes = 1;
    request.sizes = &size;
    for (unsigned i = 0; i < UNREAD; i++) {
        wire_request(&wire, &packet, METHOD_ALLOC, &request.base);
        wire_send(&wire, &packet);
    }
    CHECK(wait_readable(wire.fd));
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    CHECK(fd_send(ends[1], "", 1, (const int[]){ends[0], wire.fd}, 2, 0) == 1);
}

/* ---- what must stay ---------------------------------------------------------------------------------------------- */

struct kept {
    struct broker_process *broker;
    struct memclient_context *ctx;
    struct memclient_buffer *mapped[MAPPED];
    void *at[MAPPED];
    uint64_t version;
};

static uint64_t seed_of(const struct kept *kept, unsigned i)
{
    return kept->version * (NAMED + MAPPED) + i;
}

static char *name_of(unsigned i)
{
    static char name[32];

    snprintf(name, sizeof(name), "kept/%u", i);
    return name;
}

static void kept_make(struct kept *kept)
{
    struct memclient_name_options policy = MEMCLIENT_NAME_OPTIONS_INIT;
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;
    void *p;

    policy.policy = MEMCLIENT_NAME_KEEP;
    options.name_options = &policy;
    for (unsigned i = 0; i < NAMED; i++) {
        options.name = name_of(i);
        assert_done(memclient_alloc(kept->ctx, SIZE, &options, &buf));
        assert_done(memclient_map(buf, NULL, &p));
        pattern_write(p, SIZE, seed_of(kept, i));
        assert_done(memclient_unmap(kept->ctx, p, 0));
        memclient_buffer_unref(buf);
    }
    for (unsigned i = 0; i < MAPPED; i++) {
        assert_done(memclient_alloc(kept->ctx, SIZE, NULL, &kept->mapped[i]));
        assert_done(memclient_map(kept->mapped[i], NULL, &kept->at[i]));
        pattern_write(kept->at[i], SIZE, seed_of(kept, NAMED + i));
    }
}

/* All is there; and is written anew. */
static void kept_check(struct kept *kept)
{
    struct memclient_buffer *buf;
    void *p;

    for (unsigned i = 0; i < NAMED; i++) {
        assert_done(memclient_open_name(kept->ctx, name_of(i), 0, &buf));
        assert_done(memclient_map(buf, NULL, &p));
        assert_true(pattern_holds(p, SIZE, seed_of(kept, i)));
        pattern_write(p, SIZE, seed_of(kept, i) + NAMED + MAPPED);
        assert_done(memclient_unmap(kept->ctx, p, 0));
        memclient_buffer_unref(buf);
    }
    for (unsigned i = 0; i < MAPPED; i++) {
        int fd;

        assert_true(pattern_holds(kept->at[i], SIZE, seed_of(kept, NAMED + i)));
        pattern_write(kept->at[i], SIZE, seed_of(kept, NAMED + i) + NAMED + MAPPED);
        assert_done(memclient_export_fd(kept->mapped[i], 0, &fd));
        assert_ok(close(fd));
    }
    kept->version++;
}

static void kept_end(struct kept *kept)
{
    for (unsigned i = 0; i < NAMED; i++)
        assert_done(memclient_unbind_name(kept->ctx, name_of(i)));
    memclient_buffer_unref_many(MAPPED, kept->mapped);
}

/* ---- what must not stay ------------------------------------------------------------------------------------------ */

struct descriptors {
    unsigned files; /* of memory */
    unsigned others;
};

struct figures {
    struct descriptors keeper;
    struct descriptors broker;
    unsigned queues; /* descriptors in flight between them, or in the stash */
};

/* Both kinds by one look: what is counted is on its way from one process to the other. */
static struct descriptors descriptors_of(pid_t pid)
{
    struct descriptors has = {0};
    struct dirent *entry;
    char path[64], target[64];
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target));
        bool is_file = size >= (ssize_t)strlen(MEMORY_FILE) && !memcmp(target, MEMORY_FILE, strlen(MEMORY_FILE));

        has.files += is_file;
        has.others += size >= 0 && !is_file;
    }
    if (folder)
        closedir(folder);
    return has;
}

/* The queues of these sockets hold so many descriptors, as the kernel counts them (fdinfo, "scm_fds"). */
static unsigned in_queues_of(pid_t pid)
{
    struct dirent *entry;
    char path[300], line[128];
    unsigned n = 0, one;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, entry->d_name);
        f = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
            n += sscanf(line, "scm_fds: %u", &one) == 1 ? one : 0; /* NOLINT */
        if (f)
            fclose(f);
    }
    if (folder)
        closedir(folder);
    return n;
}

/* Keeper and broker have what is kept, once each. */
static bool have_all(struct broker_process *broker, struct figures *now)
{
    pid_t child = broker_child(broker);

    *now = (struct figures){descriptors_of(broker->pid), descriptors_of(child),
                            in_queues_of(broker->pid) + in_queues_of(child)};
    return now->keeper.files == NAMED + MAPPED && now->broker.files == NAMED + MAPPED && !now->queues;
}

static bool have_no_more(struct broker_process *broker, const struct figures *before, struct figures *now)
{
    return have_all(broker, now) && now->keeper.others <= before->keeper.others &&
           now->broker.others <= before->broker.others;
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static void kill_one(struct kept *kept, unsigned long round)
{
    if (round % 2)
        broker_kill_keeper(kept->broker);
    else
        broker_kill_child(kept->broker);
}

static void I4_the_kernels_collector_takes_nothing_and_leaves_nothing(void **state)
{
    struct kept kept = {.broker = broker_for_test("[pools]\nstock = 0\n")};
    struct child strangers[STRANGERS];
    struct figures before, now;
    uint64_t collected;

    test_needs_root();
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_mapped(shared);
    kept.ctx = broker_connect(kept.broker);
    kept_make(&kept);
    assert_true(WAIT_UNTIL(have_all(kept.broker, &before)));
    for (unsigned i = 0; i < STRANGERS; i++) {
        child_start(&strangers[i], make_rings, NULL);
        child_hear(&strangers[i]);
    }
    for (unsigned long round = 0; round < rounds(); round++) {
        collected = atomic_load(&shared->collected);
        assert_true(WAIT_UNTIL(atomic_load(&shared->collected) > collected));
        child_run(leave_replies_to_the_collector, kept.broker);
        kill_one(&kept, round);
        kept_check(&kept);
        if (!WAIT_UNTIL(have_no_more(kept.broker, &before, &now)))
            fail_msg("round %lu: keeper and broker have %u and %u files of memory and %u and %u other descriptors, and "
                     "%u are in queues; it was %u twice, %u, %u and 0",
                     round, now.keeper.files, now.broker.files, now.keeper.others, now.broker.others, now.queues,
                     before.keeper.files, before.keeper.others, before.broker.others);
        broker_check(kept.broker);
    }
    atomic_store(&shared->over, true);
    for (unsigned i = 0; i < STRANGERS; i++)
        child_finish(&strangers[i]);
    printf("%" PRIu64 " rings were collected, %" PRIu64 " sockets peeked at\n", atomic_load(&shared->collected),
           atomic_load(&shared->peeked));
    kept_end(&kept);
    memclient_context_close(kept.ctx);
    broker_finish(kept.broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I4_the_kernels_collector_takes_nothing_and_leaves_nothing),
    };

    return test_run(tests, NULL, NULL);
}
