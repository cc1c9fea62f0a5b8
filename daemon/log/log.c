/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One line at a time, composed in a buffer of its own and written by one call, so that lines of several threads
 * do not mix and a line is either there or not.
 *
 * The budget of a user is found by the uid modulo a fixed number of slots. Two users in one slot share it: that
 * loses a line now and then, where a table that grows with the number of users would be one more thing that a
 * client can make grow.
 */

#include "log/log.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/clock.h"

#define LINE_MAX_BYTES 1024
#define SLOTS          64

struct slot {
    uid_t uid;
    uint64_t window_end;
    unsigned said;
    unsigned suppressed;
};

static enum log_level threshold = LOG_LEVEL_NOTICE;
static bool to_journal;
static struct slot slots[SLOTS];
static unsigned long suppressed_total;

static const struct {
    const char *word;
    int priority;
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", LOG_ERR},
    [LOG_LEVEL_WARNING] = {"warning", LOG_WARNING},
    [LOG_LEVEL_NOTICE] = {"notice", LOG_NOTICE},
    [LOG_LEVEL_INFO] = {"info", LOG_INFO},
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

/* systemd says in $JOURNAL_STREAM which file its journal is; a redirected standard error is another one. */
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
        log_warning("MEMORYD_LOG=%.32s is no level; error, warning, notice, info and debug are", word);
}

bool log_is_journal(void)
{
    return to_journal;
}

void log_to_journal(void)
{
    to_journal = true;
}

static void say_text(enum log_level level, const char *message)
{
    char line[LINE_MAX_BYTES + 32];
    int length = snprintf(line, sizeof(line), "memoryd: %s%s%s\n",
                          level < LOG_LEVEL_NOTICE ? levels[level].word : "",
                          level < LOG_LEVEL_NOTICE ? ": " : "", message);

    if (length < 0)
        return;
    if ((size_t)length >= sizeof(line))
        length = (int)sizeof(line) - 1;
    /* There is nobody to tell that the log cannot be written. */
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)length);
    (void)ignored;
}

static void say_journal(enum log_level level, const char *message, const struct log_client *who)
{
    char fields[4][LINE_MAX_BYTES + 16];
    struct iovec vectors[4];
    int n = 0;

    (void)snprintf(fields[n++], sizeof(fields[0]), "MESSAGE=%s", message);
    (void)snprintf(fields[n++], sizeof(fields[0]), "PRIORITY=%d", levels[level].priority);
    if (who) {
        (void)snprintf(fields[n++], sizeof(fields[0]), "MEMORYD_CLIENT_UID=%u", who->uid);
        (void)snprintf(fields[n++], sizeof(fields[0]), "MEMORYD_CLIENT_PID=%d", who->pid);
    }
    for (int i = 0; i < n; i++)
        vectors[i] = (struct iovec){.iov_base = fields[i], .iov_len = strlen(fields[i])};
    if (sd_journal_sendv(vectors, n) < 0)
        say_text(level, message);
}

/* What a client wrote may be in a message; it must not be able to write lines of its own. */
static void make_printable(char *message)
{
    for (; *message; message++)
        if ((unsigned char)*message < ' ' || *message == 0x7f)
            *message = '?';
}

__attribute__((format(printf, 3, 0))) static void
sayv(enum log_level level, const struct log_client *who, const char *format, va_list arguments)
{
    int saved = errno;
    char message[LINE_MAX_BYTES];

    if (vsnprintf(message, sizeof(message), format, arguments) >= 0) {
        make_printable(message);
        if (to_journal)
            say_journal(level, message, who);
        else
            say_text(level, message);
    }
    errno = saved;
}

void log_line(enum log_level level, const char *format, ...)
{
    va_list arguments;

    if (!log_enabled(level))
        return;
    va_start(arguments, format);
    sayv(level, NULL, format, arguments);
    va_end(arguments);
}

static bool may_say(struct slot *slot, struct log_client who)
{
    uint64_t now = clock_now_ns();

    if (now >= slot->window_end) {
        if (slot->suppressed)
            log_warning("%u lines about clients of uid %u were left out", slot->suppressed, slot->uid);
        *slot = (struct slot){
            .uid = who.uid,
            .window_end = deadline_at(now, LOG_CLIENT_WINDOW_SEC * NSEC_PER_SEC),
        };
    }
    if (slot->said < LOG_CLIENT_LINES) {
        slot->said++;
        return true;
    }
    if (!slot->suppressed++)
        log_warning("clients of uid %u cause too many lines; more of them are counted, not said",
                    who.uid);
    suppressed_total++;
    return false;
}

void log_client(enum log_level level, struct log_client who, const char *format, ...)
{
    va_list arguments;
    char prefixed[LINE_MAX_BYTES];

    if (!log_enabled(level) || !may_say(&slots[who.uid % SLOTS], who))
        return;
    va_start(arguments, format);
    if (vsnprintf(prefixed, sizeof(prefixed), format, arguments) < 0)
        prefixed[0] = '\0';
    va_end(arguments);
    if (to_journal) {
        make_printable(prefixed);
        say_journal(level, prefixed, &who);
    } else {
        log_line(level, "client %d of uid %u: %s", who.pid, who.uid, prefixed);
    }
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
