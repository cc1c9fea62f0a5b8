/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `make demo`: processes share 256 MiB that the broker owns, told as a short story.
 *
 * Every sentence it prints is checked before it is printed, and the first one that is not true ends it with status 1.
 * demo.sh starts the broker that $MEMORYD_SOCKET names. The parts are played by processes of their own, each
 * with its own session:
 *
 *     producer    makes the buffer, fills it, hands it on, and is killed; later the broker is killed, too
 *     reader      opens it by a token that only reads
 *     stranger    the same, as another user (played only when root is there to change users)
 *     worker      gets a descriptor over a socket it shares with the producer, and writes
 *     main        tells them when to act, and looks from outside at who holds what
 *
 * In the buffer is a chain of pointers, one a page, and numbers behind each. Following the chain in another
 * process proves both that the bytes are there and that they are at the same address.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <memclient/memclient.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME     "demo/frames"
#define STRANGER 60001

static const uint64_t size = UINT64_C(256) << 20;
static const size_t step = 4096;
static const char *role = "main";

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static _Noreturn __attribute__((format(printf, 1, 2))) void untrue(const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fprintf(stderr, "demo: %s: NOT TRUE: ", role);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

#define must(expression)                                   \
    do {                                                   \
        if (!(expression))                                 \
            untrue("%s (line %d)", #expression, __LINE__); \
    } while (0)

/* a call of the library that has to succeed */
#define did(call)                                                           \
    do {                                                                    \
        int r_ = (call);                                                    \
        if (r_ < 0)                                                         \
            untrue("%s: %s (%s)", #call, memclient_error(), strerror(-r_)); \
    } while (0)

static __attribute__((format(printf, 1, 2))) void tell(const char *format, ...)
{
    va_list arguments;

    fputs("  ", stdout);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- the bytes --------------------------------------------------------------------------------------------------- */

struct page {
    struct page *next;
    uint64_t numbers[];
};

static uint64_t number_at(size_t page, size_t i)
{
    return ((uint64_t)page * 512 + i) * UINT64_C(0x9e3779b97f4a7c15);
}

static void write_pages(char *bytes)
{
    for (size_t at = 0, n = 0; at < size; at += step, n++) {
        struct page *page = (struct page *)(void *)(bytes + at);

        page->next = at + step < size ? (struct page *)(void *)(bytes + at + step) : NULL;
        for (size_t i = 0; i < step / 8 - 1; i++)
            page->numbers[i] = number_at(n, i);
    }
}

/* Follows the pointers, not the offsets. The last number of the last page is the worker's to change. */
static void read_pages(const char *bytes)
{
    size_t n = 0;

    for (const struct page *page = (const void *)bytes; page; page = page->next, n++)
        for (size_t i = 0; i < step / 8 - (page->next ? 1 : 2); i++)
            if (page->numbers[i] != number_at(n, i))
                untrue("page %zu has other bytes than the producer wrote", n);
    must(n == size / step);
}

static volatile uint64_t *last_number(void *bytes)
{
    return (volatile uint64_t *)(void *)((char *)bytes + size - 8);
}

/* ---- the players ------------------------------------------------------------------------------------------------- */

/* What players say to each other; over a SEQPACKET pair, one packet a message. */
struct message {
    struct memclient_token token;
    uint64_t id;
    void *address;
    double handed_ms, written_ms;
    uint64_t calls;
    double slowest_ms;
};

struct player {
    const char *name;
    pid_t pid;
    int line; /* to main */
};

static void say(int line, const struct message *message, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof(*message)};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        struct cmsghdr *c;

        header.msg_control = control.bytes;
        header.msg_controllen = sizeof(control.bytes);
        c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
    }
    must(sendmsg(line, &header, MSG_NOSIGNAL) == sizeof(*message));
}

static void hear(int line, struct message *message, int *ret_fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = message, .iov_len = sizeof(*message)};
    struct msghdr header = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    struct pollfd p = {.fd = line, .events = POLLIN};

    must(poll(&p, 1, 120000) == 1);
    if (recvmsg(line, &header, MSG_CMSG_CLOEXEC) != sizeof(*message))
        untrue("the other process went away");
    if (ret_fd) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);

        must(c && c->cmsg_type == SCM_RIGHTS);
        memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
    }
}

static void start(struct player *player, const char *name, void (*play)(int line, int other), int other)
{
    int pair[2];

    must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    player->name = name;
    player->pid = fork();
    must(player->pid >= 0);
    if (!player->pid) {
        role = name;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        play(pair[1], other);
        exit(0);
    }
    close(pair[1]);
    player->line = pair[0];
}

static void finish(struct player *player)
{
    int status;

    must(waitpid(player->pid, &status, 0) == player->pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        untrue("the %s failed", player->name);
    close(player->line);
}

static void play_producer(int line, int worker)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_share_options share = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct message message = {0};
    struct memclient_buffer *buf;
    double begin;
    void *bytes;
    int fd;

    options.name = NAME;
    share.rights = MEMCLIENT_READ;
    did(memclient_broker_ping(NULL));
    begin = now_ms();
    did(memclient_alloc(NULL, size, &options, &buf));
    did(memclient_share(buf, &share, &message.token));
    did(memclient_map(buf, NULL, &bytes));
    message.handed_ms = now_ms() - begin;
    begin = now_ms();
    write_pages(bytes);
    message.written_ms = now_ms() - begin;
    message.id = memclient_buffer_id(buf);
    message.address = bytes;
    *last_number(bytes) = 0;
    say(line, &message, -1);

    did(memclient_export_fd(buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd));
    say(worker, &message, fd);
    close(fd);
    hear(worker, &message, NULL);
    must(*last_number(bytes) == 42);
    say(line, &message, -1);
    for (;;)
        pause();
}

/* The kernel, not the library, is asked: the library would refuse before it. */
static void try_to_write(struct memclient_buffer *buf, void *bytes, bool other_user)
{
    char path[64];
    int fd;

    did(memclient_export_fd(buf, MEMCLIENT_READ, &fd));
    must(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES);
    must(mprotect(bytes, size, PROT_READ | PROT_WRITE) < 0 && errno == EACCES);
    must(ftruncate(fd, 0) < 0);
    if (other_user) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        must(open(path, O_RDWR | O_CLOEXEC) < 0 && errno == EACCES);
    }
    close(fd);
}

static void read_by_token(int line, bool other_user)
{
    struct memclient_buffer *buf;
    struct message message;
    void *bytes;

    hear(line, &message, NULL);
    did(memclient_open_token(NULL, &message.token, 0, &buf));
    must(memclient_buffer_rights(buf) == MEMCLIENT_READ);
    did(memclient_map(buf, NULL, &bytes));
    read_pages(bytes);
    try_to_write(buf, bytes, other_user);
    message.address = bytes;
    say(line, &message, -1);

    /* the producer is dead now, and the next time the broker was */
    for (int i = 0; i < 2; i++) {
        hear(line, &message, NULL);
        read_pages(bytes);
        must(*last_number(bytes) == 42);
        say(line, &message, -1);
    }
    hear(line, &message, NULL);
}

static void play_reader(int line, int other)
{
    (void)other;
    read_by_token(line, false);
}

static void play_stranger(int line, int other)
{
    (void)other;
    must(!setgroups(0, NULL) && !setresgid(STRANGER, STRANGER, STRANGER) && !setresuid(STRANGER, STRANGER, STRANGER));
    read_by_token(line, true);
}

/* One call after the other, until main has heard enough. None may fail, and none is tried twice here. */
static void call_and_call(int line)
{
    struct pollfd p = {.fd = line, .events = POLLIN};
    struct memclient_buffer *buf;
    struct message message;
    uint64_t calls = 0;
    double slowest = 0;

    hear(line, &message, NULL);
    while (!poll(&p, 1, 0)) {
        double begin = now_ms(), took;

        did(memclient_alloc(NULL, 4096, NULL, &buf));
        took = now_ms() - begin;
        if (took > slowest)
            slowest = took;
        memclient_buffer_unref(buf);
        if (++calls == 100)
            say(line, &message, -1);
    }
    hear(line, &message, NULL);
    message.calls = calls;
    message.slowest_ms = slowest;
    say(line, &message, -1);
}

static void play_worker(int line, int producer)
{
    struct memclient_buffer *buf;
    struct message message;
    void *bytes;
    int fd;

    hear(producer, &message, &fd);
    did(memclient_import_fd(NULL, fd, &buf));
    close(fd);
    must(memclient_buffer_id(buf) == message.id);
    did(memclient_map(buf, NULL, &bytes));
    read_pages(bytes);
    *last_number(bytes) = 42;
    message.address = bytes;
    say(line, &message, -1);
    say(producer, &message, -1);
    call_and_call(line);
    hear(line, &message, NULL);
}

/* ---- from outside ------------------------------------------------------------------------------------------------ */

struct holders {
    const struct player *players;
    size_t n_players;
    const struct memclient_buffer_info *info;
    size_t seen;
    bool quiet;
};

static int tell_holder(const struct memclient_session_info *session, void *data)
{
    struct holders *holders = data;

    for (uint32_t i = 0; i < holders->info->n_holders; i++) {
        if (holders->info->holders[i] != session->id)
            continue;
        for (size_t p = 0; p < holders->n_players; p++)
            if (holders->players[p].pid == session->pid) {
                unsigned rights = holders->info->holder_rights[i];

                holders->seen++;
                if (!holders->quiet)
                    tell("      %-9s pid %-7d uid %-6u %s", holders->players[p].name, session->pid, session->uid,
                         rights & MEMCLIENT_WRITE ? "reads and writes" : "reads");
            }
    }
    return 0;
}

static int find_buffer(const struct memclient_buffer_info *info, void *data)
{
    struct memclient_buffer_info *wanted = data;

    if (info->id != wanted->id)
        return 0;
    *wanted = *info;
    return 1;
}

/* How many of the players hold the buffer. main has no hold of its own, it looks at the listings. */
static size_t count_holders(uint64_t id, const struct player *players, size_t n, bool quiet)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct holders holders = {.players = players, .n_players = n, .info = &info, .quiet = quiet};

    info.id = id;
    must(memclient_list_buffers(NULL, find_buffer, &info) == 1);
    did(memclient_list_sessions(NULL, tell_holder, &holders));
    return holders.seen;
}

static int add_used(const struct memclient_pool_info *pool, void *data)
{
    *(uint64_t *)data += pool->used;
    return 0;
}

static uint64_t bytes_used(void)
{
    uint64_t used = 0;

    did(memclient_list_pools(NULL, add_used, &used));
    return used;
}

static bool wait_until(bool (*is_so)(const void *data), const void *data)
{
    for (int i = 0; i < 30000; i++) {
        if (is_so(data))
            return true;
        usleep(1000);
    }
    return false;
}

struct producer_watch {
    const struct player *producer;
    uint64_t id;
};

static bool producer_is_gone(const void *data)
{
    const struct producer_watch *watch = data;

    return !count_holders(watch->id, watch->producer, 1, true);
}

static bool memory_is_back(const void *data)
{
    return bytes_used() == *(const uint64_t *)data;
}

static bool another_broker_serves(const void *data)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;

    did(memclient_broker_query(NULL, &status));
    return status.broker_pid != *(const int32_t *)data;
}

/* While the worker calls it without a pause. The producer is no longer there. */
static void kill_broker(const struct player *players, size_t n_players, const struct message *made, int32_t broker_pid)
{
    const struct player *worker = &players[1];
    struct message worked, message;
    double away;

    say(worker->line, made, -1);
    hear(worker->line, &worked, NULL);
    must(!kill(broker_pid, SIGKILL));
    away = now_ms();
    must(wait_until(another_broker_serves, &broker_pid));
    away = now_ms() - away;
    usleep(100000);
    say(worker->line, made, -1);
    hear(worker->line, &worked, NULL);
    for (const struct player *p = worker + 1; p < players + n_players; p++) {
        say(p->line, made, -1);
        hear(p->line, &message, NULL);
    }
    must(count_holders(made->id, worker, n_players - 1, true) == n_players - 1);
    tell("The broker was killed (SIGKILL). %.1f ms later the next one served: same buffer, same holders,", away);
    tell("  same pointers. The worker went on: of %" PRIu64 " calls none failed, the slowest took %.1f ms.",
         worked.calls, worked.slowest_ms);
}

/* What sharing replaces: the same bytes through a pipe, from memory to memory that are both there already. */
static double copy_through_pipe(const char *bytes)
{
    char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    uint64_t done = 0;
    double begin;
    int ends[2], status;
    pid_t pid;

    /* the largest pipe that every user may have: the fairest rival */
    must(copy != MAP_FAILED && !pipe2(ends, O_CLOEXEC) && fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) > 0);
    begin = now_ms();
    pid = fork();
    must(pid >= 0);
    if (!pid) {
        for (uint64_t sent = 0; sent < size;) {
            ssize_t n = write(ends[1], bytes + sent, size - sent);

            if (n < 0)
                _exit(1);
            sent += (uint64_t)n;
        }
        _exit(0);
    }
    close(ends[1]);
    while (done < size) {
        ssize_t n = read(ends[0], copy + done, size - done);

        must(n > 0);
        done += (uint64_t)n;
    }
    begin = now_ms() - begin;
    must(waitpid(pid, &status, 0) == pid && !status && !memcmp(copy, bytes, size));
    close(ends[0]);
    munmap(copy, size);
    return begin;
}

int main(void)
{
    struct player players[4] = {0}, *producer = &players[0], *worker = &players[1], *reader = &players[2],
                  *stranger = &players[3];
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    struct memclient_check_result check = MEMCLIENT_CHECK_RESULT_INIT;
    size_t n_players = geteuid() ? 3 : 4;
    struct message made, message;
    struct memclient_buffer *buf;
    uint64_t used_before;
    double begin, piped;
    int between[2];
    void *bytes;

    did(memclient_broker_query(NULL, &status));
    tell("A broker runs: pid %d, uid %u, with a keeper, pid %d. It owns the memory; processes borrow it.",
         status.broker_pid, status.broker_uid, status.keeper_pid);
    used_before = bytes_used();

    must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, between));
    start(producer, "producer", play_producer, between[0]);
    start(worker, "worker", play_worker, between[1]);
    start(reader, "reader", play_reader, -1);
    if (n_players == 4)
        start(stranger, "stranger", play_stranger, -1);
    close(between[0]);
    close(between[1]);

    hear(producer->line, &made, NULL);
    must(bytes_used() == used_before + size);
    tell("The producer (pid %d) allocated, shared and mapped %" PRIu64 " MiB in %.1f ms, every page of it committed,",
         producer->pid, size >> 20, made.handed_ms);
    tell("  as buffer #%" PRIu64 ", named \"" NAME "\", at address %p. It wrote a chain of %" PRIu64
         " pointers and %" PRIu64 " numbers",
         made.id, made.address, size / step, size / step * (step / 8 - 1));
    tell("  into it, in %.1f ms.", made.written_ms);

    hear(worker->line, &message, NULL);
    must(message.address == made.address);
    hear(producer->line, &message, NULL);
    tell("The worker got a descriptor over its own socket, imported it, and sees every byte at %p.", made.address);
    tell("  It wrote a number there, and the producer read it: one memory, no copy.");

    say(reader->line, &made, -1);
    hear(reader->line, &message, NULL);
    must(message.address == made.address);
    tell("The reader opened it by a token of 32 bytes and followed all pointers, at %p too.", message.address);
    tell("  The kernel refused it a writable mapping, mprotect and ftruncate.");
    if (n_players == 4) {
        say(stranger->line, &made, -1);
        hear(stranger->line, &message, NULL);
        must(message.address == made.address);
        tell("The stranger did the same as uid %d, at %p. Opening /proc/self/fd for writing was refused as well.",
             STRANGER, message.address);
    } else {
        tell("(Only root can play another user, so nobody did. Run it as root to see that.)");
    }

    tell("Who holds it, says the broker:");
    must(count_holders(made.id, players, n_players, false) == n_players);

    must(!kill(producer->pid, SIGKILL) && waitpid(producer->pid, NULL, 0) == producer->pid);
    begin = now_ms();
    must(wait_until(producer_is_gone, &(struct producer_watch){producer, made.id}));
    tell("The producer was killed (SIGKILL). %.1f ms later the broker had taken its hold away,", now_ms() - begin);
    for (struct player *p = reader; p < players + n_players; p++) {
        say(p->line, &made, -1);
        hear(p->line, &message, NULL);
    }
    tell("  and the others still read every byte.");

    kill_broker(players, n_players, &made, status.broker_pid);

    for (struct player *p = worker; p < players + n_players; p++) {
        say(p->line, &made, -1);
        finish(p);
    }
    did(memclient_open_name(NULL, NAME, 0, &buf));
    did(memclient_map(buf, NULL, &bytes));
    must(bytes == made.address && memclient_buffer_id(buf) == made.id);
    read_pages(bytes);
    must(*last_number(bytes) == 42);
    tell("All of them have ended. The name kept the buffer: main opened \"" NAME "\" and found every byte at %p.",
         bytes);

    piped = copy_through_pipe(bytes);
    tell("Copying those %" PRIu64 " MiB to another process through a pipe takes %.1f ms, for each reader;", size >> 20,
         piped);
    tell("  to allocate, share and map them took %.1f ms, once: %.1f times %s, and no byte is there twice.",
         made.handed_ms, piped > made.handed_ms ? piped / made.handed_ms : made.handed_ms / piped,
         piped > made.handed_ms ? "as fast" : "slower");

    did(memclient_unbind_name(NULL, NAME));
    did(memclient_unmap(NULL, bytes, 0));
    memclient_buffer_unref(buf);
    begin = now_ms();
    must(wait_until(memory_is_back, &used_before));
    did(memclient_broker_check(NULL, &check));
    must(!check.faults);
    tell("The name was unbound. %.1f ms later all memory was back in the pool, and the broker's books agree:",
         now_ms() - begin);
    tell("  %" PRIu64 " buffers and %" PRIu64 " records checked, no fault.", check.buffers, check.records);
    return 0;
}
