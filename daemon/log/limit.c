/* SPDX-License-Identifier: Apache-2.0 */
/* See limit.h. */

#include "log/limit.h"

#include <stdio.h>

#include "base/clock.h"
#include "log/log.h"

/* How many users a report names; the rest is summed up. */
#define NAMED_MAX 16

static bool is_open(const struct log_limit_window *window)
{
    return window->end > 0;
}

static struct log_limit_window *window_of(struct log_limit *limit, uid_t uid)
{
    struct log_limit_window *unused = NULL;

    for (size_t i = 0; i < LOG_LIMIT_USERS; i++) {
        struct log_limit_window *window = &limit->users[i];

        if (is_open(window) && window->uid == uid)
            return window;
        if (!unused && !is_open(window))
            unused = window;
    }
    return unused ? unused : &limit->others;
}

enum log_limit_answer log_limit_ask(struct log_limit *limit, uid_t uid, int level, uint64_t now)
{
    struct log_limit_window *window = window_of(limit, uid);

    if (!is_open(window)) {
        *window = (struct log_limit_window){
            .uid = uid, .end = deadline_at(now, LOG_CLIENT_WINDOW_SEC * NSEC_PER_SEC), .level = level};
        if (!limit->first_end || window->end < limit->first_end)
            limit->first_end = window->end;
    }
    if (window->logged < LOG_CLIENT_LINES)
        return ++window->logged == LOG_CLIENT_LINES ? LOG_LIMIT_LAST : LOG_LIMIT_LOG;
    if (!window->left_out++ || level < window->level)
        window->level = level;
    return LOG_LIMIT_LEAVE_OUT;
}

struct report {
    char *line;
    size_t size;
    size_t length;
    unsigned named;
    unsigned unnamed;    /* users, */
    unsigned of_unnamed; /* and their lines */
    int level;
};

__attribute__((format(printf, 2, 3))) static void report_append(struct report *report, const char *format, ...)
{
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(report->line + report->length, report->size - report->length, format, arguments);
    va_end(arguments);
    if (n > 0)
        report->length += (size_t)n < report->size - report->length ? (size_t)n : report->size - report->length - 1;
}

static void note_window(struct report *report, const struct log_limit_window *window, bool has_uid)
{
    if (!window->left_out)
        return;
    if (!report->named || window->level < report->level)
        report->level = window->level;
    if (report->named == NAMED_MAX) {
        report->unnamed++;
        report->of_unnamed += window->left_out;
        return;
    }
    report_append(report, report->named++ ? ", " : "lines about clients were left out: ");
    if (has_uid)
        report_append(report, "%u of uid %u", window->left_out, (unsigned)window->uid);
    else
        report_append(report, "%u of other users", window->left_out);
}

/* True: it was open and has ended. */
static bool close_window(struct log_limit *limit, struct log_limit_window *window, uint64_t now)
{
    if (!is_open(window))
        return false;
    if (now < window->end) {
        if (!limit->first_end || window->end < limit->first_end)
            limit->first_end = window->end;
        return false;
    }
    window->end = 0;
    return true;
}

bool log_limit_report(struct log_limit *limit, uint64_t now, char *line, size_t size, int *level)
{
    struct report report = {.line = line, .size = size};

    if (!limit->first_end || now < limit->first_end)
        return false;
    limit->first_end = 0;
    *line = '\0';
    if (close_window(limit, &limit->others, now))
        note_window(&report, &limit->others, false);
    for (size_t i = 0; i < LOG_LIMIT_USERS; i++)
        if (close_window(limit, &limit->users[i], now))
            note_window(&report, &limit->users[i], true);
    if (report.unnamed)
        report_append(&report, ", and %u of %u more users", report.of_unnamed, report.unnamed);
    *level = report.level;
    return report.named > 0;
}
