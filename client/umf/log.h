/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UMF_LOG: what fails is written where the user says, as upstream's library does it and by its words:
 *
 *     level:{debug|info|warning|error|fatal};flush:{the same};output:{stdout|stderr|file,PATH};
 *     timestamp:{yes|no};pid:{yes|no}
 *
 * Nothing is looked at but where something has failed, was made or was destroyed.
 */
#pragma once

#include <stdbool.h>

#include <memclient/umf/umf/base.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_FATAL, LOG_OFF };

/* Reads the environment, and says on standard error what is wrong in it. */
void log_init(void);
void log_deinit(void);
/* Before a fork: nothing unwritten is to be written by both processes. */
void log_flush(void);

bool log_wants(enum log_level level);
/* A line, if it is wanted; errno stays. */
void log_write(enum log_level level, const char *function, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Why the operation that is about to fail does so, where its result does not say: for who writes the line. */
void log_because(const char *sentence);
/* The same of a call to the broker, or of a handle that is looked at before one. */
void log_because_of(int r);
/* What was said in this thread since the last time; "" if nothing was. */
struct log_reason {
    char text[256];
};
struct log_reason log_reason(void);

const char *log_name_of(umf_result_t result);
