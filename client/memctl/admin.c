/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that do something with the broker itself.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "memctl/command.h"
#include "memctl/output.h"
#include "memctl/text.h"

/* How long another broker may take to answer, and how often memctl asks. */
enum { UPGRADE_MS = 30000, LOOK_MS = 5 };

/* ---- upgrade ----------------------------------------------------------------------------------------------------- */

/* Waits for a broker of another pid. 0, also if there is none in time, or the errno of the last call. */
static int upgrade_wait(struct memclient_context *ctx, int32_t pid, struct memclient_broker_info *ret)
{
    uint64_t deadline = deadline_after_ms(UPGRADE_MS);
    int r;

    do {
        struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;

        (void)poll(NULL, 0, LOOK_MS);
        /* the call itself waits while there is no broker, and fails while a broker is stopping */
        r = memclient_broker_query(ctx, &status);
        if (!r)
            *ret = status;
    } while ((r || ret->broker_pid == pid) && !deadline_passed(deadline, clock_now_ns()));
    return r;
}

static void print_upgrade(const struct memclient_broker_info *before, const struct memclient_broker_info *now,
                          uint64_t ms)
{
    uint64_t buffers = now->buffers + now->buffers_detached;
    uint64_t sessions = now->sessions - 1; /* ours */

    printf("memoryd %s (was %s): %" PRIu64 " buffer%s, %" PRIu64 " session%s kept, %" PRIu64 " ms\n", now->version,
           before->version, buffers, plural(buffers), sessions, plural(sessions), ms);
}

static int run_upgrade(struct invocation *invocation, struct memclient_context *ctx)
{
    struct memclient_broker_info before = MEMCLIENT_BROKER_INFO_INIT, now;
    uint64_t begun, ms;
    int r;

    r = memclient_broker_query(ctx, &before);
    if (r < 0)
        return r;
    now = before;
    begun = clock_now_ns();
    r = memclient_broker_upgrade(ctx);
    if (!r)
        r = upgrade_wait(ctx, before.broker_pid, &now);
    if (r < 0)
        return r;
    ms = (clock_now_ns() - begun) / NSEC_PER_MSEC;
    if (now.broker_pid == before.broker_pid)
        return refused(invocation, "the broker was not replaced; its log says why");
    if (!invocation->json) {
        print_upgrade(&before, &now, ms);
        return EXIT_DONE;
    }
    return output_one(json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "version", now.version, "was_version",
                                before.version, "broker_pid", (json_int_t)now.broker_pid, "was_broker_pid",
                                (json_int_t)before.broker_pid, "buffers",
                                (json_int_t)(now.buffers + now.buffers_detached), "sessions",
                                (json_int_t)(now.sessions - 1), "ms", (json_int_t)ms));
}

/* ---- reload ------------------------------------------------------------------------------------------------------ */

static unsigned print_reload_lines(const struct memclient_reload_result *result, unsigned what, FILE *stream,
                                   const char *what_of_it)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < result->n_lines; i++)
        if (result->lines[i].what == what) {
            char clean[TEXT_MAX];

            fprintf(stream, "%s%s\n", text_clean(result->lines[i].text, clean, sizeof(clean)), what_of_it);
            n++;
        }
    return n;
}

static void print_reload(const struct memclient_reload_result *result)
{
    char clean[TEXT_MAX];
    unsigned n;

    if (*result->config)
        printf("%s was read\n", text_clean(result->config, clean, sizeof(clean)));
    else
        printf("there is no configuration file; the defaults are in force\n");
    n = print_reload_lines(result, MEMCLIENT_RELOAD_APPLIED, stdout, ": changed");
    n +=
        print_reload_lines(result, MEMCLIENT_RELOAD_RESTART, stdout, ": takes effect after a restart (memctl upgrade)");
    if (!n)
        printf("nothing has changed\n");
}

static json_t *reload_lines_json(const struct memclient_reload_result *result, unsigned what)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < result->n_lines; i++)
        if (result->lines[i].what == what)
            json_array_append_new(array, json_text(result->lines[i].text));
    return array;
}

static int run_reload(struct invocation *invocation, struct memclient_context *ctx)
{
    struct memclient_reload_result result = MEMCLIENT_RELOAD_RESULT_INIT;
    unsigned n_mistakes;
    int r;

    r = memclient_broker_reload(ctx, &result);
    if (r < 0)
        return r;
    n_mistakes = print_reload_lines(&result, MEMCLIENT_RELOAD_MISTAKE, stderr, "");
    if (n_mistakes)
        say("reload: the configuration is unchanged");
    if (!invocation->json) {
        if (!n_mistakes)
            print_reload(&result);
        return n_mistakes ? EXIT_REFUSED : EXIT_DONE;
    }
    r = output_one(json_pack("{s:o, s:o, s:o, s:o}", "config", json_text(result.config), "applied",
                             reload_lines_json(&result, MEMCLIENT_RELOAD_APPLIED), "restart",
                             reload_lines_json(&result, MEMCLIENT_RELOAD_RESTART), "mistakes",
                             reload_lines_json(&result, MEMCLIENT_RELOAD_MISTAKE)));
    return r ? r : n_mistakes ? EXIT_REFUSED : EXIT_DONE;
}

const struct command admin_commands[] = {
    {.name = "reload",
     .summary = "Make the broker read its configuration again",
     .help = "For root and the broker's user. Names each key that has changed: those in force now, and those that\n"
             "take a restart. If there are mistakes in the file, each is reported, nothing changes, and the exit\n"
             "status is 1.\n",
     .run = run_reload},
    {.name = "upgrade",
     .summary = "Replace the broker by the installed version",
     .help = "For root and the broker's user. Buffers, sessions and mappings stay; clients' calls just take longer\n"
             "meanwhile. Exit status 1 if the new broker does not answer within 30 s.\n",
     .run = run_upgrade},
    {.name = NULL},
};
