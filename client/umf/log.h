/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UMF_LOG: failures are logged where the user says, in upstream's syntax and words:
 *
 *     level:{debug|info|warning|error|fatal};flush:{the same};output:{stdout|stderr|file,PATH};
 *     timestamp:{yes|no};pid:{yes|no}
 *
 * Only failures, creation and destruction look at the settings.
 */
#pragma once

#include <stdbool.h>

#include <memclient/umf/umf/base.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_FATAL, LOG_OFF };

/* Reads the environment, and reports mistakes on standard error. */
void log_init(void);
void log_deinit(void);
/* Call this before a fork, so that no line is written by both processes. */
void log_flush(void);

bool log_wants(enum log_level level);
/* Writes a line if the level is wanted. errno does not change. */
void log_write(enum log_level level, const char *function, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Says why the current operation is about to fail, if its result does not. Whoever writes the line adds it. */
void log_because(const char *sentence);
/* The same for a failure of the broker, or of a check before the broker is called. */
void log_because_of(int r);
/* What the thread has said since the last call; "" if nothing. */
struct log_reason {
    char text[256];
};
struct log_reason log_reason(void);

const char *log_name_of(umf_result_t result);
