/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many lines each user may cause: a fixed number in a window; the rest is counted.
 *
 * A user's window begins with its first line, and no user takes lines from another. The table is bounded: users that
 * find no free place in it share one window. The count is logged when the window ends, in one line for all windows that
 * end together.
 *
 * These functions only decide; their caller gives them the time and writes the lines.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LOG_LIMIT_USERS 64

struct log_limit_window {
    uid_t uid;
    uint64_t end; /* 0: not open */
    unsigned logged;
    unsigned left_out;
    int level; /* the most severe, that is the lowest, of those left out */
};

struct log_limit {
    struct log_limit_window users[LOG_LIMIT_USERS];
    struct log_limit_window others; /* of all users without a place */
    uint64_t first_end;             /* of all open windows; 0: none is open */
};

enum log_limit_answer {
    LOG_LIMIT_LOG,
    LOG_LIMIT_LAST, /* log it, and that further ones are counted */
    LOG_LIMIT_LEAVE_OUT
};

/* Call log_limit_report() first. */
enum log_limit_answer log_limit_ask(struct log_limit *limit, uid_t uid, int level, uint64_t now);
/* Closes the windows that have ended. True: lines were left out in some; `line` says how many, and *level is their most
 * severe level. */
bool log_limit_report(struct log_limit *limit, uint64_t now, char *line, size_t size, int *level);
