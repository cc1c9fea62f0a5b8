/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many lines each user may cause: so many in a window, and the rest is counted.
 *
 * A user's window begins with its first line and is its own: what one causes takes no line from another. The table is
 * bounded, and users that find no place in it, while the windows of that many others are open, share one. What was
 * counted is told when the window is over, for all windows that ended together in one line.
 *
 * All here is decision only: it is told the time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LOG_LIMIT_USERS 64

struct log_limit_window {
    uid_t uid;
    uint64_t end; /* 0: not in use */
    unsigned said;
    unsigned left_out;
    int level; /* the most severe of these, that is the lowest */
};

struct log_limit {
    struct log_limit_window users[LOG_LIMIT_USERS];
    struct log_limit_window others; /* of all for whom there is no place */
    uint64_t first_end;             /* of all windows; 0: there is none */
};

enum log_limit_answer {
    LOG_LIMIT_SAY,
    LOG_LIMIT_LAST, /* say it, and that the next ones are counted */
    LOG_LIMIT_LEAVE_OUT
};

/* To be asked after log_limit_report(). */
enum log_limit_answer log_limit_ask(struct log_limit *limit, uid_t uid, int level, uint64_t now);
/* Closes the windows that are over. True if lines were left out in any: then `line` says how many, and *level is the
 * most severe level of them. */
bool log_limit_report(struct log_limit *limit, uint64_t now, char *line, size_t size, int *level);
