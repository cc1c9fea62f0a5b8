/* SPDX-License-Identifier: Apache-2.0 */
/* See broker.h. */
#include "tests/integration/broker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/methods.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

static const char *program(void)
{
    static char path[4096];
    const char *given = getenv("MEMORYD");
    const char *builddir = getenv("builddir");

    if (given)
        return given;
    snprintf(path, sizeof(path), "%s/daemon/memoryd", builddir ? builddir : ".");
    return path;
}

static void write_config(struct broker_process *broker, const char *extra)
{
    FILE *f = fopen(broker->config, "we");

    assert_non_null(f);
    fprintf(f, "[pools]\n%s[arena]\nbase = 0x566000000000\nsize = 128G\n%s",
            extra && strstr(extra, "pages = auto") ? "" : "pages = base\n", extra ? extra : "");
    assert_int_equal(fclose(f), 0);
}

/* As a service manager does: the socket is there before the broker, which need not have the right to make one. */
static int listen_for(const struct broker_process *broker)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    assert_ok(fd);
    memcpy(address.sun_path, broker->socket, strlen(broker->socket) + 1);
    assert_ok(bind(fd, (const struct sockaddr *)&address, sizeof(address)));
    assert_ok(chmod(broker->socket, 0666));
    assert_ok(listen(fd, SOMAXCONN));
    return fd;
}

/* In the child, for good. */
static void take_socket_and_user(int listener, uid_t uid)
{
    char pid[16];

    snprintf(pid, sizeof(pid), "%d", getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    CHECK(listener == 3 ? fcntl(3, F_SETFD, 0) == 0 : dup2(listener, 3) == 3);
    become(uid);
}

/* uid == 0: as the test runs, on a socket of its own */
static void launch(struct broker_process *broker, const char *extra, unsigned nofile, uid_t uid)
{
    static unsigned n;
    const char *folder = getenv("TMPDIR");
    int listener = -1;

    n++;
    snprintf(broker->socket, sizeof(broker->socket), "%s/%d.%u.sock", folder ? folder : "/tmp", getpid(), n);
    snprintf(broker->config, sizeof(broker->config), "%s.conf", broker->socket);
    snprintf(broker->log, sizeof(broker->log), "%s.log", broker->socket);
    write_config(broker, extra);
    assert_ok(access(program(), X_OK));
    broker->socket_is_ours = uid != 0;
    if (uid) {
        assert_ok(chmod(broker->config, 0644));
        listener = listen_for(broker);
    }
    fflush(NULL);
    broker->pid = fork();
    assert_ok(broker->pid);
    if (!broker->pid) {
        int log = open(broker->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* all of it can be killed at once */
        setpgid(0, 0);
        if (nofile) {
            struct rlimit limit = {.rlim_cur = nofile, .rlim_max = nofile};

            setrlimit(RLIMIT_NOFILE, &limit);
        }
        dup2(log, STDERR_FILENO);
        setenv("MEMORYD_LOG", "info", 1);
        if (uid) {
            take_socket_and_user(listener, uid);
            execl(program(), "memoryd", "--config", broker->config, (char *)NULL);
        } else {
            execl(program(), "memoryd", "--socket", broker->socket, "--config", broker->config, (char *)NULL);
        }
        fprintf(stderr, "cannot run %s: %s\n", program(), strerror(errno));
        _exit(126);
    }
    broker->group = broker->pid;
    fd_close(listener);
}

static void print_log(const struct broker_process *broker)
{
    char buffer[4096];
    int fd = open(broker->log, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    while ((n = read(fd, buffer, sizeof(buffer))) > 0)
        fwrite(buffer, 1, (size_t)n, stderr);
    close(fd);
}

/* What a broker says when it serves. old-version.sh runs one that says it in other words. */
static const char *words_when_ready(void)
{
    const char *words = getenv("MEMORYD_READY");

    return words ? words : "is listening on";
}

static void start(struct broker_process *broker, const char *extra, unsigned nofile, uid_t uid)
{
    launch(broker, extra, nofile, uid);
    /* one may connect before: the socket is there, and the broker comes */
    if (!WAIT_UNTIL(broker_said(broker, words_when_ready()) || !broker_lives(broker)) || !broker_lives(broker)) {
        print_log(broker);
        fail_msg("memoryd does not serve");
    }
}

void broker_start(struct broker_process *broker, const char *extra, unsigned nofile)
{
    start(broker, extra, nofile, 0);
}

void broker_start_as(struct broker_process *broker, const char *extra, uid_t uid)
{
    start(broker, extra, 0, uid);
}

void broker_start_as_with_nofile(struct broker_process *broker, const char *extra, uid_t uid, unsigned nofile)
{
    start(broker, extra, nofile, uid);
}

static void forget_files(const struct broker_process *broker)
{
    unlink(broker->config);
    unlink(broker->log);
}

pid_t broker_child(const struct broker_process *broker)
{
    pid_t child = -1;

    assert_true(WAIT_UNTIL((child = youngest_child_of(broker->pid)) > 0));
    return child;
}

void broker_kill_child(const struct broker_process *broker)
{
    pid_t pid = broker_child(broker);

    assert_ok(kill(pid, SIGKILL));
    assert_true(WAIT_UNTIL(broker_child(broker) != pid));
}

void broker_kill_keeper(struct broker_process *broker)
{
    pid_t keeper = broker->pid, next = broker_child(broker);

    /* its child becomes ours, so that we see its end, too */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_ok(kill(keeper, SIGKILL));
    assert_int_equal(waitpid(keeper, NULL, 0), keeper);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    broker->pid = next;
    (void)broker_child(broker);
}

static int wait_for(struct broker_process *broker)
{
    int status = 0;

    if (!WAIT_UNTIL(waitpid(broker->pid, &status, WNOHANG) == broker->pid)) {
        broker_kill(broker);
        fail_msg("memoryd does not end");
    }
    broker->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int broker_run(struct broker_process *broker, const char *extra)
{
    launch(broker, extra, 0, 0);
    return wait_for(broker);
}

void broker_stop(struct broker_process *broker)
{
    int status;

    kill(broker->pid, SIGTERM);
    status = wait_for(broker);
    if (status)
        print_log(broker);
    assert_int_equal(status, 0);
    if (broker->socket_is_ours)
        unlink(broker->socket);
    assert_int_equal(access(broker->socket, F_OK), -1);
    forget_files(broker);
}

void broker_crash(struct broker_process *broker)
{
    /* the keeper's child becomes ours, so that we see the end of both */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    kill(-broker->group, SIGKILL);
    while (waitpid(-broker->group, NULL, 0) > 0)
        ;
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    broker->pid = 0;
}

void broker_kill(struct broker_process *broker)
{
    broker_crash(broker);
    print_log(broker);
    unlink(broker->socket);
    forget_files(broker);
}

bool broker_said(const struct broker_process *broker, const char *what)
{
    static char text[1 << 18];
    int fd = open(broker->log, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof(text) - 1);

    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, what) != NULL;
}

bool broker_lives(const struct broker_process *broker)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)broker->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

unsigned broker_count_fds(pid_t pid)
{
    char path[64];
    unsigned n = 0;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

/* ---- raw clients ------------------------------------------------------------------------------------------------- */

/* A descriptor, or -1 and errno. */
static int try_to_connect(const struct broker_process *broker)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    FD_AUTO int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, broker->socket, strlen(broker->socket) + 1);
    return fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -1 : steal_fd(&fd);
}

int raw_connect(const struct broker_process *broker)
{
    int fd = try_to_connect(broker);

    assert_ok(fd);
    return fd;
}

int raw_connect_in_child(const struct broker_process *broker)
{
    int fd = try_to_connect(broker);

    CHECK(fd >= 0);
    return fd;
}

int raw_connect_as(const struct broker_process *broker, uid_t uid)
{
    uid_t own = geteuid();
    int fd;

    assert_ok(seteuid(uid));
    fd = raw_connect(broker);
    assert_ok(seteuid(own));
    return fd;
}

/* The next packet, into `packet`; returns how long it is. */
static size_t make_packet(uint8_t *packet, uint16_t method, const void *payload, size_t size, unsigned n_fds,
                          uint64_t *ret_sequence)
{
    static uint64_t sequence;
    struct frame_header header = {
        .method = method, .fd_count = (uint16_t)n_fds, .payload_length = (uint32_t)size, .sequence = ++sequence};

    frame_encode(packet, FRAME_FROM_CLIENT, &header);
    if (size)
        memcpy(packet + MEMORYD_HEADER_SIZE, payload, size);
    *ret_sequence = sequence;
    return MEMORYD_HEADER_SIZE + size;
}

uint64_t raw_send(int fd, uint16_t method, const void *payload, size_t size, const int *fds, unsigned n_fds)
{
    static uint8_t packet[MEMORYD_FRAME_MAX];
    uint64_t sequence;
    size_t length = make_packet(packet, method, payload, size, n_fds, &sequence);

    assert_int_equal(fd_send(fd, packet, length, fds, n_fds, 0), length);
    return sequence;
}

void raw_send_if_open(int fd, uint16_t method)
{
    uint8_t packet[MEMORYD_HEADER_SIZE];
    uint64_t sequence;
    size_t length = make_packet(packet, method, NULL, 0, 0, &sequence);

    if (fd_send(fd, packet, length, NULL, 0, MSG_NOSIGNAL) < 0)
        assert_true(errno == EPIPE || errno == ECONNRESET);
}

void raw_receive(int fd, struct raw_reply *reply)
{
    static uint8_t packet[MEMORYD_FRAME_MAX];
    struct frame_header header;
    const uint8_t *payload;
    struct fd_received received;

    reply->size = -1;
    if (!wait_readable(fd))
        return;
    received = fd_receive(fd, packet, sizeof(packet), 64, MSG_DONTWAIT);
    reply->size = received.size;
    reply->n_fds = received.n;
    if (received.size < 0 && errno == ECONNRESET)
        reply->size = 0;
    if (received.size > 0) {
        assert_int_equal(frame_decode(packet, (size_t)received.size, received.n, FRAME_FROM_BROKER, &header, &payload),
                         0);
        reply->method = header.method;
        reply->sequence = header.sequence;
        reply->status = header.status;
        memcpy(reply->payload, payload, header.payload_length);
    }
    fd_received_close(&received);
}

uint32_t raw_call(int fd, uint16_t method, const void *payload, size_t size)
{
    static struct raw_reply reply;
    uint64_t sequence = raw_send(fd, method, payload, size, NULL, 0);

    raw_receive(fd, &reply);
    assert_true(reply.size > 0);
    assert_int_equal(reply.sequence, sequence);
    assert_int_equal(reply.method, method);
    return reply.status;
}

int raw_client_as(const struct broker_process *broker, uid_t uid)
{
    int fd = raw_connect_as(broker, uid);

    /* the empty message: version 0 to 0, a new session; no reply is kept, and none needs to be acknowledged */
    assert_int_equal(raw_call(fd, METHOD_HELLO, NULL, 0), 0);
    return fd;
}

int raw_client(const struct broker_process *broker)
{
    return raw_client_as(broker, geteuid());
}

bool raw_is_served(int fd)
{
    return raw_call(fd, METHOD_PING, NULL, 0) == 0;
}

bool raw_has_ended(int fd)
{
    static struct raw_reply reply;

    do
        raw_receive(fd, &reply);
    while (reply.size > 0);
    return reply.size == 0;
}
