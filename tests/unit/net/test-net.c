/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections against a handler that answers what it is asked, on a real loop and real sockets. The clients are in
 * this process: each test takes turns between them and the loop.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/share.h"
#include "net/connection.h"
#include "net/internal.h"
#include "net/listener.h"
#include "net/net.h"
#include "net/socket_path.h"
#include "proto/methods.h"
#include "proto/sockio.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define SILENT 7777 /* a method that the handler does not answer */

/* The kernel as the broker sees it: so many of its next calls fail so. */
static struct failing {
    unsigned n;
    int error;
} sends, receipts;

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);

static bool fails(struct failing *failing)
{
    if (!failing->n)
        return false;
    failing->n--;
    errno = failing->error;
    return true;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    return fails(&sends) ? -1 : __real_send(fd, bytes, size, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return fails(&sends) ? -1 : __real_sendmsg(fd, message, flags);
}

/* Before Linux 6.16 no socket refuses descriptors. */
static bool is_older;

int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size);

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    if (!is_older || option != SO_PASSRIGHTS)
        return __real_setsockopt(fd, level, option, value, size);
    errno = ENOPROTOOPT;
    return -1;
}

/* A client sends in the moment after the broker has seen that nothing is there. */
static int sends_then = -1;

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t n = fails(&receipts) ? -1 : __real_recvmsg(fd, message, flags);

    if (n < 0 && errno == EAGAIN && flags & MSG_PEEK && sends_then >= 0) {
        const int one = STDOUT_FILENO;

        assert_int_equal(fd_send(steal_fd(&sends_then), "late", 4, &one, 1, 0), 4);
        errno = EAGAIN;
    }
    return n;
}

static struct event_base *base;
static struct net *net;
static struct listener *listener;
static struct socket_path where;
static char path[200];

static struct {
    unsigned opened;
    unsigned closed;
    unsigned packets;
    unsigned refused;
    unsigned reply_fds; /* that the answers carry */
    unsigned gone;      /* so many of them there are no more when they leave */
    bool none_to_open;  /* now */
    unsigned openings;  /* that were tried */
    size_t reply_size;
    bool establish;
    unsigned share; /* of each user, in percent; 0 = all */
    struct connection *last;
} seen;

static bool on_opened(void *userdata, struct connection *connection)
{
    seen.opened++;
    seen.last = connection;
    return true;
}

static int on_packet(void *userdata, struct connection *connection, const struct frame_header *header,
                     const uint8_t *payload, struct fdset *fds)
{
    static uint8_t bytes[MEMORYD_PAYLOAD_MAX];
    const struct outgoing answer = {
        .header = {.method = header->method, .sequence = header->sequence},
        .payload = bytes,
        .size = seen.reply_size,
        .fd_list = seen.reply_fds ? &seen.reply_fds : NULL,
        .fd_list_size = seen.reply_fds ? sizeof(seen.reply_fds) : 0,
        .n_fds = seen.reply_fds,
    };

    seen.packets++;
    if (seen.establish)
        connection_established(connection);
    if (header->method == SILENT)
        return 0;
    connection_reply(connection, &answer);
    return 0;
}

static enum outgoing_fds on_open_fds(void *userdata, struct connection *connection, struct outgoing *reply,
                                     struct fdset *fds)
{
    unsigned n;

    seen.openings++;
    if (seen.none_to_open)
        return OUTGOING_LATER;
    memcpy(&n, reply->fd_list, sizeof(n));
    assert_int_equal(n, reply->n_fds);
    for (unsigned i = seen.gone; i < n; i++)
        (void)fdset_push(fds, open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (seen.gone)
        reply->payload = "gone";
    if (seen.gone)
        reply->size = 4;
    return OUTGOING_OPEN;
}

static void on_refused(void *userdata, struct connection *connection, int error, const uint8_t *packet, size_t size)
{
    seen.refused++;
}

static int on_closed(void *userdata, struct connection *connection)
{
    seen.closed += connection->identified;
    return 0;
}

static int listening_fd; /* the listener's */

/* Connections in which descriptors wait. */
static int ended[8];
static unsigned n_ended, n_unended;

static void on_end(void *userdata, uid_t uid, int fd)
{
    assert_true(uid == geteuid() || uid == (uid_t)-1);
    assert_true(n_ended < 8);
    ended[n_ended++] = fd;
}

static unsigned on_unended(void *userdata, uid_t uid, unsigned *all)
{
    *all = n_unended;
    return n_unended;
}

static struct net_share on_share(void *userdata, const struct peer *peer)
{
    return (struct net_share){.percent = seen.share ? seen.share : SHARE_ALL,
                              .connections = net->limits.connections_uid};
}

static const struct net_handler handler = {.opened = on_opened,
                                           .share = on_share,
                                           .packet = on_packet,
                                           .refused = on_refused,
                                           .open_fds = on_open_fds,
                                           .closed = on_closed,
                                           .end = on_end,
                                           .unended = on_unended};

static struct net_limits limits(void)
{
    return (struct net_limits){
        .connections = 100,
        .connections_uid = 50,
        .queued_bytes = 1 << 17,
        .queued_bytes_uid = 1 << 24,
        .fds_in_flight = 64,
        .fds_in_flight_uid = 1000,
        .fds_in_flight_all = 1000,
        .unended_uid = 100,
        .unended_all = 1000,
        .descriptors = 4096,
        .handshake_ms = 60000,
        .stall_ms = 60000,
    };
}

static int setup(void **state)
{
    struct net_limits l = limits();
    struct problem problem = PROBLEM_NULL;
    int fd = -1;

    memset(&seen, 0, sizeof(seen));
    sends = receipts = (struct failing){0};
    is_older = false;
    sends_then = -1;
    seen.establish = true;
    snprintf(path, sizeof(path), "%s/net.sock", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    where = (struct socket_path)SOCKET_PATH_NULL;
    assert_int_equal(socket_path_lock(&where, path, &problem), 0);
    assert_int_equal(socket_path_listen(&where, true, &fd, &problem), 0);
    base = event_base_new();
    assert_non_null(base);
    assert_int_equal(net_new(&net, base, &handler, NULL, &l), 0);
    listening_fd = fd;
    assert_int_equal(listener_new(&listener, net, fd), 0);
    return 0;
}

static int teardown(void **state)
{
    listener = listener_free(listener);
    net = net_free(net);
    event_base_free(base);
    socket_path_deinit(&where);
    assert_int_equal(seen.opened, seen.closed);
    return 0;
}

static void turn(void)
{
    (void)event_base_loop(base, EVLOOP_NONBLOCK);
    (void)net_turn(net);
    assert_int_equal(net->error, 0);
}

#define TURN_UNTIL(condition) assert_true(WAIT_UNTIL((turn(), (condition))))

static int client_new(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    assert_ok(fd);
    memcpy(address.sun_path, path, strlen(path) + 1);
    assert_ok(connect(fd, (struct sockaddr *)&address, sizeof(address)));
    return fd;
}

static void ask_fds(int fd, uint16_t method, const int *fds, unsigned n)
{
    static uint64_t sequence;
    struct frame_header header = {
        .method = method, .sequence = ++sequence, .fd_count = n > MEMORYD_FDS_MAX ? MEMORYD_FDS_MAX : (uint16_t)n};
    uint8_t packet[MEMORYD_HEADER_SIZE];

    frame_encode(packet, FRAME_FROM_CLIENT, &header);
    assert_int_equal(fd_send(fd, packet, sizeof(packet), fds, n, MSG_DONTWAIT), sizeof(packet));
}

static void ask(int fd, uint16_t method)
{
    ask_fds(fd, method, NULL, 0);
}

/* bytes of the next packet, 0 at the end, -1 if nothing is there */
static ssize_t hear_fds(int fd, unsigned *n_fds)
{
    static uint8_t buffer[MEMORYD_FRAME_MAX];
    struct fd_received received = fd_receive(fd, buffer, sizeof(buffer), 64, MSG_DONTWAIT);

    if (n_fds)
        *n_fds = received.n;
    fd_received_close(&received);
    return received.size;
}

static bool is_served(int fd)
{
    ssize_t n = -1;

    ask(fd, METHOD_PING);
    return WAIT_UNTIL((turn(), (n = hear_fds(fd, NULL)) >= 0)) && n > 0;
}

static bool has_ended(int fd)
{
    ssize_t n = -1;

    return WAIT_UNTIL((turn(), (n = hear_fds(fd, NULL)) == 0 || (n < 0 && errno == ECONNRESET)));
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void packets_are_answered_in_order(void **state)
{
    FD_AUTO int fd = client_new();

    for (int i = 0; i < 50; i++)
        ask(fd, METHOD_PING);
    TURN_UNTIL(seen.packets == 50);
    for (int i = 0; i < 50; i++)
        assert_int_equal(hear_fds(fd, NULL), MEMORYD_HEADER_SIZE);
    assert_int_equal(hear_fds(fd, NULL), -1);
}

static void I8_what_is_no_packet_ends_only_its_sender(void **state)
{
    FD_AUTO int good = client_new();
    static uint8_t big[MEMORYD_FRAME_MAX + 100];
    const struct {
        const void *bytes;
        size_t size;
    } bad[] = {{"x", 1}, {"GET / HTTP/1.1", 14}, {big, sizeof(big)}, {big, MEMORYD_HEADER_SIZE}, {"", 0}};

    assert_true(is_served(good));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        FD_AUTO int fd = client_new();

        assert_int_equal(send(fd, bad[i].bytes, bad[i].size, MSG_NOSIGNAL), bad[i].size);
        assert_true(has_ended(fd));
        assert_true(is_served(good));
    }
}

/* As on a kernel before 6.16, or of one who connected before the broker was there. */
static int client_with_descriptors(const void *bytes, size_t size, const int *fds, unsigned n)
{
    int fd = client_new();

    assert_true(fd_send(fd, bytes, size, fds, n, 0) >= 0);
    return fd;
}

static void I8_descriptors_are_never_received_and_end_their_sender(void **state)
{
    static uint8_t packet[MEMORYD_FRAME_MAX + 100];
    FD_AUTO int good = client_new();
    FD_AUTO int listening = fcntl(listening_fd, F_DUPFD_CLOEXEC, 0);
    const int on = 1;
    unsigned before;
    int fds[65];

    for (int i = 0; i < 65; i++)
        fds[i] = STDOUT_FILENO;
    assert_true(is_served(good));
    (void)setsockopt(listening, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
    frame_encode(packet, FRAME_FROM_CLIENT,
                 &(struct frame_header){.method = METHOD_IMPORT, .sequence = 1, .fd_count = 1});
    before = fd_count();
    for (unsigned way = 0; way < 4; way++) {
        static const size_t sizes[] = {MEMORYD_HEADER_SIZE, MEMORYD_HEADER_SIZE, sizeof(packet), 0};
        FD_AUTO int fd = client_with_descriptors(packet, sizes[way], fds, way == 1 ? 65 : 1);

        assert_true(has_ended(fd));
        assert_true(WAIT_UNTIL((turn(), n_ended == way + 1)));
        assert_true(is_served(good));
    }
    assert_int_equal(fd_count(), before + n_ended);
    while (n_ended)
        close(ended[--n_ended]);
}

static void I8_nor_those_that_come_after_a_look(void **state)
{
    FD_AUTO int listening = fcntl(listening_fd, F_DUPFD_CLOEXEC, 0);
    const int on = 1;
    FD_AUTO int fd = -1;

    (void)setsockopt(listening, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
    is_older = true;
    fd = client_new();
    assert_true(is_served(fd));
    sends_then = fd;
    ask(fd, METHOD_PING);
    assert_true(has_ended(fd));
    assert_int_equal(sends_then, -1);
    assert_int_equal(seen.packets, 2);
    assert_int_equal(seen.refused, 1);
    assert_true(WAIT_UNTIL((turn(), n_ended == 1)));
    close(ended[--n_ended]);
}

static void I7_requests_without_reply_stop_the_reading(void **state)
{
    FD_AUTO int fd = client_new();
    FD_AUTO int other = client_new();

    for (int i = 0; i < 100; i++)
        ask(fd, SILENT);
    assert_true(is_served(other));
    for (int i = 0; i < 50; i++)
        turn();
    assert_int_equal(seen.packets, MEMORYD_UNACKNOWLEDGED_MAX + 1);
}

static void I7_a_client_that_does_not_read_is_stopped_then_disconnected(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int silent = client_new();
    FD_AUTO int good = client_new();
    unsigned asked = 0;
    size_t most = 0;

    l.stall_ms = 200;
    net_set_limits(net, &l);
    seen.reply_size = 32000;
    while (!seen.closed && asked < 100000) {
        struct frame_header header = {.method = METHOD_PING, .sequence = ++asked};
        uint8_t packet[MEMORYD_HEADER_SIZE];

        frame_encode(packet, FRAME_FROM_CLIENT, &header);
        (void)send(silent, packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL);
        turn();
        if (net->n_connections == 2 && seen.last)
            list_for_each_entry(c, &net->connections, struct connection, in_connections)
                most = c->queued > most ? c->queued : most;
        wait_a_moment();
        if (asked % 16 == 0)
            assert_true(is_served(good));
    }
    assert_int_equal(seen.closed, 1);
    /* the high mark, and at most the replies of one turn above it */
    assert_true(most <= l.queued_bytes + 40000 && most > 32000);
    assert_true(has_ended(silent));
    assert_true(is_served(good));
}

static void I7_a_slow_reader_gets_everything(void **state)
{
    FD_AUTO int fd = client_new();
    unsigned heard = 0;

    seen.reply_size = 60000;
    for (int i = 0; i < 60; i++)
        ask(fd, METHOD_PING);
    TURN_UNTIL(seen.packets && (turn(), true));
    while (heard < 60) {
        ssize_t n;

        TURN_UNTIL((n = hear_fds(fd, NULL)) != -1);
        assert_int_equal(n, 60000 + MEMORYD_HEADER_SIZE);
        heard++;
    }
    assert_int_equal(seen.closed, 0);
}

static ssize_t hear_in_turns(int fd)
{
    ssize_t n;

    TURN_UNTIL((n = hear_fds(fd, NULL)) != -1);
    return n;
}

/* Of all that a user's clients have not read. */
static void I7_what_is_sent_and_not_read_is_bounded(void **state)
{
    enum { CLIENTS = 8, ASKED = 20, SIZE = 4000, MOST = 1 << 20 };
    struct net_limits l = limits();
    int clients[CLIENTS];
    size_t unread = 0;

    l.queued_bytes_uid = MOST;
    net_set_limits(net, &l);
    seen.reply_size = SIZE;
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = client_new();
    for (unsigned n = 0; n < CLIENTS * ASKED; n++)
        ask(clients[n % CLIENTS], METHOD_PING);
    TURN_UNTIL(seen.packets == CLIENTS * ASKED);
    list_for_each_entry(c, &net->connections, struct connection, in_connections) {
        size_t bytes = 0;

        assert_int_equal(sockio_unread(c->fd, &bytes), 0);
        unread += bytes;
    }
    assert_in_range(unread, MOST / 2, MOST);
    /* who reads is served, though the others do not */
    for (unsigned i = 0; i < CLIENTS; i++)
        for (unsigned n = 0; n < ASKED; n++)
            assert_int_equal(hear_in_turns(clients[i]), SIZE + MEMORYD_HEADER_SIZE);
    assert_int_equal(seen.closed, 0);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(clients[i]);
}

static void I7_descriptors_in_flight_are_bounded(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int silent = client_new();
    FD_AUTO int good = client_new();
    unsigned open_before;
    unsigned n = 0;

    l.fds_in_flight = 64;
    l.fds_in_flight_uid = 100;
    net_set_limits(net, &l);
    assert_true(is_served(silent));
    assert_true(is_served(good));
    open_before = fd_count();
    seen.reply_fds = 30;
    for (int i = 0; i < 10; i++)
        ask(silent, METHOD_PING);
    TURN_UNTIL(seen.packets == 12);
    for (int i = 0; i < 20; i++)
        turn();
    assert_int_equal(net->fds_in_flight, 60);
    /* what waits is not open */
    assert_int_equal(fd_count(), open_before);
    assert_int_equal(seen.openings, 2);
    /* the other one has room within the user's budget, and no more */
    assert_true(is_served(good));
    assert_true(net->fds_in_flight <= 100);
    /* when it reads, the rest comes, and nothing stays counted */
    for (int i = 0; i < 10; i++) {
        ssize_t size;

        TURN_UNTIL((size = hear_fds(silent, &n)) != -1);
        assert_true(size > 0);
        assert_int_equal(n, 30);
    }
    list_for_each_entry(c, &net->connections, struct connection, in_connections)
        assert_int_equal(connection_fds_in_flight(c), 0);
    assert_int_equal(net->fds_in_flight, 0);
    assert_int_equal(fd_count(), open_before);
}

/* Who always has more to get comes after who has got nothing. */
static void I7_those_who_wait_for_descriptors_take_turns(void **state)
{
    enum { REPLIES = 20, TAKEN_AT_MOST = 8 };
    struct net_limits l = limits();
    FD_AUTO int greedy = client_new();
    FD_AUTO int modest = client_new();
    unsigned taken = 0;

    l.fds_in_flight = l.fds_in_flight_uid = 64;
    net_set_limits(net, &l);
    assert_true(is_served(greedy));
    assert_true(is_served(modest));
    seen.reply_fds = 30;
    for (unsigned i = 0; i < REPLIES; i++)
        ask(greedy, METHOD_PING);
    TURN_UNTIL(seen.packets == 2 + REPLIES);
    ask(modest, METHOD_PING);
    TURN_UNTIL(seen.packets == 3 + REPLIES);
    while (hear_fds(modest, NULL) == -1) {
        while (hear_fds(greedy, NULL) != -1)
            taken++;
        assert_true(taken <= TAKEN_AT_MOST);
        turn();
        wait_a_moment();
    }
}

static int client_new_as(uid_t uid)
{
    int fd;

    assert_ok(chmod(path, 0666));
    assert_ok(seteuid(uid));
    fd = client_new();
    assert_ok(seteuid(0));
    return fd;
}

/* Each user takes what it can get, and the next one finds some. */
static void I7_users_leave_descriptors_in_flight_to_others(void **state)
{
    enum { USERS = 3, CLIENTS = 3 };
    struct net_limits l = limits();
    int clients[USERS][CLIENTS];

    test_needs_root();
    l.fds_in_flight = 256;
    l.fds_in_flight_uid = l.fds_in_flight_all = 1024;
    net_set_limits(net, &l);
    seen.reply_fds = 64;
    seen.share = SHARE_ALL / 2;
    for (unsigned i = 0; i < USERS; i++) {
        unsigned before = net->fds_in_flight;

        for (unsigned j = 0; j < CLIENTS; j++) {
            clients[i][j] = client_new_as(61002 + i);
            for (unsigned k = 0; k < 5; k++)
                ask(clients[i][j], METHOD_PING);
        }
        TURN_UNTIL(seen.packets == (i + 1) * CLIENTS * 5);
        assert_int_equal(net->fds_in_flight - before, (1024 - before) / 2);
    }
    {
        FD_AUTO int last = client_new();

        assert_true(is_served(last));
    }
    for (unsigned i = 0; i < USERS; i++)
        for (unsigned j = 0; j < CLIENTS; j++)
            close(clients[i][j]);
}

static void a_reply_waits_for_descriptors_to_open(void **state)
{
    FD_AUTO int waits = client_new();
    FD_AUTO int good = client_new();
    unsigned open_before, n = 0;
    ssize_t size;

    assert_true(is_served(waits));
    assert_true(is_served(good));
    open_before = fd_count();
    seen.reply_fds = 3;
    seen.none_to_open = true;
    ask(waits, METHOD_PING);
    TURN_UNTIL(seen.openings >= 2);
    assert_int_equal(hear_fds(waits, NULL), -1);
    /* others, who want none, are served */
    seen.reply_fds = 0;
    assert_true(is_served(good));
    /* replies stay in order */
    ask(waits, METHOD_PING);
    TURN_UNTIL(seen.packets == 5);
    assert_int_equal(hear_fds(waits, NULL), -1);
    seen.none_to_open = false;
    TURN_UNTIL((size = hear_fds(waits, &n)) != -1);
    assert_int_equal(size, MEMORYD_HEADER_SIZE);
    assert_int_equal(n, 3);
    TURN_UNTIL((size = hear_fds(waits, &n)) != -1);
    assert_int_equal(n, 0);
    assert_int_equal(fd_count(), open_before);
}

/* Its header is that of what is sent. */
static void a_reply_may_change_when_it_leaves(void **state)
{
    FD_AUTO int fd = client_new();
    struct net_limits l = limits();
    unsigned n = 0;
    ssize_t size;

    l.fds_in_flight = 4;
    net_set_limits(net, &l);
    seen.reply_fds = 3;
    seen.reply_size = 100;
    ask(fd, METHOD_PING);
    ask(fd, METHOD_PING);
    TURN_UNTIL(seen.packets == 2);
    seen.gone = 2;
    for (unsigned i = 0; i < 2; i++) {
        struct fd_received received;
        struct frame_header header;
        static uint8_t bytes[200];
        const uint8_t *payload;

        TURN_UNTIL((received = fd_receive(fd, bytes, sizeof(bytes), 64, MSG_DONTWAIT)).size != -1);
        n = received.n;
        size = received.size;
        fd_received_close(&received);
        assert_int_equal(frame_decode(bytes, (size_t)size, n, FRAME_FROM_BROKER, &header, &payload), 0);
        assert_int_equal(n, i ? 1 : 3);
        assert_int_equal(header.payload_length, i ? 4 : 100);
    }
    assert_int_equal(seen.openings, 2);
}

static void I7_who_keeps_the_budget_is_disconnected_when_others_wait(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int silent = client_new();
    FD_AUTO int good = client_new();

    l.fds_in_flight_uid = 64;
    l.stall_ms = 200;
    net_set_limits(net, &l);
    assert_true(is_served(good));
    seen.reply_fds = 60;
    ask(silent, METHOD_PING);
    TURN_UNTIL(net->fds_in_flight == 60);
    assert_true(is_served(good));
    assert_int_equal(seen.closed, 1);
    assert_true(net->fds_in_flight <= 60);
}

static void I7_who_waits_for_itself_is_disconnected(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int silent = client_new();

    l.fds_in_flight = 9;
    l.stall_ms = 50;
    net_set_limits(net, &l);
    assert_true(is_served(silent));
    seen.reply_fds = 8;
    ask(silent, METHOD_PING);
    ask(silent, METHOD_PING);
    TURN_UNTIL(seen.closed == 1);
    assert_true(has_ended(silent));
}

/* The deadline passes, and before its turn comes, what it was for is done. */
static void who_waited_for_others_is_not_disconnected_afterwards(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int good = client_new();
    ssize_t n;

    l.stall_ms = 20;
    net_set_limits(net, &l);
    assert_true(is_served(good));
    seen.reply_fds = 3;
    seen.none_to_open = true;
    ask(good, METHOD_PING);
    TURN_UNTIL(seen.openings);
    assert_true(WAIT_UNTIL((event_base_loop(base, EVLOOP_NONBLOCK), seen.last->overdue && seen.last->writable)));
    seen.none_to_open = false;
    TURN_UNTIL((n = hear_fds(good, NULL)) != -1);
    assert_true(n > 0);
    assert_true(is_served(good));
}

static void a_client_that_says_nothing_is_disconnected(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int mute = -1;
    FD_AUTO int good = -1;

    l.handshake_ms = 100;
    net_set_limits(net, &l);
    mute = client_new();
    good = client_new();
    assert_true(is_served(good));
    assert_true(has_ended(mute));
    assert_true(is_served(good));
}

static void I7_one_user_cannot_take_all_connections(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int a = -1;
    FD_AUTO int b = -1;
    FD_AUTO int c = -1;

    l.connections_uid = 2;
    net_set_limits(net, &l);
    a = client_new();
    b = client_new();
    assert_true(is_served(a));
    assert_true(is_served(b));
    c = client_new();
    assert_true(has_ended(c));
    assert_true(is_served(a));
    assert_int_equal(seen.opened, 2);
}

static const char *crowded_of(const struct connection *connection)
{
    return connection->crowded ? connection->crowded : "";
}

/* The last ones are let in so that HELLO refuses them, administrators beyond, but none of a user beyond its own. */
static void a_full_house_tells_so(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int a = client_new();
    FD_AUTO int crowded = -1;
    FD_AUTO int kept = -1;
    FD_AUTO int none = -1;

    l.connections = 1;
    l.crowded = 1;
    l.administrator = getuid() + 1;
    net_set_limits(net, &l);
    assert_true(is_served(a));
    assert_string_equal(crowded_of(seen.last), "");
    crowded = client_new();
    assert_true(is_served(crowded));
    assert_non_null(strstr(crowded_of(seen.last), "connections in [limits]"));
    none = client_new();
    assert_true(has_ended(none));

    l.administrators = 1;
    l.administrator = getuid();
    net_set_limits(net, &l);
    kept = client_new();
    assert_true(is_served(kept));
    assert_non_null(strstr(crowded_of(seen.last), "connections in [limits]"));
    assert_int_equal(seen.opened, 3);
}

static void the_last_descriptors_are_for_telling_so(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int crowded = -1;
    FD_AUTO int none = -1;

    l.descriptors = 1000;
    l.last_descriptors = 1000;
    l.administrator = getuid();
    net_set_limits(net, &l);
    crowded = client_new();
    assert_true(is_served(crowded));
    assert_non_null(strstr(crowded_of(seen.last), "LimitNOFILE"));
    if (!getuid())
        return; /* an administrator for any broker */
    l.last_descriptors = 2000;
    l.administrator = getuid() + 1;
    net_set_limits(net, &l);
    none = client_new();
    assert_true(has_ended(none));
}

static void a_shortage_of_descriptors_passes_or_turns_away(void **state)
{
    struct rlimit old;
    struct rlimit low;
    FD_AUTO int good = client_new();
    FD_AUTO int late = -1;
    FD_AUTO int later = -1;
    unsigned before;

    assert_true(is_served(good));
    late = client_new();
    later = client_new();
    before = fd_count();
    assert_ok(getrlimit(RLIMIT_NOFILE, &old));
    low = (struct rlimit){.rlim_cur = before + 3, .rlim_max = old.rlim_max};
    /* the lowest free descriptor is what counts: no room for one more */
    FD_AUTO int probe = open("/dev/null", O_RDONLY | O_CLOEXEC);
    low.rlim_cur = (rlim_t)probe;
    close(probe);
    probe = -1;
    assert_ok(setrlimit(RLIMIT_NOFILE, &low));
    for (int i = 0; i < 20; i++)
        turn();
    assert_true(is_served(good));
    assert_int_equal(seen.opened, 1);
    /* it passes: the first comes in */
    assert_ok(setrlimit(RLIMIT_NOFILE, &old));
    assert_true(is_served(late));
    assert_true(is_served(later));
    FD_AUTO int third = client_new();
    probe = open("/dev/null", O_RDONLY | O_CLOEXEC);
    low.rlim_cur = (rlim_t)probe;
    close(probe);
    probe = -1;
    assert_ok(setrlimit(RLIMIT_NOFILE, &low));
    /* it does not pass: the client sees an end instead of waiting */
    assert_true(has_ended(third));
    assert_true(is_served(good));
    assert_ok(setrlimit(RLIMIT_NOFILE, &old));
}

/* Whose connections nobody can close is not let in until that is done. */
static void I7_a_user_whose_descriptors_hang_is_turned_away(void **state)
{
    struct net_limits l = limits();
    FD_AUTO int good = client_new();

    l.unended_uid = 2;
    net_set_limits(net, &l);
    assert_true(is_served(good));
    n_unended = 3;
    {
        FD_AUTO int fd = client_new();

        assert_true(has_ended(fd));
    }
    assert_true(is_served(good));
    n_unended = 0;
    {
        FD_AUTO int fd = client_new();

        assert_true(is_served(fd));
    }
}

static void unread_events_give_way_to_newer_ones(void **state)
{
    FD_AUTO int fd = client_new();
    static uint8_t bytes[30000];
    struct frame_header header = {.method = METHOD_EVENT_NAME};
    unsigned sent = 0;
    unsigned heard = 0;

    assert_true(is_served(fd));
    while (seen.last->queued == 0 && sent++ < 1000)
        assert_true(connection_event(seen.last, &header, bytes, sizeof(bytes), 1));
    assert_true(sent < 1000);
    for (int i = 0; i < 100; i++)
        assert_true(connection_event(seen.last, &header, bytes, sizeof(bytes), 1));
    assert_int_equal(seen.last->queued, sizeof(bytes) + MEMORYD_HEADER_SIZE);
    for (uint64_t key = 2; key <= CONNECTION_EVENTS_MAX; key++)
        assert_true(connection_event(seen.last, &header, bytes, sizeof(bytes), key));
    assert_false(connection_event(seen.last, &header, bytes, sizeof(bytes), 99));
    connection_drop_events(seen.last);
    assert_int_equal(seen.last->queued, 0);
    assert_true(connection_event(seen.last, &header, bytes, 10, 99));
    TURN_UNTIL((heard += hear_fds(fd, NULL) > 0) == sent);
}

/* Not of a failure, nor of its end: nothing but another try finds out. */
static void what_fails_for_want_of_memory_is_tried_again(void **state)
{
    static const int errors[] = {ENOMEM, ENOBUFS};
    FD_AUTO int fd = client_new();

    assert_true(is_served(fd));
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        for (seen.reply_fds = 0; seen.reply_fds < 2; seen.reply_fds++) {
            ssize_t n;

            ask(fd, METHOD_PING);
            sends = receipts = (struct failing){.n = 10, .error = errors[i]};
            TURN_UNTIL(!receipts.n && !sends.n);
            TURN_UNTIL((n = hear_fds(fd, NULL)) != -1);
            assert_true(n > 0);
        }
    }
}

/* Asks until the client has so much unread that nothing more is read from it. */
static void stop_the_reading(int fd)
{
    unsigned before;

    seen.reply_size = 60000;
    do {
        before = seen.packets;
        ask(fd, METHOD_PING);
        for (int i = 0; i < 5; i++)
            turn();
    } while (seen.packets != before);
    assert_true(seen.last->queued > net->limits.queued_bytes);
}

static void a_client_that_leaves_much_unread_is_closed(void **state)
{
    int fd = client_new();

    assert_true(is_served(fd));
    stop_the_reading(fd);
    close(fd);
    TURN_UNTIL(seen.closed == 1);
}

/* Events alone may stop the reading, too. */
static void dropping_events_lets_more_be_read(void **state)
{
    FD_AUTO int fd = client_new();
    static uint8_t bytes[60000];
    struct frame_header header = {.method = METHOD_EVENT_NAME};

    assert_true(is_served(fd));
    for (uint64_t key = 1; seen.last->queued <= net->limits.queued_bytes; key++)
        assert_true(connection_event(seen.last, &header, bytes, sizeof(bytes), key));
    ask(fd, SILENT);
    for (int i = 0; i < 5; i++)
        turn();
    assert_int_equal(seen.packets, 1);
    connection_drop_events(seen.last);
    TURN_UNTIL(seen.packets == 2);
}

static void finishing_sends_what_is_left(void **state)
{
    FD_AUTO int fd = client_new();
    unsigned heard = 0;
    ssize_t n;

    seen.reply_size = 60000;
    for (int i = 0; i < 8; i++)
        ask(fd, METHOD_PING);
    for (int i = 0; i < 20; i++)
        turn();
    connection_finish(seen.last);
    turn();
    while (WAIT_UNTIL((turn(), (n = hear_fds(fd, NULL)) != -1)) && n > 0)
        heard++;
    assert_int_equal(n, 0);
    assert_int_equal(heard, seen.packets);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- users ------------------------------------------------------------------------------------------------------- */

static struct net_user *busy; /* always has something to do */

static void task_again(struct fair_task *task)
{
    fair_queue_add(&net->queue, &busy->flow, task);
}

/* Or else it would be served first each time. */
static void I7_who_connects_and_leaves_again_and_again_is_no_new_user(void **state)
{
    struct fair_task other;
    struct net_user *user;
    uint64_t used;

    assert_non_null(busy = net_user_get(net, 1));
    fair_task_init(&other, task_again);
    task_again(&other);
    assert_non_null(user = net_user_get(net, 7));
    used = user->flow.used = net->queue.level + FAIR_BEHIND_NS;
    assert_null(net_user_unref(net, user));
    assert_true(net_turn(net));
    assert_non_null(user = net_user_get(net, 7));
    assert_int_equal(user->flow.used, used);
    net_user_unref(net, user);
    /* but not everybody is remembered, */
    for (uid_t uid = 1000; uid < 2000; uid++)
        net_user_unref(net, net_user_get(net, uid));
    assert_true(net_turn(net));
    assert_in_range(HASH_COUNT(net->users), 1, 100);
    /* and nobody when nobody waits */
    fair_queue_remove(&net->queue, &busy->flow, &other);
    net_user_unref(net, busy);
    assert_false(net_turn(net));
    assert_null(net->users);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(packets_are_answered_in_order),
        TEST(I8_what_is_no_packet_ends_only_its_sender),
        TEST(I8_descriptors_are_never_received_and_end_their_sender),
        TEST(I8_nor_those_that_come_after_a_look),
        TEST(I7_requests_without_reply_stop_the_reading),
        TEST(I7_a_client_that_does_not_read_is_stopped_then_disconnected),
        TEST(I7_a_slow_reader_gets_everything),
        TEST(I7_what_is_sent_and_not_read_is_bounded),
        TEST(I7_descriptors_in_flight_are_bounded),
        TEST(I7_those_who_wait_for_descriptors_take_turns),
        TEST(I7_users_leave_descriptors_in_flight_to_others),
        TEST(a_reply_waits_for_descriptors_to_open),
        TEST(a_reply_may_change_when_it_leaves),
        TEST(I7_who_keeps_the_budget_is_disconnected_when_others_wait),
        TEST(I7_who_waits_for_itself_is_disconnected),
        TEST(who_waited_for_others_is_not_disconnected_afterwards),
        TEST(a_client_that_says_nothing_is_disconnected),
        TEST(I7_one_user_cannot_take_all_connections),
        TEST(a_shortage_of_descriptors_passes_or_turns_away),
        TEST(I7_a_user_whose_descriptors_hang_is_turned_away),
        TEST(unread_events_give_way_to_newer_ones),
        TEST(a_full_house_tells_so),
        TEST(the_last_descriptors_are_for_telling_so),
        TEST(what_fails_for_want_of_memory_is_tried_again),
        TEST(a_client_that_leaves_much_unread_is_closed),
        TEST(dropping_events_lets_more_be_read),
        TEST(finishing_sends_what_is_left),
        TEST(I7_who_connects_and_leaves_again_and_again_is_no_new_user),
    };

    return test_run(tests, NULL, NULL);
}
