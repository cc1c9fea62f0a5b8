/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The example configuration: it is valid as it stands and with every key switched on, it then says what the
 * defaults are, and no key is missing in it.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"

static char *example;

static void complain(void *userdata, const char *sentence)
{
    print_message("%s\n", sentence);
}

static struct config *load(const char *text)
{
    char path[] = "example.XXXXXX";
    struct config *config = NULL;
    int fd;
    int r;

    if (!text) {
        assert_int_equal(config_load(&config, NULL, complain, NULL), 0);
        return config;
    }
    fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    r = config_load(&config, path, complain, NULL);
    unlink(path);
    assert_int_equal(r, 0);
    return config;
}

/* "#key = value" and "#[section]" without their "#"; sentences have a space behind it. */
static char *switched_on(void)
{
    char *text = strdup(example);
    char *to = text;

    assert_non_null(text);
    for (const char *from = text; *from; from++)
        if (!(*from == '#' && (from == text || from[-1] == '\n') && from[1] != ' ' && from[1] != '\n'))
            *to++ = *from;
    *to = '\0';
    return text;
}

static void assert_same(const struct config *a, const struct config *b)
{
    assert_int_equal(a->simulate_nodes, b->simulate_nodes);
    assert_int_equal(a->capacity.bytes, b->capacity.bytes);
    assert_int_equal(a->capacity.percent, b->capacity.percent);
    assert_int_equal(a->arena_base, b->arena_base);
    assert_int_equal(a->arena_size, b->arena_size);
    assert_int_equal(a->arena_half, b->arena_half);
    assert_int_equal(a->connections, b->connections);
    assert_int_equal(a->uid_bytes_percent, b->uid_bytes_percent);
    for (unsigned i = 0; i < CONFIG_LIMIT_N; i++) {
        assert_true(a->uid_limits[i] == b->uid_limits[i]);
        assert_true(a->session_limits[i] == b->session_limits[i]);
    }
    assert_int_equal(a->grace_ms, b->grace_ms);
    assert_int_equal(a->handshake_ms, b->handshake_ms);
    assert_int_equal(a->stall_ms, b->stall_ms);
    assert_int_equal(a->worker_threads, b->worker_threads);
    assert_int_equal(a->idle_exit_ms, b->idle_exit_ms);
    assert_int_equal(a->spin, b->spin);
    assert_int_equal(a->serve_overflow_uid, b->serve_overflow_uid);
}

static void the_example_changes_nothing(void **state)
{
    struct config *config = load(example);
    struct config *defaults = load(NULL);

    assert_int_equal(config->n_pools, 0);
    assert_same(config, defaults);
    config_free(config);
    config_free(defaults);
}

static void its_values_are_the_defaults(void **state)
{
    char *text = switched_on();
    struct config *config = load(text);
    struct config *defaults = load(NULL);

    assert_same(config, defaults);
    assert_int_equal(config->n_pools, 1);
    config_free(config);
    config_free(defaults);
    free(text);
}

static void no_key_is_missing(void **state)
{
    char line[128];
    const char *section;
    const char *key;

    for (size_t i = 0; config_key(i, &section, &key); i++) {
        /* a pool has no defaults: its keys are explained, and some are used */
        snprintf(line, sizeof(line), strcmp(section, "pool") != 0 ? "\n#%s = " : "\n# %s  ", key);
        if (!strstr(example, line))
            fail_msg("[%s] %s is missing in the example", section, key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_changes_nothing),
        cmocka_unit_test(its_values_are_the_defaults),
        cmocka_unit_test(no_key_is_missing),
    };
    const char *srcdir = getenv("srcdir");
    const char *tmpdir = getenv("TMPDIR");
    static char text[65536];
    char path[4096];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "%s/systemd/memoryd.conf.in", srcdir ? srcdir : ".");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0) {
        perror(path);
        return 1;
    }
    close(fd);
    example = text;
    if (tmpdir && chdir(tmpdir) < 0)
        return 1;
    return test_run(tests, NULL, NULL);
}
