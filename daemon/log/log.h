/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log, for the broker's operator.
 *
 * A line goes to the journal, with fields, if standard error is the journal; otherwise to standard error as text. A
 * function that returns an error does not log it, and one that logs an error does not return it. The one exception is
 * fatal(), which shows the way of a negative error up to main().
 *
 * A client can cause lines as often as it likes, so lines about clients go through log_client(), which writes a limited
 * number per user and then only counts (limit.h). Contents of buffers, tokens and session secrets are never logged.
 *
 * Everything is for the loop's thread, except log_line(), which any thread may call.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum log_level {
    LOG_LEVEL_ERROR,   /* the broker cannot do its work */
    LOG_LEVEL_WARNING, /* somebody should look at this */
    LOG_LEVEL_NOTICE,  /* start, stop, reload */
    LOG_LEVEL_INFO,    /* clients come and go, and are refused something */
    LOG_LEVEL_DEBUG
};

/* Finds out whether standard error is the journal, and takes the level from $MEMORYD_LOG. */
void log_init(void);
/* False: the word is not "error", "warning", "notice", "info" or "debug". */
bool log_set_level(const char *word);
bool log_enabled(enum log_level level);
/* Do lines go to the journal? */
bool log_is_journal(void);
/* Sends them there; for a broker that has no standard error any more. */
void log_to_journal(void);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* What the word for so many things ends with. */
static inline const char *log_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* How many lines a user may cause in one window; the rest is counted, and the count is logged when the window ends. */
#define LOG_CLIENT_LINES      10
#define LOG_CLIENT_WINDOW_SEC 30

struct log_client {
    uid_t uid;
    pid_t pid;
};

/* Logs a line about a client, with the name of its program, within its user's limit. */
void log_client(enum log_level level, struct log_client who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Once a second: logs what was counted in windows that have ended. */
void log_tick(void);
/* The number of lines about clients that were not logged since the start. */
unsigned long log_client_suppressed(void);

/* `return fatal(r);`: a negative errno goes up, and the log shows its way. */
#define fatal(r) log_fatal((r), __FILE__, __LINE__, __func__)
int log_fatal(int r, const char *file, int line, const char *function);
