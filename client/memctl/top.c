/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memctl top: the command, and what it shows once. top.h says how it is made.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "memctl/command.h"
#include "memctl/line.h"
#include "memctl/output.h"
#include "memctl/text.h"
#include "memctl/top.h"

const char *const top_view_words[] = {"buffers", "processes", "users", NULL};
const char *const top_sort_words[] = {"bytes", "holds", "oldest", "newest", "rate", "requests", "waiting", NULL};

/* How long a call waits for a broker that has died, while the one after it starts. */
enum { TOP_DEADLINE_MS = 3000, TOP_INTERVAL_MS = 2000, TOP_ROWS = 20, TOP_WIDTH = 120 };

enum top_sort top_next_sort(enum top_view view, enum top_sort sort)
{
    static const unsigned has[TOP_VIEWS] = {
        [TOP_BUFFERS] = 1 << TOP_BY_BYTES | 1 << TOP_BY_HOLDS | 1 << TOP_BY_OLDEST | 1 << TOP_BY_NEWEST,
        [TOP_PROCESSES] =
            1 << TOP_BY_BYTES | 1 << TOP_BY_HOLDS | 1 << TOP_BY_RATE | 1 << TOP_BY_REQUESTS | 1 << TOP_BY_WAITING,
        [TOP_USERS] = 1 << TOP_BY_BYTES | 1 << TOP_BY_HOLDS | 1 << TOP_BY_WAITING,
    };

    do
        sort = (enum top_sort)((sort + 1) % TOP_SORTS);
    while (!(has[view] >> sort & 1));
    return sort;
}

bool top_parse_filter(const char *text, struct top_filter *filter)
{
    struct top_filter found = {.uid = -1};
    uint32_t number = 0;
    uid_t uid;

    if (!strncmp(text, "uid:", 4)) {
        if (parse_user(text + 4, &uid))
            return false;
        found.uid = uid;
    } else if (!strncmp(text, "pid:", 4)) {
        if (parse_u32(text + 4, &number) || !number || number > INT32_MAX)
            return false;
        found.pid = number;
    } else if (!strncmp(text, "session:", 8)) {
        char *end;

        errno = 0;
        found.session = strtoull(text + 8, &end, 10);
        if (text[8] < '0' || text[8] > '9' || *end || errno || !found.session)
            return false;
    } else if (!strncmp(text, "pool:", 5)) {
        if (!text[5] || strlen(text + 5) >= sizeof(found.pool))
            return false;
        (void)snprintf(found.pool, sizeof(found.pool), "%s", text + 5);
    } else if (*text) {
        return false;
    }
    *filter = found;
    return true;
}

void top_format_filter(const struct top_filter *filter, char *text, size_t size)
{
    text[0] = '\0';
    if (filter->uid >= 0)
        (void)snprintf(text, size, "uid:%" PRId64, filter->uid);
    else if (filter->pid > 0)
        (void)snprintf(text, size, "pid:%" PRId64, filter->pid);
    else if (filter->session)
        (void)snprintf(text, size, "session:%" PRIu64, filter->session);
    else if (*filter->pool)
        (void)snprintf(text, size, "pool:%s", filter->pool);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static struct top top;
static bool top_takes_rates; /* once, too: the interval was given */

static int top_open(const struct invocation *invocation, struct memclient_context **ctx)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;

    options.socket = invocation->socket;
    options.program = "memctl";
    options.administrator = true;
    options.deadline_ms = TOP_DEADLINE_MS;
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    return memclient_context_open(&options, ctx);
}

int top_refresh(struct top *what, const struct invocation *invocation, struct memclient_context **ctx)
{
    char words[sizeof(what->trouble) - 64];
    int r;

    if (what->recorded)
        return top_replay(what);
    r = *ctx ? 0 : top_open(invocation, ctx);
    if (!r)
        r = top_collect(what, *ctx);
    what->trouble[0] = '\0';
    if (!r)
        return 0;
    (void)snprintf(what->trouble, sizeof(what->trouble), "%s%s",
                   r == -ENOMEM ? "not enough memory" : words_of(memclient_error(), words, sizeof(words)),
                   what->snapshot ? "; what is shown is older" : "");
    return r;
}

/* ---- once -------------------------------------------------------------------------------------------------------- */

static unsigned top_width(void)
{
    struct winsize size;

    return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : TOP_WIDTH;
}

static int top_print(void)
{
    static struct top_page page;

    page.width = top_width();
    top_draw(&top, &page);
    for (unsigned i = 0; i < page.n; i++)
        puts(page.lines[i].text);
    return output_flush();
}

static int top_run_once(const struct invocation *invocation)
{
    struct memclient_context *ctx = NULL;
    bool absent;
    int r;

    r = top_refresh(&top, invocation, &ctx);
    if (!r && top_takes_rates && !top.recorded) {
        (void)poll(NULL, 0, top.interval_ms > INT_MAX ? INT_MAX : (int)top.interval_ms);
        r = top_refresh(&top, invocation, &ctx);
    }
    absent = r && is_without_broker(r);
    if (r)
        say("%s%s", absent ? "" : "top: ", *top.trouble ? top.trouble : strerror(-r));
    else
        r = invocation->json ? output_one(json_incref(top.snapshot)) : top_print();
    memclient_context_close(ctx);
    return r >= 0 ? r : absent ? EXIT_NO_BROKER : EXIT_REFUSED;
}

static int parse_top(struct invocation *invocation)
{
    int r;

    line.rows = TOP_ROWS;
    r = parse_options(invocation);
    if (r)
        return r;
    top_takes_rates = line.interval_ms;
    if (!line.interval_ms)
        line.interval_ms = TOP_INTERVAL_MS;
    if (line.interval_ms < 100)
        return usage_error(invocation, "--interval is 100ms at least");
    top = (struct top){.view = (enum top_view)line.view,
                       .sort = (enum top_sort)line.sort,
                       .most = line.rows,
                       .interval_ms = line.interval_ms};
    if (top.sort != TOP_BY_BYTES && top_next_sort(top.view, (enum top_sort)(top.sort - 1)) != top.sort)
        return usage_error(invocation, "%s are not sorted by %s", top_view_words[top.view], top_sort_words[top.sort]);
    if (!top_parse_filter(line.filter ? line.filter : "", &top.filter))
        return usage_error(invocation,
                           "--filter does not take `%s'; uid:USER, pid:PID, session:N and pool:NAME are filters",
                           line.filter);
    return parse_end(invocation);
}

static int run_top(struct invocation *invocation, struct memclient_context *none)
{
    const char *wrong = line.replay ? top_load(&top, line.replay) : NULL;
    char sentence[TEXT_MAX];
    int r;

    if (wrong) {
        (void)snprintf(sentence, sizeof(sentence), "%s: %s", line.replay, wrong);
        return refused(invocation, sentence);
    }
    r = line.once || invocation->json ? top_run_once(invocation) : top_run_screen(&top, invocation);
    json_decref(top.snapshot);
    json_decref(top.recorded);
    json_decref(top.open_in);
    return r;
}

const struct command top_commands[] = {
    {.name = "top",
     .synopsis = "[--once] [--view VIEW] [--sort SORT] [--filter FILTER] [--rows N] [--interval TIME] [--replay FILE]",
     .summary = "Show pools, users, processes and buffers, again and again",
     .help = "  --once           print it once, and end; so does --json\n"
             "  --view VIEW      buffers, processes or users; Tab shows the next one\n"
             "  --sort SORT      bytes, holds, oldest, newest, rate, requests or waiting; s takes the next one\n"
             "  --filter FILTER  uid:USER, pid:PID, session:N or pool:NAME: only such buffers; / asks for one\n"
             "  --rows N         how many buffers to ask for, 20 unless the screen has room for more\n"
             "  --interval TIME  how long each is shown, 2s; with --once, over how long to take rates\n"
             "  --replay FILE    show what `memctl top --json' or `memctl buffers --json' has printed\n"
             "\n"
             "Enter looks into a user, a process or a buffer, Esc goes back, q ends it. Nothing is said by colour.\n",
     .options = "1vxqRiY",
     .without_broker = true,
     .parse = parse_top,
     .run = run_top},
    {.name = NULL},
};
