/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the broker says to its operator.
 *
 * A line goes to the journal with fields when standard error is the journal, else to standard error as text.
 * Functions that return an error do not log it, and functions that log do not return it as an error again: the
 * one exception is fatal(), which marks the way of a negative error up to main().
 *
 * A client can make the broker say something as often as it likes, so what is said about clients goes through
 * log_client(), which says so much per user and then only counts, see limit.h. Contents of buffers, tokens and session
 * secrets are never said at all.
 *
 * All of it is for the loop's thread, except log_line(), which any thread may call.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <sys/types.h>

enum log_level {
    LOG_LEVEL_ERROR,   /* the broker cannot do what it is there for */
    LOG_LEVEL_WARNING, /* somebody should look at this */
    LOG_LEVEL_NOTICE,  /* start, stop, reload */
    LOG_LEVEL_INFO,    /* clients come and go, and are refused something */
    LOG_LEVEL_DEBUG
};

/* Finds out where standard error leads, and takes the level from $MEMORYD_LOG. */
void log_init(void);
/* False if the word is no level; "error", "warning", "notice", "info" and "debug" are. */
bool log_set_level(const char *word);
bool log_enabled(enum log_level level);
/* What is said goes there, each line with its priority. */
bool log_is_journal(void);
/* For a broker that has no standard error any more. */
void log_to_journal(void);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Lines a user may cause in one window; the rest is counted, and the count is said when the window is over. */
#define LOG_CLIENT_LINES      10
#define LOG_CLIENT_WINDOW_SEC 30

struct log_client {
    uid_t uid;
    pid_t pid;
};

/* About a client, at the client's cost, with its program's name. */
void log_client(enum log_level level, struct log_client who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Once a second: tells what was counted in windows that are over. */
void log_tick(void);
/* Lines about clients that were counted instead of said, since the start. */
unsigned long log_client_suppressed(void);

/* `return fatal(r);`: a negative errno goes up, and the log shows its way. */
#define fatal(r) log_fatal((r), __FILE__, __LINE__, __func__)
int log_fatal(int r, const char *file, int line, const char *function);
