/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that ask for descriptors, as many and as fast as they can, and read no reply. What waits for them costs the
 * broker no descriptor, and the kernel little memory; other users get theirs; and when they read at last, nothing is
 * missing.
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/status.h"
#include "tests/integration/wire.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

#define REQUESTS 400
#define ITEMS    MEMORYD_BATCH_MAX
#define CROWD    8
/* With so few, 1024 are in flight to all users together. */
#define FEW_FILES 4096
/* Of so few buffers that the loop makes them itself, one request after the other. */
#define ALLOCATIONS 60
#define SMALL       16
/* What the broker may have open meanwhile: a packet of each user that is being sent, and a few of its own. */
#define OPEN_MAX_MORE (2 * MEMORYD_FDS_MAX + 16)
/* So many turns of the loop, at least, since each answers one PING. In each it reads 16 packets of another client. */
#define TURNS (REQUESTS / 16 + 5)

/* Without a stock, which has descriptors of its own. */
#define CONFIG "[pools]\nstock = 0\n"

static struct broker_process broker;

/* Of the broker. */
static unsigned open_files(void)
{
    char path[64];
    unsigned n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)broker_child(&broker));
    dir = opendir(path);
    if (!dir)
        test_skip("this user may not see what the broker has open: %s", strerror(errno));
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

struct user {
    uid_t uid;
    struct child child;
};

static void connect_as(int channel, void *context)
{
    const struct user *user = context;
    char byte;

    if (user->uid)
        become(user->uid);
    while (recv(channel, &byte, 1, 0) == 1) {
        int fd = raw_connect_in_child(&broker);

        CHECK(fd_send_one(channel, fd) == 1);
        close(fd);
    }
}

/* Its connections are made by a process of its own. */
static void user_start(struct user *user, uid_t uid)
{
    user->uid = uid;
    child_start(&user->child, connect_as, user);
}

static void user_connect(struct user *user, struct wire *wire)
{
    Memoryd__V1__HelloRequest m = MEMORYD__V1__HELLO_REQUEST__INIT;
    const Memoryd__V1__HelloReply *hello;

    *wire = (struct wire){.broker = &broker};
    child_tell(&user->child);
    wire->fd = fd_receive_one(user->child.channel);
    assert_ok(wire->fd);
    m.version_max = MEMORYD_MINOR_MAX;
    hello = wire_do(wire, METHOD_HELLO, &m.base, STATUS_OK);
    wire->session = hello->session;
}

static void make_alloc(struct wire *wire, struct wire_packet *packet, unsigned n, uint32_t flags)
{
    Memoryd__V1__AllocRequest m = MEMORYD__V1__ALLOC_REQUEST__INIT;
    uint64_t sizes[ITEMS];

    for (unsigned i = 0; i < n; i++)
        sizes[i] = 4096;
    m.sizes = sizes;
    m.n_sizes = n;
    m.flags = flags;
    wire_request(wire, packet, METHOD_ALLOC, &m.base);
}

static void allocate(struct wire *wire, uint64_t ids[ITEMS])
{
    static struct wire_packet packet;
    const Memoryd__V1__Buffers *buffers;

    make_alloc(wire, &packet, ITEMS, 0);
    buffers = wire_message(wire_call(wire, &packet));
    assert_int_equal(buffers->n_ids, ITEMS);
    memcpy(ids, buffers->ids, ITEMS * sizeof(ids[0]));
}

static void make_export(struct wire *wire, struct wire_packet *packet, uint64_t ids[ITEMS])
{
    Memoryd__V1__ExportRequest m = MEMORYD__V1__EXPORT_REQUEST__INIT;
    uint32_t rights[ITEMS];

    for (unsigned i = 0; i < ITEMS; i++)
        rights[i] = MEMORYD__V1__RIGHT__RIGHT_READ;
    m.buffers = ids;
    m.rights = rights;
    m.n_buffers = m.n_rights = ITEMS;
    wire_request(wire, packet, METHOD_EXPORT, &m.base);
}

static void send_release(struct wire *wire, struct wire_packet *packet, uint64_t id)
{
    Memoryd__V1__ReleaseRequest m = MEMORYD__V1__RELEASE_REQUEST__INIT;

    m.buffers = &id;
    m.n_buffers = 1;
    wire_request(wire, packet, METHOD_RELEASE, &m.base);
    wire_send(wire, packet);
}

/* Of everybody. */
static uint64_t buffers_of(struct wire *wire)
{
    const Memoryd__V1__StatusReply *status = wire_do(wire, METHOD_STATUS, NULL, STATUS_OK);

    return status->buffers;
}

/* Served so far, of everybody. */
static uint64_t requests_of(struct wire *wire)
{
    const Memoryd__V1__StatusReply *status = wire_do(wire, METHOD_STATUS, NULL, STATUS_OK);

    return status->requests;
}

static bool is_there(struct wire *wire, uint64_t id)
{
    Memoryd__V1__InfoRequest m = MEMORYD__V1__INFO_REQUEST__INIT;
    static struct wire_packet packet;
    struct wire_packet *reply;

    m.buffer = id;
    wire_request(wire, &packet, METHOD_INFO, &m.base);
    reply = wire_call(wire, &packet);
    return reply->status != STATUS_STALE;
}

/* ---- the attack -------------------------------------------------------------------------------------------------- */

struct attack {
    struct wire wire;
    struct wire_packet request;
    unsigned sent;
};

/* As many of its requests as the socket takes. */
static void attack_send(struct attack *attack, unsigned n)
{
    uint8_t bytes[MEMORYD_HEADER_LONG + 1024];

    while (attack->sent < n) {
        struct frame_header header = {.method = attack->request.method,
                                      .payload_length = (uint32_t)attack->request.size,
                                      .sequence = attack->request.sequence + attack->sent};
        size_t size = frame_encode(bytes, FRAME_FROM_CLIENT, &header);

        assert_true(size + attack->request.size <= sizeof(bytes));
        memcpy(bytes + size, attack->request.payload, attack->request.size);
        if (fd_send(attack->wire.fd, bytes, size + attack->request.size, NULL, 0, MSG_DONTWAIT) < 0) {
            assert_int_equal(errno, EAGAIN);
            return;
        }
        attack->sent++;
    }
}

/* Reads all replies, in any order, and sends what is left meanwhile. Each has all its descriptors. */
static void attack_read(struct attack *attack, unsigned n, unsigned n_fds)
{
    static struct wire_packet reply;
    bool heard[REQUESTS] = {false};

    for (unsigned i = 0; i < n; i++) {
        uint64_t nth;

        attack_send(attack, n);
        assert_true(wire_receive(&attack->wire, &reply));
        assert_int_equal(reply.status, STATUS_OK);
        nth = reply.sequence - attack->request.sequence;
        assert_true(nth < n && !heard[nth]);
        heard[nth] = true;
        assert_int_equal(reply.n_fds, n_fds);
        wire_close_fds(&reply);
    }
    attack->wire.sequence = attack->request.sequence + n;
}

static void a_client_that_reads_nothing_has_no_descriptors_open(void **state)
{
    static struct attack attack;
    struct wire witness;
    uint64_t ids[ITEMS];
    unsigned before;

    broker_start(&broker, CONFIG, 2048);
    wire_open(&attack.wire, &broker);
    wire_open(&witness, &broker);
    allocate(&attack.wire, ids);
    make_export(&attack.wire, &attack.request, ids);
    before = open_files();
    attack.sent = 0;
    for (unsigned i = 0; i < TURNS; i++) {
        attack_send(&attack, REQUESTS);
        (void)wire_do(&witness, METHOD_PING, NULL, STATUS_OK);
        assert_in_range(open_files(), 0, before + OPEN_MAX_MORE);
    }
    attack_read(&attack, REQUESTS, ITEMS);
    wire_close(&attack.wire);
    wire_close(&witness);
    broker_stop(&broker);
}

static void what_is_allocated_and_not_read_is_open_once(void **state)
{
    static struct attack attack;
    struct wire witness;
    unsigned before;

    broker_start(&broker, CONFIG, 8192);
    wire_open(&attack.wire, &broker);
    wire_open(&witness, &broker);
    make_alloc(&attack.wire, &attack.request, SMALL, MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS);
    before = open_files();
    attack.sent = 0;
    attack_send(&attack, ALLOCATIONS);
    assert_true(WAIT_UNTIL(buffers_of(&witness) == ALLOCATIONS * SMALL));
    assert_in_range(open_files(), 0, before + ALLOCATIONS * SMALL + OPEN_MAX_MORE);
    attack_read(&attack, ALLOCATIONS, SMALL);
    wire_close(&attack.wire);
    wire_close(&witness);
    broker_stop(&broker);
}

static void I7_other_users_get_their_descriptors_meanwhile(void **state)
{
    static struct attack attacks[CROWD];
    static struct wire_packet packet;
    struct user attacker, victim;
    uint64_t ids[ITEMS];
    struct wire good;
    unsigned before;

    test_needs_root();
    broker_start_as(&broker, CONFIG, UID_BROKER);
    user_start(&attacker, UID_STRANGER);
    user_start(&victim, UID_STRANGER + 1);
    user_connect(&victim, &good);
    for (unsigned i = 0; i < CROWD; i++) {
        user_connect(&attacker, &attacks[i].wire);
        allocate(&attacks[i].wire, ids);
        make_export(&attacks[i].wire, &attacks[i].request, ids);
        attacks[i].sent = 0;
    }
    allocate(&good, ids);
    before = open_files();
    for (unsigned i = 0; i < TURNS; i++) {
        struct wire_packet *reply;

        for (unsigned j = 0; j < CROWD; j++)
            attack_send(&attacks[j], REQUESTS);
        make_export(&good, &packet, ids);
        reply = wire_call(&good, &packet);
        assert_int_equal(reply->status, STATUS_OK);
        assert_int_equal(reply->n_fds, ITEMS);
        wire_close_fds(reply);
        assert_in_range(open_files(), 0, before + OPEN_MAX_MORE);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        attack_read(&attacks[i], REQUESTS, ITEMS);
        wire_close(&attacks[i].wire);
    }
    wire_close(&good);
    child_kill(&attacker.child);
    child_kill(&victim.child);
    broker_stop(&broker);
}

/* So much of what was sent to it has it not received. */
static uint64_t unread_by(const struct attack *attack)
{
    int bytes;

    assert_ok(ioctl(attack->wire.fd, FIONREAD, &bytes));
    return (uint64_t)bytes;
}

/* However many connections a user has, little is in the buffers of their sockets, which nobody's limits know of. */
static void I7_what_a_user_leaves_unread_is_bounded(void **state)
{
    enum { MANY = 32, MOST = 1 << 20 };
    static struct attack attacks[MANY];
    struct user attacker, victim;
    uint64_t ids[ITEMS], unread = 0;
    struct wire good;
    uint64_t before;
    unsigned n;

    test_needs_root();
    broker_start_as(&broker, CONFIG "[limits]\nuid_queued_bytes = 1M\n", UID_BROKER);
    user_start(&attacker, UID_STRANGER);
    user_start(&victim, UID_STRANGER + 1);
    user_connect(&victim, &good);
    for (unsigned i = 0; i < MANY; i++) {
        user_connect(&attacker, &attacks[i].wire);
        if (!i)
            allocate(&attacks[i].wire, ids);
        wire_request(&attacks[i].wire, &attacks[i].request, METHOD_LIST_BUFFERS, NULL);
        attacks[i].sent = 0;
    }
    attack_send(&attacks[0], 1);
    assert_true(wait_readable(attacks[0].wire.fd));
    n = (unsigned)((MOST + MOST / 8) / MANY / unread_by(&attacks[0]));
    assert_in_range(n, 2, REQUESTS);
    before = requests_of(&good);
    for (unsigned i = 0; i < MANY; i++)
        attack_send(&attacks[i], n);
    assert_true(WAIT_UNTIL(requests_of(&good) >= before + MANY * n));
    for (unsigned i = 0; i < MANY; i++)
        unread += unread_by(&attacks[i]);
    assert_in_range(unread, 0, MOST);
    /* and nothing is missing when they read it */
    for (unsigned i = 0; i < MANY; i++)
        attack_read(&attacks[i], n, 0);
    assert_false(broker_said(&broker, "disconnected"));
    for (unsigned i = 0; i < MANY; i++)
        wire_close(&attacks[i].wire);
    wire_close(&good);
    child_kill(&attacker.child);
    child_kill(&victim.child);
    broker_stop(&broker);
}

/*
 * Each of several users has as many descriptors in flight as it may have, and receives none: there are some left for
 * another one, and nobody had to be disconnected for that.
 */
static void I7_users_leave_descriptors_in_flight_to_others(void **state)
{
    enum { USERS = 3, CLIENTS = 3 };
    static struct attack attacks[USERS][CLIENTS];
    static struct wire_packet packet;
    struct user users[USERS], victim;
    struct wire_packet *reply;
    uint64_t ids[ITEMS];
    struct wire good;

    test_needs_root();
    broker_start_as_with_nofile(&broker, CONFIG "[limits]\nuid_share = 50%\n", UID_BROKER, FEW_FILES);
    for (unsigned i = 0; i < USERS; i++) {
        user_start(&users[i], UID_STRANGER + i);
        for (unsigned j = 0; j < CLIENTS; j++) {
            struct attack *attack = &attacks[i][j];

            user_connect(&users[i], &attack->wire);
            allocate(&attack->wire, ids);
            make_export(&attack->wire, &attack->request, ids);
            attack->sent = 0;
        }
    }
    user_start(&victim, UID_STRANGER + USERS);
    user_connect(&victim, &good);
    allocate(&good, ids);
    for (unsigned i = 0; i < USERS; i++)
        for (unsigned j = 0; j < CLIENTS; j++)
            attack_send(&attacks[i][j], 2 * MEMORYD_UNACKNOWLEDGED_MAX);
    for (unsigned i = 0; i < TURNS; i++)
        (void)wire_do(&good, METHOD_PING, NULL, STATUS_OK);
    make_export(&good, &packet, ids);
    reply = wire_call(&good, &packet);
    assert_int_equal(reply->status, STATUS_OK);
    assert_int_equal(reply->n_fds, ITEMS);
    wire_close_fds(reply);
    assert_false(broker_said(&broker, "disconnected"));
    wire_close(&good);
    for (unsigned i = 0; i < USERS; i++) {
        for (unsigned j = 0; j < CLIENTS; j++)
            wire_lose(&attacks[i][j].wire);
        child_kill(&users[i].child);
    }
    child_kill(&victim.child);
    broker_stop(&broker);
}

/* Whoever has taken them: the reply is not lost, others are served, and it leaves when there are some again. */
static void a_reply_waits_for_the_brokers_descriptors(void **state)
{
    static struct wire_packet packet, reply;
    struct rlimit had, none;
    struct wire wire, witness;
    uint64_t ids[ITEMS];

    broker_start(&broker, CONFIG, 0);
    wire_open(&wire, &broker);
    wire_open(&witness, &broker);
    allocate(&wire, ids);
    make_export(&wire, &packet, ids);
    assert_ok(prlimit(broker_child(&broker), RLIMIT_NOFILE, NULL, &had));
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = had.rlim_max};
    assert_ok(prlimit(broker_child(&broker), RLIMIT_NOFILE, &none, NULL));
    wire_send(&wire, &packet);
    assert_true(WAIT_UNTIL(broker_said(&broker, "its reply waits for descriptors")));
    (void)wire_do(&witness, METHOD_PING, NULL, STATUS_OK);
    assert_true(stays_quiet(wire.fd));
    assert_ok(prlimit(broker_child(&broker), RLIMIT_NOFILE, &had, NULL));
    assert_true(wire_receive(&wire, &reply));
    assert_int_equal(reply.status, STATUS_OK);
    assert_int_equal(reply.n_fds, ITEMS);
    wire_close_fds(&reply);
    wire_close(&wire);
    wire_close(&witness);
    broker_stop(&broker);
}

/* ---- what happens to a buffer while its descriptor waits --------------------------------------------------------- */

/* So few are in flight that the second reply waits. */
#define ONE_PACKET CONFIG "[limits]\nsession_fds_in_flight = 64\n"

static void I4_a_release_behind_an_export_is_done_before_it_leaves(void **state)
{
    static struct wire_packet packet, reply;
    const Memoryd__V1__Statuses *statuses;
    struct wire wire, witness;
    uint64_t ids[2][ITEMS];

    broker_start(&broker, ONE_PACKET, 0);
    wire_open(&wire, &broker);
    wire_open(&witness, &broker);
    allocate(&wire, ids[0]);
    allocate(&wire, ids[1]);
    for (unsigned i = 0; i < 2; i++) {
        make_export(&wire, &packet, ids[i]);
        wire_send(&wire, &packet);
    }
    send_release(&wire, &packet, ids[1][5]);
    /* nobody has ever had it */
    assert_true(WAIT_UNTIL(!is_there(&witness, ids[1][5])));
    assert_true(wire_receive(&wire, &reply));
    assert_int_equal(reply.n_fds, ITEMS);
    wire_close_fds(&reply);
    assert_true(wire_receive(&wire, &reply));
    assert_int_equal(reply.status, STATUS_OK);
    assert_int_equal(reply.n_fds, ITEMS - 1);
    wire_close_fds(&reply);
    statuses = wire_message(&reply);
    assert_int_equal(statuses->n_statuses, ITEMS);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(statuses->statuses[i], i == 5 ? STATUS_STALE : STATUS_OK);
    assert_non_null(strstr(statuses->sentence, "has ended"));
    assert_true(wire_receive(&wire, &reply));
    assert_int_equal(reply.method, METHOD_RELEASE);
    assert_int_equal(reply.status, STATUS_OK);
    wire_close(&wire);
    wire_close(&witness);
    broker_stop(&broker);
}

/* The replies that wait are lost with their broker. The next one has kept them, and opens descriptors anew. */
static void replies_that_waited_are_repeated_whole(void **state)
{
    static struct wire_packet packets[4], reply;
    const Memoryd__V1__Buffers *buffers;
    uint64_t first[4] = {0};
    struct wire wire, witness;

    broker_start(&broker, ONE_PACKET, 0);
    wire_open(&wire, &broker);
    for (unsigned i = 0; i < 4; i++) {
        make_alloc(&wire, &packets[i], ITEMS, MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS);
        wire_send(&wire, &packets[i]);
    }
    assert_true(wait_readable(wire.fd));
    for (unsigned lost = 0; lost < 2; lost++) {
        broker_kill_child(&broker);
        wire_lose(&wire);
        wire_resume(&wire);
        wire_open(&witness, &broker);
        for (unsigned i = 0; i < 4; i++)
            wire_send(&wire, &packets[i]);
        for (unsigned i = 0; i < 4; i++) {
            uint64_t *id;

            assert_true(wire_receive(&wire, &reply));
            assert_int_equal(reply.status, STATUS_OK);
            assert_int_equal(reply.n_fds, ITEMS);
            wire_close_fds(&reply);
            buffers = wire_message(&reply);
            assert_in_range(reply.sequence, packets[0].sequence, packets[3].sequence);
            id = &first[reply.sequence - packets[0].sequence];
            assert_true(!lost || *id == buffers->ids[0]);
            *id = buffers->ids[0];
        }
        assert_int_equal(buffers_of(&witness), 4 * ITEMS);
        wire_close(&witness);
    }
    wire_close(&wire);
    broker_stop(&broker);
}

static int cleanup(void **state)
{
    if (broker.pid)
        broker_kill(&broker);
    return 0;
}

#define TEST(f) cmocka_unit_test_teardown(f, cleanup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_client_that_reads_nothing_has_no_descriptors_open),    TEST(what_is_allocated_and_not_read_is_open_once),
        TEST(I7_other_users_get_their_descriptors_meanwhile),         TEST(I7_what_a_user_leaves_unread_is_bounded),
        TEST(I7_users_leave_descriptors_in_flight_to_others),         TEST(a_reply_waits_for_the_brokers_descriptors),
        TEST(I4_a_release_behind_an_export_is_done_before_it_leaves), TEST(replies_that_waited_are_repeated_whole),
    };

    return test_run(tests, NULL, NULL);
}
