/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each line is composed in a buffer and written by one call, so that lines of several threads do not mix and a line is
 * either complete or missing.
 *
 * A line about a client begins with what the kernel says of it, before anything that the client chose, and the name of
 * its program, which it chose, is quoted: nothing in a line can look like a line about another client.
 *
 * Nobody waits until a line is read. Whoever reads the log may have stopped (a pipe to a pager, a terminal), and
 * anybody may flood the journal. A line that is not taken at once is lost, and the next one says how many were.
 */

#include "log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/printable.h"
#include "log/limit.h"

#define LINE_MAX_BYTES 1024
#define JOURNAL_SOCKET "/run/systemd/journal/socket"
/* The kernel's name of a program has 15 bytes; a quoted byte takes up to four. */
#define PROGRAM_BYTES (4 * 16 + 3)

static enum log_level threshold = LOG_LEVEL_NOTICE;
static bool to_journal;
static struct log_limit limit;
static unsigned long suppressed_total;
static atomic_uint lines_lost; /* since the last one that was written */

static const struct {
    const char *word;
    int priority;
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", LOG_ERR},      [LOG_LEVEL_WARNING] = {"warning", LOG_WARNING},
    [LOG_LEVEL_NOTICE] = {"notice", LOG_NOTICE}, [LOG_LEVEL_INFO] = {"info", LOG_INFO},
    [LOG_LEVEL_DEBUG] = {"debug", LOG_DEBUG},
};

bool log_set_level(const char *word)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
        if (!strcmp(word, levels[i].word)) {
            threshold = (enum log_level)i;
            return true;
        }
    }
    return false;
}

bool log_enabled(enum log_level level)
{
    return level <= threshold;
}

/* systemd says in $JOURNAL_STREAM which file the journal is; a redirected standard error is another file. */
static bool stderr_is_journal(void)
{
    const char *stream = secure_getenv("JOURNAL_STREAM");
    unsigned long long device;
    unsigned long long inode;
    struct stat st;
    char *end;

    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return false;
    device = strtoull(stream, &end, 10);
    if (*end != ':')
        return false;
    inode = strtoull(end + 1, &end, 10);
    return !*end && device == st.st_dev && inode == st.st_ino;
}

void log_init(void)
{
    const char *word = secure_getenv("MEMORYD_LOG");

    to_journal = stderr_is_journal();
    if (word && !log_set_level(word))
        log_warning("MEMORYD_LOG=%.32s is not a level; use error, warning, notice, info or debug", word);
}

bool log_is_journal(void)
{
    return to_journal;
}

void log_to_journal(void)
{
    to_journal = true;
}

/* What says that it takes something takes a line: a pipe a page, a socket a quarter of its buffer. */
static bool stderr_take(const char *line, size_t length)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (poll(&out, 1, 0) == 0)
        return false;
    /* a log that is closed cannot be reported anywhere */
    ssize_t ignored = write(STDERR_FILENO, line, length);
    (void)ignored;
    return true;
}

static bool write_text(enum log_level level, const char *message)
{
    char line[LINE_MAX_BYTES + 32];
    int length = snprintf(line, sizeof(line), "memoryd: %s%s%s\n", level < LOG_LEVEL_NOTICE ? levels[level].word : "",
                          level < LOG_LEVEL_NOTICE ? ": " : "", message);

    if (length < 0)
        return true;
    if ((size_t)length >= sizeof(line))
        length = (int)sizeof(line) - 1;
    return stderr_take(line, (size_t)length);
}

/* As sd_journal_sendv() does, which waits. */
static bool journal_take(struct iovec *fields, size_t n)
{
    static const struct sockaddr_un journal = {.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
    struct msghdr message = {
        .msg_name = (void *)(uintptr_t)&journal, .msg_namelen = sizeof(journal), .msg_iov = fields, .msg_iovlen = n};
    static atomic_int socket_fd = -1;
    int fd = atomic_load(&socket_fd), none = -1;

    if (fd < 0) {
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && !atomic_compare_exchange_strong(&socket_fd, &none, fd)) {
            (void)close(fd);
            fd = none;
        }
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
}

static bool write_journal(enum log_level level, const char *message, const struct log_client *who)
{
    char fields[5][LINE_MAX_BYTES + 16];
    struct iovec vectors[5];
    int n = 0;

    (void)snprintf(fields[n++], sizeof(fields[0]), "MESSAGE=%s\n", message);
    (void)snprintf(fields[n++], sizeof(fields[0]), "PRIORITY=%d\n", levels[level].priority);
    (void)snprintf(fields[n++], sizeof(fields[0]), "SYSLOG_IDENTIFIER=memoryd\n");
    if (who) {
        (void)snprintf(fields[n++], sizeof(fields[0]), "MEMORYD_CLIENT_UID=%u\n", who->uid);
        (void)snprintf(fields[n++], sizeof(fields[0]), "MEMORYD_CLIENT_PID=%d\n", who->pid);
    }
    for (int i = 0; i < n; i++)
        vectors[i] = (struct iovec){.iov_base = fields[i], .iov_len = strlen(fields[i])};
    return journal_take(vectors, (size_t)n) || (errno != EAGAIN && write_text(level, message));
}

static bool write_line(enum log_level level, const char *message, const struct log_client *who)
{
    return to_journal ? write_journal(level, message, who) : write_text(level, message);
}

/* The message may contain what a client wrote. */
static void write_message(enum log_level level, char message[static LINE_MAX_BYTES], const struct log_client *who)
{
    unsigned lost = atomic_exchange(&lines_lost, 0);
    char line[64];

    if (lost) {
        (void)snprintf(line, sizeof(line), "%u line%s %s lost: nobody read the log", lost, log_plural(lost),
                       lost == 1 ? "was" : "were");
        if (!write_line(LOG_LEVEL_WARNING, line, NULL)) {
            atomic_fetch_add(&lines_lost, lost + 1);
            return;
        }
    }
    printable_escape(message, LINE_MAX_BYTES);
    if (!write_line(level, message, who))
        atomic_fetch_add(&lines_lost, 1);
}

void log_line(enum log_level level, const char *format, ...)
{
    int saved = errno;
    char message[LINE_MAX_BYTES];
    va_list arguments;

    if (!log_enabled(level))
        return;
    va_start(arguments, format);
    if (vsnprintf(message, sizeof(message), format, arguments) >= 0)
        write_message(level, message, NULL);
    va_end(arguments);
    errno = saved;
}

/* The name of the process's program in quotes, as the kernel has it; "?" if the process is gone. */
static void quote_program(pid_t pid, char quoted[PROGRAM_BYTES])
{
    char path[32];
    char name[16] = "?";
    ssize_t length = 1;
    size_t n = 0;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        /* the name may contain newlines; the last one is the end */
        length = read(fd, name, sizeof(name));
        length = length > 0 && name[length - 1] == '\n' ? length - 1 : length;
        (void)close(fd);
    }
    quoted[n++] = '"';
    for (ssize_t i = 0; i < length; i++) {
        bool plain = name[i] >= ' ' && name[i] <= '~' && name[i] != '"' && name[i] != '\\';

        n += (size_t)snprintf(quoted + n, PROGRAM_BYTES - n, plain ? "%c" : "\\x%02x", (unsigned char)name[i]);
    }
    quoted[n++] = '"';
    quoted[n] = '\0';
}

static void write_about(enum log_level level, const struct log_client *who, const char *message)
{
    char program[PROGRAM_BYTES];
    char line[LINE_MAX_BYTES];

    quote_program(who->pid, program);
    (void)snprintf(line, sizeof(line), "client %d %s of uid %u: %s", who->pid, program, who->uid, message);
    write_message(level, line, who);
}

static void log_left_out(uint64_t now)
{
    char line[LINE_MAX_BYTES];
    int level;

    if (log_limit_report(&limit, now, line, sizeof(line), &level))
        log_line((enum log_level)level, "%s", line);
}

void log_tick(void)
{
    log_left_out(clock_now_ns());
}

void log_client(enum log_level level, struct log_client who, const char *format, ...)
{
    uint64_t now;
    enum log_limit_answer answer;
    char message[LINE_MAX_BYTES];
    va_list arguments;
    int saved = errno;

    if (!log_enabled(level))
        return;
    now = clock_now_ns();
    log_left_out(now);
    answer = log_limit_ask(&limit, who.uid, (int)level, now);
    if (answer == LOG_LIMIT_LEAVE_OUT) {
        suppressed_total++;
        return;
    }
    va_start(arguments, format);
    if (vsnprintf(message, sizeof(message), format, arguments) < 0)
        message[0] = '\0';
    va_end(arguments);
    write_about(level, &who, message);
    if (answer == LOG_LIMIT_LAST)
        log_line(level, "clients of uid %u cause many lines; further ones in the next %d s are counted, not logged",
                 who.uid, LOG_CLIENT_WINDOW_SEC);
    errno = saved;
}

unsigned long log_client_suppressed(void)
{
    return suppressed_total;
}

int log_fatal(int r, const char *file, int line, const char *function)
{
    log_error("%s (in %s, %s:%d)", strerror(-r), function, file, line);
    return r;
}
