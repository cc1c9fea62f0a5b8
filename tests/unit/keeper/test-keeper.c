/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper, with real processes. It starts its own program again as the broker, and that is this test: with
 * --broker=FD it plays a broker that does what it is told, with --carrier=FD,FD a keeper that goes on.
 *
 * The orders come over a socket that the keeper holds as its listener, so each broker finds it; reports go back on it.
 */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/cleaner.h"
#include "keeper/fd_stash.h"
#include "keeper/keeper.h"
#include "keeper/link.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/fuse.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#define BUFFERS       500
#define HEARTBEAT_MS  10
#define IMPATIENCE_MS 500

enum order {
    ORDER_READY,
    ORDER_HOLD,     /* ids 1 to `value` */
    ORDER_DROP,     /* the id `value` */
    ORDER_DROP_ASK, /* … REPORT_DROPPED */
    ORDER_EXIT,     /* with status `value` */
    ORDER_KILL,     /* itself */
    ORDER_HANG,
    ORDER_UPGRADE,
    ORDER_PING,
    ORDER_USURP, /* the keeper's own descriptors */
    ORDER_LEAK,  /* forks a child that keeps everything open; that one reports PONG */
    ORDER_CLOSE, /* a file that nobody can close, of the server `value` */
    ORDER_CLOSE_IN_THREAD,
};

/* ORDER_READY */
enum { OBEYS, DEAF, LINGERS };

enum report_kind {
    REPORT_STARTED,
    REPORT_STOP,
    REPORT_RELOAD,
    REPORT_REFUSED,
    REPORT_DROPPED,
    REPORT_ORPHANED,
    REPORT_PONG,
};

struct message {
    int what;
    uint64_t value;
    /* of REPORT_STARTED */
    pid_t pid, keeper;
    uint64_t n_buffers, sum; /* of their ids */
    bool program;            /* it was handed one */
    bool previous;           /* it is one */
    ino_t which;             /* it was handed */
};

/* The soft limit; 0: to the hard one. */
static void limit_descriptors(rlim_t most)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = most ? most : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* ---- the broker -------------------------------------------------------------------------------------------------- */

struct fake {
    struct keeper_link *keeper;
    char **argv;
    int control;
    int program;
    int fds[BUFFERS + 1];
    size_t to_come; /* so many more */
    bool deaf;      /* to STOP */
    bool lingers;   /* … it obeys, but its process stays */
};

static void send_report(const struct fake *fake, const struct message *message)
{
    if (send(fake->control, message, sizeof(*message), MSG_NOSIGNAL) == sizeof(*message))
        return;
    /* the test is gone, and so are we all, the keeper first, which would start another */
    if (getppid() == keeper_pid(fake->keeper))
        kill(getppid(), SIGKILL);
    _exit(1);
}

static void report(const struct fake *fake, int what)
{
    const struct message message = {.what = what, .pid = getpid()};

    send_report(fake, &message);
}

static void count(void *userdata, size_t n)
{
    struct fake *fake = userdata;

    fake->to_come = n;
}

static int take(void *userdata, enum keeper_kind kind, uint64_t id, int fd)
{
    struct fake *fake = userdata;
    char name[8] = "";

    CHECK(fake->to_come--);
    if (kind == KEEPER_LISTENER) {
        fake->control = fd;
    } else if (kind == KEEPER_PROGRAM) {
        fake->program = fd;
    } else {
        CHECK(kind == KEEPER_BUFFER && id <= BUFFERS && fake->fds[id] < 0);
        /* it is the right one */
        CHECK(pread(fd, name, sizeof(name), 0) == sizeof(name) && (uint64_t)strtol(name, NULL, 10) == id);
        fake->fds[id] = fd;
    }
    return 0;
}

static void started(const struct fake *fake)
{
    const char *path = (const char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr)
    struct message message = {
        .what = REPORT_STARTED,
        .pid = getpid(),
        .keeper = keeper_pid(fake->keeper),
        .program = fake->program >= 0,
        .previous = !strncmp(path, "/dev/fd/", 8),
    };
    struct stat st;

    if (message.program && fstat(fake->program, &st) == 0)
        message.which = st.st_ino;

    for (uint64_t id = 1; id <= BUFFERS; id++)
        if (fake->fds[id] >= 0) {
            message.n_buffers++;
            message.sum += id;
        }
    send_report(fake, &message);
}

static void on_stop(void *userdata, enum keeper_stop how)
{
    const struct fake *fake = userdata;
    const struct message message = {.what = REPORT_STOP, .value = (uint64_t)how};

    send_report(fake, &message);
    if (fake->lingers) {
        keeper_link_send(fake->keeper, PACKET_LEFT);
        for (;;)
            pause();
    }
    if (!fake->deaf)
        _exit(0);
}

static void on_upgrade_refused(void *userdata, int error)
{
    const struct message message = {.what = REPORT_REFUSED, .value = (uint64_t)error};

    send_report(userdata, &message);
}

static void on_reload(void *userdata)
{
    const struct fake *fake = userdata;

    report(fake, REPORT_RELOAD);
    keeper_link_send(fake->keeper, PACKET_RELOADED);
}

static int enumerate(void *userdata, keeper_take_fn *give, void *to)
{
    const struct fake *fake = userdata;
    int r = give(to, KEEPER_LISTENER, 0, fake->control);

    for (uint64_t id = 1; id <= BUFFERS && !r; id++)
        if (fake->fds[id] >= 0)
            r = give(to, KEEPER_BUFFER, id, fake->fds[id]);
    return r;
}

static void on_orphaned(void *userdata)
{
    struct fake *fake = userdata;
    struct start start;
    int fd_stash[2];

    report(fake, REPORT_ORPHANED);
    CHECK(fd_stash_new(fd_stash) == 0);
    CHECK(fd_stash_fill(fd_stash[0], enumerate, fake) == 0);
    CHECK(start_init(&start, fake->argv) == 0);
    CHECK(start_keeper(&start, -1, fd_stash) == 0);
}

static struct fake fake_broker;

static void dropped(struct keeper_drop *drop)
{
    (void)drop;
    report(&fake_broker, REPORT_DROPPED);
}

static void hold(struct fake *fake, uint64_t n)
{
    for (uint64_t id = 1; id <= n; id++) {
        char name[8];

        snprintf(name, sizeof(name), "%u", (unsigned)id);
        fake->fds[id] = memfd_create("buffer", MFD_CLOEXEC);
        CHECK(fake->fds[id] >= 0 && pwrite(fake->fds[id], name, sizeof(name), 0) == sizeof(name));
        CHECK(keeper_hold(fake->keeper, KEEPER_BUFFER, id, fake->fds[id]) == 0);
    }
}

/* With a cleaner beside it. */
static void *close_in_vain(void *message)
{
    const struct fuse fuse = {.server = {.pid = (pid_t)((const struct message *)message)->value}};
    int fd = fuse_open(&fuse);

    CHECK(fd >= 0);
    close(fd);
    return NULL;
}

static void hang_in_close(struct fake *fake, struct message *message)
{
    pid_t cleaner = cleaner_start(keeper_link_fd(fake->keeper), 0);
    pthread_t thread;

    CHECK(cleaner > 0);
    keeper_link_tell_cleaner(fake->keeper, cleaner);
    if (message->what == ORDER_CLOSE)
        (void)close_in_vain(message);
    else
        CHECK(pthread_create(&thread, NULL, close_in_vain, message) == 0);
}

static void obey(struct fake *fake, struct message *message)
{
    static struct keeper_drop drop = {.done = dropped};

    switch ((enum order)message->what) {
    case ORDER_READY:
        fake->deaf = message->value == DEAF;
        fake->lingers = message->value == LINGERS;
        keeper_link_send(fake->keeper, PACKET_READY);
        break;
    case ORDER_HOLD:
        hold(fake, message->value);
        report(fake, REPORT_PONG);
        break;
    case ORDER_DROP:
        keeper_drop(fake->keeper, KEEPER_BUFFER, message->value);
        report(fake, REPORT_PONG);
        break;
    case ORDER_DROP_ASK:
        keeper_drop_then(fake->keeper, KEEPER_BUFFER, message->value, &drop);
        break;
    case ORDER_EXIT:
        _exit((int)message->value);
    case ORDER_KILL:
        kill(getpid(), SIGKILL);
        break;
    case ORDER_HANG:
        for (;;)
            pause();
    case ORDER_UPGRADE:
        keeper_link_send(fake->keeper, PACKET_UPGRADE);
        break;
    case ORDER_PING:
        report(fake, REPORT_PONG);
        break;
    case ORDER_USURP:
        CHECK(keeper_hold(fake->keeper, KEEPER_LISTENER, 0, STDIN_FILENO) == 0);
        keeper_drop(fake->keeper, KEEPER_LISTENER, 0);
        report(fake, REPORT_PONG);
        break;
    case ORDER_LEAK:
        if (fork())
            break;
        report(fake, REPORT_PONG);
        for (;;)
            pause();
    case ORDER_CLOSE:
    case ORDER_CLOSE_IN_THREAD:
        hang_in_close(fake, message);
        break;
    }
}

static int play_broker(char **argv)
{
    static const struct keeper_link_events events = {
        .stop = on_stop,
        .upgrade_refused = on_upgrade_refused,
        .reload = on_reload,
        .orphaned = on_orphaned,
    };
    struct fake *fake = &fake_broker;
    static struct message message;
    int socket;

    *fake = (struct fake){.argv = argv, .control = -1, .program = -1};
    memset(fake->fds, -1, sizeof(fake->fds));
    limit_descriptors(0);
    CHECK(start_read_option(strchr(argv[1], '=') + 1, &socket, 1));
    CHECK(keeper_link_new(&fake->keeper, socket) == 0);
    CHECK(keeper_link_receive(fake->keeper, count, take, fake) == 0 && !fake->to_come);
    started(fake);
    for (;;) {
        struct pollfd fds[] = {{.fd = fake->control, .events = POLLIN},
                               {.fd = keeper_link_fd(fake->keeper), .events = POLLIN}};

        poll(fds, 2, HEARTBEAT_MS);
        keeper_link_send(fake->keeper, PACKET_HEARTBEAT);
        if (fds[1].revents)
            CHECK(keeper_link_dispatch(fake->keeper, &events, fake) == 0);
        if (fds[0].revents) {
            /* the test is gone */
            if (recv(fake->control, &message, sizeof(message), 0) != sizeof(message))
                _exit(0);
            obey(fake, &message);
        }
    }
}

/* ---- the keeper -------------------------------------------------------------------------------------------------- */

struct settings {
    bool inherited;
    bool program; /* there is a previous one */
    bool impatient;
    bool careless;         /* who starts it ignores children */
    rlim_t nofile;         /* 0: as it is */
    const char *installed; /* NULL: this program */
};

/* Another file than the one that runs. */
static int copy_of_this_program(void)
{
    _cleanup_close_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = memfd_create("previous", MFD_CLOEXEC);
    struct stat st;

    CHECK(from >= 0 && to >= 0 && fstat(from, &st) == 0);
    for (off_t at = 0; at < st.st_size;)
        CHECK(sendfile(to, from, &at, (size_t)(st.st_size - at)) > 0);
    return to;
}

static int run_keeper(char **argv, const struct settings *settings, const int *fd_stash, int control)
{
    struct keeper keeper;
    int status;

    CHECK(keeper_init(&keeper, settings->nofile ? settings->nofile : 2 * BUFFERS, argv) == 0);
    keeper.inherited = settings->inherited;
    if (settings->installed) {
        free(keeper.start.path);
        keeper.start.path = strdup(settings->installed);
    }
    if (settings->impatient) {
        keeper.tick_ms = 10;
        keeper.unresponsive_max_ms = IMPATIENCE_MS;
        keeper.hangs_ms = 20;
    }
    if (fd_stash) {
        CHECK(fd_stash_drain(fd_stash[1], store_take_in, &keeper.store) == 0);
        fd_close(fd_stash[0]);
        fd_close(fd_stash[1]);
    } else {
        store_take_in(&keeper.store, KEEPER_LISTENER, 0, control);
    }
    if (settings->program)
        store_take_in(&keeper.store, KEEPER_PROGRAM, 0, copy_of_this_program());
    status = keeper_run(&keeper);
    keeper_deinit(&keeper);
    return status;
}

static int go_on_as_keeper(char **argv)
{
    const struct settings settings = {.inherited = true};
    int fd_stash[2];

    CHECK(start_read_option(strchr(argv[1], '=') + 1, fd_stash, 2));
    return run_keeper(argv, &settings, fd_stash, -1);
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

static char *program[] = {(char *)"test-keeper", NULL};
static pid_t keeper_pid_;
static int control;

static void begin(const struct settings *settings)
{
    int ends[2];

    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    control = ends[0];
    keeper_pid_ = fork();
    assert_ok(keeper_pid_);
    if (!keeper_pid_) {
        fd_close(ends[0]);
        /* it gets orphans, as the first process of a container does */
        CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
        if (settings->careless)
            CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
        if (settings->nofile)
            limit_descriptors(settings->nofile);
        _exit(run_keeper(program, settings, NULL, ends[1]));
    }
    fd_close(ends[1]);
}

static void order(enum order what, uint64_t value)
{
    const struct message message = {.what = what, .value = value};

    assert_int_equal(send(control, &message, sizeof(message), MSG_NOSIGNAL), sizeof(message));
}

static struct message expect(enum report_kind what)
{
    struct message message;
    ssize_t n;

    assert_true(wait_readable(control));
    n = recv(control, &message, sizeof(message), 0);
    /* all have ended with an order unread; what they said before lies behind this */
    if (n < 0 && errno == ECONNRESET)
        n = recv(control, &message, sizeof(message), 0);
    assert_int_equal(n, sizeof(message));
    assert_int_equal(message.what, what);
    return message;
}

static void ends_with(int wanted)
{
    int status;

    assert_int_equal(waitpid(keeper_pid_, &status, 0), keeper_pid_);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), wanted);
    control = fd_close(control);
}

static void stop_it(void)
{
    assert_ok(kill(keeper_pid_, SIGTERM));
    assert_true(expect(REPORT_STOP).value);
    ends_with(0);
}

/* A broker that serves and holds so many. */
static struct message serve(const struct settings *settings, uint64_t n)
{
    struct message first;

    begin(settings);
    first = expect(REPORT_STARTED);
    assert_int_equal(first.keeper, keeper_pid_);
    order(ORDER_READY, 0);
    if (n) {
        order(ORDER_HOLD, n);
        (void)expect(REPORT_PONG);
    }
    return first;
}

/* While this file is there, a program finds some. */
static const char mistakes[] = "mistakes";

static const struct settings plain;
static const struct settings impatient = {.impatient = true};

static void what_is_held_goes_to_the_next_broker(void **state)
{
    struct message first = serve(&plain, BUFFERS);
    struct message next;

    order(ORDER_DROP, 7);
    (void)expect(REPORT_PONG);
    order(ORDER_DROP_ASK, 9);
    (void)expect(REPORT_DROPPED);
    for (int round = 0; round < 3; round++) {
        order(round ? ORDER_KILL : ORDER_EXIT, 1);
        next = expect(REPORT_STARTED);
        assert_int_not_equal(next.pid, first.pid);
        assert_int_equal(next.keeper, first.keeper);
        assert_int_equal(next.n_buffers, BUFFERS - 2);
        assert_int_equal(next.sum, BUFFERS * (BUFFERS + 1) / 2 - 7 - 9);
        order(ORDER_READY, 0);
    }
    stop_it();
}

/* What was sent is there, though nobody had read it when the broker died. */
static void nothing_is_lost_on_the_way(void **state)
{
    struct message next;

    (void)serve(&plain, 0);
    order(ORDER_PING, 0);
    (void)expect(REPORT_PONG);
    assert_ok(kill(keeper_pid_, SIGSTOP));
    order(ORDER_HOLD, 60);
    (void)expect(REPORT_PONG);
    order(ORDER_KILL, 0);
    assert_ok(kill(keeper_pid_, SIGCONT));
    next = expect(REPORT_STARTED);
    assert_int_equal(next.n_buffers, 60);
    order(ORDER_READY, 0);
    stop_it();
}

/* However many descriptors it has, another one can be started, and given what it did not refuse. */
static void one_that_hoards_is_replaced(void **state)
{
    const struct settings poor = {.nofile = 100};
    struct message next;

    (void)serve(&poor, 0);
    order(ORDER_PING, 0);
    (void)expect(REPORT_PONG);
    assert_ok(kill(keeper_pid_, SIGSTOP));
    order(ORDER_HOLD, 150);
    (void)expect(REPORT_PONG);
    assert_ok(kill(keeper_pid_, SIGCONT));
    next = expect(REPORT_STARTED);
    assert_true(next.n_buffers >= 50 && next.n_buffers < 100);
    order(ORDER_READY, 0);
    stop_it();
}

/* The keeper's own: who can neither exchange nor drop them cannot keep the next broker from starting. */
static void what_is_the_keepers_stays(void **state)
{
    (void)serve(&plain, 0);
    order(ORDER_USURP, 0);
    (void)expect(REPORT_PONG);
    order(ORDER_KILL, 0);
    (void)expect(REPORT_STARTED);
    order(ORDER_READY, 0);
    stop_it();
}

static void a_first_broker_that_cannot_start_ends_it(void **state)
{
    begin(&plain);
    (void)expect(REPORT_STARTED);
    order(ORDER_EXIT, 3);
    ends_with(3);
}

static void how_it_ended_is_known_to_who_ignored_children(void **state)
{
    const struct settings careless = {.careless = true};

    begin(&careless);
    (void)expect(REPORT_STARTED);
    order(ORDER_EXIT, 3);
    ends_with(3);
}

/* Its end does not wait for others that have its end of the socket; and those are reaped, too. */
static void one_whose_socket_others_have(void **state)
{
    struct message next;
    pid_t other;

    (void)serve(&plain, 3);
    order(ORDER_LEAK, 0);
    other = expect(REPORT_PONG).pid;
    order(ORDER_KILL, 0);
    next = expect(REPORT_STARTED);
    assert_int_equal(next.n_buffers, 3);
    order(ORDER_READY, 0);
    assert_ok(kill(other, SIGKILL));
    assert_true(WAIT_UNTIL(kill(other, 0) < 0));
    stop_it();
}

static void one_that_is_killed_before_it_serves_is_started_again(void **state)
{
    begin(&plain);
    /* and soon, each time: the next one may be left alone */
    for (int round = 0; round < 12; round++) {
        (void)expect(REPORT_STARTED);
        order(ORDER_KILL, 0);
    }
    (void)expect(REPORT_STARTED);
    order(ORDER_READY, 0);
    order(ORDER_EXIT, 0);
    /* nobody needs it any more */
    ends_with(0);
}

static void what_was_taken_over_is_never_given_up(void **state)
{
    const struct settings settings = {.inherited = true};

    begin(&settings);
    for (int round = 0; round < 4; round++) {
        (void)expect(REPORT_STARTED);
        order(ORDER_EXIT, 3);
    }
    (void)expect(REPORT_STARTED);
    order(ORDER_READY, 0);
    stop_it();
}

static void signals(void **state)
{
    struct message first = serve(&plain, 0);

    order(ORDER_PING, 0);
    (void)expect(REPORT_PONG);
    assert_ok(kill(keeper_pid_, SIGHUP));
    (void)expect(REPORT_RELOAD);
    /* these are the keeper's */
    assert_ok(kill(first.pid, SIGTERM));
    assert_ok(kill(first.pid, SIGINT));
    assert_ok(kill(first.pid, SIGHUP));
    assert_ok(kill(first.pid, SIGABRT));
    order(ORDER_PING, 0);
    assert_int_equal(expect(REPORT_PONG).pid, first.pid);
    stop_it();
}

/* It may have looked already, so it is asked to look again. */
static void a_broker_that_starts_is_told_to_reload(void **state)
{
    begin(&plain);
    (void)expect(REPORT_STARTED);
    assert_ok(kill(keeper_pid_, SIGHUP));
    (void)expect(REPORT_RELOAD);
    order(ORDER_READY, 0);
    stop_it();
}

static void asked_twice_it_ends_at_once(void **state)
{
    begin(&plain);
    (void)expect(REPORT_STARTED);
    order(ORDER_READY, DEAF);
    order(ORDER_PING, 0);
    (void)expect(REPORT_PONG);
    assert_ok(kill(keeper_pid_, SIGTERM));
    (void)expect(REPORT_STOP);
    assert_ok(kill(keeper_pid_, SIGTERM));
    ends_with(0);
}

static void a_broker_that_hangs_is_replaced(void **state)
{
    struct message first = serve(&impatient, 3);
    struct message next;

    order(ORDER_HANG, 0);
    next = expect(REPORT_STARTED);
    assert_int_not_equal(next.pid, first.pid);
    assert_int_equal(next.n_buffers, 3);
    order(ORDER_READY, 0);
    stop_it();
}

static void one_that_is_stopped_is_not(void **state)
{
    struct message first = serve(&impatient, 0);

    order(ORDER_PING, 0);
    (void)expect(REPORT_PONG);
    assert_ok(kill(first.pid, SIGSTOP));
    /* more than a silent one gets */
    poll(NULL, 0, 2 * IMPATIENCE_MS);
    assert_ok(kill(first.pid, SIGCONT));
    order(ORDER_PING, 0);
    assert_int_equal(expect(REPORT_PONG).pid, first.pid);
    stop_it();
}

static void a_ledger_that_it_cannot_read(void **state)
{
    const struct settings settings = {.program = true};
    struct message next = serve(&settings, 5);

    assert_true(next.program);
    for (int round = 0; round < 2; round++) {
        /* each such end starts the previous program once */
        order(ORDER_EXIT, KEEPER_EXIT_LEDGER);
        next = expect(REPORT_STARTED);
        assert_true(next.previous);
        assert_int_equal(next.n_buffers, 5);
        order(ORDER_READY, 0);
        order(ORDER_KILL, 0);
        next = expect(REPORT_STARTED);
        assert_false(next.previous);
    }
    order(ORDER_READY, 0);
    stop_it();

    begin(&plain);
    (void)expect(REPORT_STARTED);
    order(ORDER_EXIT, KEEPER_EXIT_LEDGER);
    ends_with(KEEPER_EXIT_LEDGER);
}

static void an_upgrade_in_place(void **state)
{
    struct message first = serve(&plain, BUFFERS);
    struct message next;

    assert_false(first.program);
    order(ORDER_UPGRADE, 0);
    /* so that it knows, should the keeper be killed meanwhile, that all of it is to go on */
    assert_false(expect(REPORT_STOP).value);
    next = expect(REPORT_STARTED);
    assert_int_equal(next.keeper, keeper_pid_);
    assert_int_not_equal(next.pid, first.pid);
    assert_int_equal(next.n_buffers, BUFFERS);
    assert_true(next.program);
    order(ORDER_READY, 0);
    stop_it();
}

static bool is_running(pid_t pid)
{
    char path[40], target[8];

    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    return readlink(path, target, sizeof(target)) > 0;
}

/* It is in the kernel's hands, which may have much to do for it. */
static void nobody_waits_for_the_process_of_one_that_has_left(void **state)
{
    struct message first, next;

    begin(&plain);
    first = expect(REPORT_STARTED);
    order(ORDER_READY, LINGERS);
    order(ORDER_HOLD, 5);
    (void)expect(REPORT_PONG);
    order(ORDER_UPGRADE, 0);
    (void)expect(REPORT_STOP);
    next = expect(REPORT_STARTED);
    assert_int_equal(next.n_buffers, 5);
    assert_true(is_running(first.pid));
    /* it goes when it goes, and nobody takes that for the end of the next one */
    assert_ok(kill(first.pid, SIGKILL));
    order(ORDER_READY, LINGERS);
    order(ORDER_PING, 0);
    assert_int_equal(expect(REPORT_PONG).pid, next.pid);
    assert_true(WAIT_UNTIL(kill(first.pid, 0) < 0));
    stop_it();
    assert_true(is_running(next.pid));
    assert_ok(kill(next.pid, SIGKILL));
}

/* What cannot take our place is told to the broker, which goes on; all that was held is with nobody else meanwhile. */
static void an_upgrade_to_no_program(void **state)
{
    static const struct {
        const char *path;
        int error;
    } installed[] = {
        {"/nonexistent/memoryd", ENOENT}, {"/etc/passwd", EACCES}, {"/", EACCES},
        {"/bin/false", ENOEXEC}, /* as one that lacks a library */
        {"/bin/true", ENOEXEC},
    };

    for (size_t i = 0; i < sizeof(installed) / sizeof(*installed); i++) {
        const struct settings settings = {.installed = installed[i].path};
        struct message first = serve(&settings, 3);

        for (int round = 0; round < 2; round++) {
            order(ORDER_UPGRADE, 0);
            assert_int_equal(expect(REPORT_REFUSED).value, installed[i].error);
        }
        order(ORDER_PING, 0);
        assert_int_equal(expect(REPORT_PONG).pid, first.pid);
        stop_it();
    }
}

/* The program that is installed reads the configuration first, as the broker of that socket would. */
static void an_upgrade_with_mistakes_in_the_configuration(void **state)
{
    struct message first = serve(&plain, 3);

    fd_close(open(mistakes, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (int round = 0; round < 2; round++) {
        order(ORDER_UPGRADE, 0);
        assert_int_equal(expect(REPORT_REFUSED).value, KEEPER_REFUSED_CONFIG);
    }
    assert_ok(unlink(mistakes));
    order(ORDER_UPGRADE, 0);
    (void)expect(REPORT_STOP);
    assert_int_not_equal(expect(REPORT_STARTED).pid, first.pid);
    order(ORDER_READY, 0);
    stop_it();
}

/* The only one that can read the ledger must not be forgotten for one that cannot. */
static void an_upgrade_of_what_could_not_read_the_ledger(void **state)
{
    const struct settings settings = {.program = true};
    struct message first = serve(&settings, 0);
    struct message next;

    order(ORDER_EXIT, KEEPER_EXIT_LEDGER);
    assert_true(expect(REPORT_STARTED).previous);
    order(ORDER_READY, 0);
    order(ORDER_UPGRADE, 0);
    (void)expect(REPORT_STOP);
    next = expect(REPORT_STARTED);
    assert_false(next.previous);
    assert_int_equal(next.which, first.which);
    /* while one that was read by the program that runs gives way to it */
    order(ORDER_READY, 0);
    order(ORDER_UPGRADE, 0);
    (void)expect(REPORT_STOP);
    assert_int_not_equal(expect(REPORT_STARTED).which, first.which);
    order(ORDER_READY, 0);
    stop_it();
}

/* ---- brokers that cannot end ------------------------------------------------------------------------------------- */

static struct fuse unclosable = {.server = {.channel = -1}};

static void begin_unclosable(void)
{
    if (test_under_valgrind())
        test_skip("valgrind makes no process that shares descriptors");
    fuse_start(&unclosable);
}

static int no_longer_unclosable(void **state)
{
    (void)state;
    fuse_stop(&unclosable);
    return 0;
}

/* It is killed for its silence, and no descriptor of it is closed. */
static void one_whose_first_thread_hangs_is_replaced(void **state)
{
    struct message first;
    struct message next;

    (void)state;
    begin_unclosable();
    first = serve(&impatient, 3);
    order(ORDER_CLOSE, (uint64_t)unclosable.server.pid);
    next = expect(REPORT_STARTED);
    assert_int_not_equal(next.pid, first.pid);
    assert_int_equal(next.n_buffers, 3);
    assert_ok(kill(first.pid, 0));
    order(ORDER_READY, 0);
    fuse_stop(&unclosable);
    assert_true(WAIT_UNTIL(kill(first.pid, 0) < 0));
    stop_it();
}

static void so_many_may_hang_and_no_more(void **state)
{
    struct message now;

    (void)state;
    begin_unclosable();
    now = serve(&impatient, 0);
    for (unsigned n = 1; n <= KEEPER_DEPARTED_MAX; n++) {
        order(ORDER_CLOSE_IN_THREAD, (uint64_t)unclosable.server.pid);
        assert_true(WAIT_UNTIL(fuse_flushes(&unclosable) == n));
        assert_ok(kill(now.pid, SIGKILL));
        if (n < KEEPER_DEPARTED_MAX)
            now = expect(REPORT_STARTED);
        order(ORDER_READY, 0);
    }
    /* longer than it takes to see that it hangs */
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    assert_true(stays_quiet(control));
    fuse_stop(&unclosable);
    (void)expect(REPORT_STARTED);
    stop_it();
}

/* The broker goes on as the keeper, with a broker of its own; again and again. */
static void a_keeper_that_is_killed(void **state)
{
    struct message now = serve(&plain, BUFFERS);

    for (int round = 0; round < 3; round++) {
        struct message next;

        assert_ok(kill(now.keeper, SIGKILL));
        (void)expect(REPORT_ORPHANED);
        next = expect(REPORT_STARTED);
        assert_int_equal(next.keeper, now.pid);
        assert_int_equal(next.n_buffers, BUFFERS);
        order(ORDER_READY, 0);
        now = next;
    }
    assert_int_equal(waitpid(keeper_pid_, NULL, 0), keeper_pid_);
    assert_ok(kill(now.keeper, SIGTERM));
    (void)expect(REPORT_STOP);
    assert_true(WAIT_UNTIL(recv(control, &now, sizeof(now), MSG_DONTWAIT) == 0));
    control = fd_close(control);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_goes_to_the_next_broker),
        cmocka_unit_test(nothing_is_lost_on_the_way),
        cmocka_unit_test(a_first_broker_that_cannot_start_ends_it),
        cmocka_unit_test(one_that_hoards_is_replaced),
        cmocka_unit_test(what_is_the_keepers_stays),
        cmocka_unit_test(how_it_ended_is_known_to_who_ignored_children),
        cmocka_unit_test(one_whose_socket_others_have),
        cmocka_unit_test(one_that_is_killed_before_it_serves_is_started_again),
        cmocka_unit_test(what_was_taken_over_is_never_given_up),
        cmocka_unit_test(signals),
        cmocka_unit_test(a_broker_that_starts_is_told_to_reload),
        cmocka_unit_test(asked_twice_it_ends_at_once),
        cmocka_unit_test(a_broker_that_hangs_is_replaced),
        cmocka_unit_test(one_that_is_stopped_is_not),
        cmocka_unit_test(a_ledger_that_it_cannot_read),
        cmocka_unit_test(an_upgrade_in_place),
        cmocka_unit_test(nobody_waits_for_the_process_of_one_that_has_left),
        cmocka_unit_test(an_upgrade_to_no_program),
        cmocka_unit_test(an_upgrade_with_mistakes_in_the_configuration),
        cmocka_unit_test(an_upgrade_of_what_could_not_read_the_ledger),
        cmocka_unit_test_teardown(one_whose_first_thread_hangs_is_replaced, no_longer_unclosable),
        cmocka_unit_test_teardown(so_many_may_hang_and_no_more, no_longer_unclosable),
        cmocka_unit_test(a_keeper_that_is_killed),
    };

    if (argc > 1 && !strcmp(argv[1], "--version"))
        return puts("memoryd of this test") < 0;
    if (argc > 1 && !strcmp(argv[argc - 1], "--check-config"))
        return access(mistakes, F_OK) ? 0 : 3;
    if (argc > 1 && !strncmp(argv[1], "--broker=", 9))
        return play_broker(argv);
    if (argc > 1 && !strncmp(argv[1], "--carrier=", 10))
        return go_on_as_keeper(argv);
    return test_run(tests, NULL, NULL);
}
