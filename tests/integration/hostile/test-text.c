/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I8: a name or program that cannot be seen, or that changes how its neighbours are shown, deceives nobody. New names
 * have no such characters. Programs may have any, since nobody chose how they are called for this broker, and are shown
 * escaped by memctl and in the log; JSON has the very text.
 */
#include "tests/integration/clients.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/printable.h"

/* One of each kind: controls, directions, invisible ones, tags, ends of lines, blanks, private ones, none at all. */
static const char *const hidden[] = {
    "\x1b[2J",    "a\nmemoryd: b", "\x7f",   "\xc2\x85", "\xc2\x9b[2J", "\u202egnp.exe", "\u2066a",    "\u200f",
    "\u061c",     "a\u200bb",      "\u200d", "\u2060",   "\ufe0f",      "a\u00adb",      "\ufeffa",    "\U000e0041",
    "\U000e0100", "\u2028",        "\u2029", "\u00a0",   "\u3000",      "\u3164",        "\u2800",     "\ue000",
    "\uf8ff",     "\U000f0000",    "\ufdd0", "\uffff",   "\ufffe",      "\U0001fffe",    "\U0010fffd", "\u034f",
};

static const char *const shown[] = {"with blank", "u\u0308ber", "\u65e5\u672c\u8a9e", "\u05d0\u05d1", "\U0001f600"};

/* What memctl prints to both, with the exit status 0. */
static void run_memctl(const struct broker_process *broker, const char *arguments, char *output, size_t size)
{
    const char *builddir = getenv("builddir");
    char command[600];
    size_t n;
    FILE *pipe;

    snprintf(command, sizeof(command), "MEMORYD_SOCKET=%s exec %s/client/memctl/memctl %s 2>&1", broker->socket,
             builddir ? builddir : ".", arguments);
    pipe = popen(command, "r"); /* NOLINT */
    assert_non_null(pipe);
    n = fread(output, 1, size - 1, pipe);
    output[n] = '\0';
    assert_int_equal(pclose(pipe), 0);
}

/* Each line must be printable as a whole. */
static void assert_lines_printable(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");

        if (!printable_text(text, n))
            fail_msg("not printable: %.*s", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void I8_no_name_is_made_that_cannot_be_seen(void **state)
{
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker);
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf, *none;

    assert_done(memclient_alloc(ctx, 1, NULL, &buf));
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        options.name = hidden[i];
        assert_refused(memclient_alloc(ctx, 1, &options, &none), EINVAL);
        assert_lines_printable(memclient_error());
        assert_refused(memclient_bind_name(buf, hidden[i], NULL), EINVAL);
        assert_lines_printable(memclient_error());
    }
    /* one that an older broker has made can still be given */
    assert_refused(memclient_open_name(ctx, "\u202egnp.exe", MEMCLIENT_READ, &none), ENOENT);
    assert_sentence("\\u202egnp.exe");
    assert_refused(memclient_unbind_name(ctx, "\u202egnp.exe"), ENOENT);
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        assert_done(memclient_bind_name(buf, shown[i], NULL));
        assert_done(memclient_unbind_name(ctx, shown[i]));
    }
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    broker_finish(broker);
}

/* The program that the JSON has for a session. */
static void assert_json_has(const char *text, const char *program)
{
    json_t *rows = json_loads(text, 0, NULL), *row;
    size_t index;
    bool found = false;

    assert_true(json_is_array(rows));
    json_array_foreach(rows, index, row)
        found = found || !strcmp(json_string_value(json_object_get(row, "program")) ?: "", program);
    json_decref(rows);
    if (!found)
        fail_msg("no session of \"%s\"", program);
}

static void I8_programs_are_shown_escaped_and_json_has_the_very_text(void **state)
{
    enum { OUTPUT = 1 << 16 };
    struct broker_process *broker = broker_for_test(NULL);
    char *output = malloc(OUTPUT);

    assert_non_null(output);
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
        struct memclient_context *ctx;
        char program[64], escaped[64];

        snprintf(program, sizeof(program), "p%s", hidden[i]);
        snprintf(escaped, sizeof(escaped), "%s", program);
        printable_escape(escaped, sizeof(escaped));
        options.socket = broker->socket;
        options.program = program;
        assert_done(memclient_context_open(&options, &ctx));

        run_memctl(broker, "sessions", output, OUTPUT);
        assert_lines_printable(output);
        if (!strstr(output, escaped))
            fail_msg("%s is not in: %s", escaped, output);
        run_memctl(broker, "--json sessions", output, OUTPUT);
        assert_json_has(output, program);
        for (const char *c = output; *c; c++)
            assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
        memclient_context_close(ctx);
    }
    free(output);
    broker_finish(broker);
}

/* Marks that stand over the letter before them: a few are an accented letter, many overwrite the lines above. */
static void I8_a_flood_of_marks_stays_in_its_row(void **state)
{
    enum { OUTPUT = 1 << 16 };
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    char *output = malloc(OUTPUT), flood[64] = "\u0301z";
    struct memclient_context *ctx;

    assert_non_null(output);
    for (size_t n = strlen(flood); n + 2 < sizeof(flood); n += 2)
        memcpy(flood + n, "\u0301", 3);
    options.socket = broker->socket;
    options.program = flood;
    assert_done(memclient_context_open(&options, &ctx));
    run_memctl(broker, "sessions", output, OUTPUT);
    assert_non_null(strstr(output, "\\u0301z\u0301\u0301\u0301\u0301\\u0301"));
    assert_null(strstr(output, "\u0301\u0301\u0301\u0301\u0301"));
    memclient_context_close(ctx);
    free(output);
    broker_finish(broker);
}

static void I8_sentences_about_others_are_escaped(void **state)
{
    struct broker_process *broker;
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_buffer *buf, *claimed, *none;
    struct memclient_context *evil, *ctx;

    assert_int_equal(setenv("MEMORYD_LOG", "info", 1), 0);
    broker = broker_for_test(NULL);
    unsetenv("MEMORYD_LOG");
    options.socket = broker->socket;
    options.program = "p\u202e\x1b[2J\nmemoryd: all is well";
    assert_done(memclient_context_open(&options, &evil));
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(evil, 1, NULL, &buf));
    assert_done(memclient_bind_name(buf, "claimed", NULL));
    assert_done(memclient_claim_name(evil, "claimed", MEMCLIENT_READ, MEMCLIENT_CLAIM_EXCLUSIVE, &claimed));
    assert_refused(memclient_claim_name(ctx, "claimed", MEMCLIENT_READ, MEMCLIENT_CLAIM_EXCLUSIVE, &none), EBUSY);
    assert_sentence("(p\\u202e\\x1b[2J\\x0amemoryd: all is well)");
    assert_true(broker_said(broker, "(p\\u202e\\x1b[2J\\x0amemoryd: all is well)"));
    assert_false(broker_said(broker, "\nmemoryd: all is well"));
    memclient_buffer_unref(claimed);
    assert_done(memclient_unbind_name(evil, "claimed"));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    memclient_context_close(evil);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I8_no_name_is_made_that_cannot_be_seen),
        at_broker(I8_programs_are_shown_escaped_and_json_has_the_very_text),
        at_broker(I8_a_flood_of_marks_stays_in_its_row),
        at_broker(I8_sentences_about_others_are_escaped),
    };

    return test_run(tests, NULL, NULL);
}
