/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/clients.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/support/cgroup.h"
#include "tests/support/memory_files.h"

static struct broker_process the_broker;

/* ---- start ------------------------------------------------------------------------------------------------------- */

struct broker_process *broker_for_test_with_nofile(unsigned nofile, const char *config)
{
    assert_int_equal(the_broker.pid, 0);
    broker_start(&the_broker, config, nofile);
    return &the_broker;
}

struct broker_process *broker_for_test(const char *config)
{
    return broker_for_test_with_nofile(0, config);
}

struct broker_process *broker_for_test_as(uid_t uid, const char *config)
{
    test_needs_root();
    assert_int_equal(the_broker.pid, 0);
    broker_start_as(&the_broker, config, uid);
    return &the_broker;
}

static struct memclient_context_options options_for(const char *socket)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;

    options.socket = socket;
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    options.deadline_ms = PATIENCE_MS;
    return options;
}

struct memclient_context *broker_connect(struct broker_process *broker)
{
    struct memclient_context_options options = options_for(broker->socket);
    struct memclient_context *ctx;

    assert_done(memclient_context_open(&options, &ctx));
    return ctx;
}

/* ---- what it says of itself -------------------------------------------------------------------------------------- */

struct memclient_broker_info broker_status(struct memclient_context *ctx)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;

    assert_done(memclient_broker_query(ctx, &status));
    return status;
}

struct memclient_buffer_info broker_info(struct memclient_buffer *buf)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

    assert_done(memclient_buffer_query(buf, &info));
    return info;
}

uint64_t broker_buffers(struct memclient_context *ctx)
{
    struct memclient_broker_info status = broker_status(ctx);

    return status.buffers + status.buffers_detached + status.buffers_ending;
}

struct pool_figures {
    const char *name; /* NULL: all pools together */
    uint64_t used;
    uint64_t available;
    uint64_t stock_buffers;
};

static int add_pool(const struct memclient_pool_info *pool, void *data)
{
    struct pool_figures *figures = data;

    if (figures->name != NULL && strcmp(pool->name, figures->name) != 0)
        return 0;
    figures->used += pool->used;
    figures->available += pool->available;
    figures->stock_buffers += pool->stock_buffers;
    return 0;
}

uint64_t broker_pool_used(struct memclient_context *ctx, const char *pool)
{
    struct pool_figures figures = {.name = pool};

    assert_done(memclient_list_pools(ctx, add_pool, &figures));
    return figures.used;
}

uint64_t broker_pool_available(struct memclient_context *ctx, const char *pool)
{
    struct pool_figures figures = {.name = pool};

    assert_done(memclient_list_pools(ctx, add_pool, &figures));
    return figures.available;
}

uint64_t broker_stock(struct memclient_context *ctx)
{
    struct pool_figures figures = {.name = NULL};

    assert_done(memclient_list_pools(ctx, add_pool, &figures));
    return figures.stock_buffers;
}

static void prove_sums(struct memclient_context *ctx)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;

    assert_done(memclient_broker_check(ctx, &result));
    for (uint32_t i = 0; i < result.n_sentences; i++)
        print_error("check: %s\n", result.sentences[i]);
    assert_int_equal(result.faults, 0);
}

void broker_check(struct broker_process *broker)
{
    struct memclient_context *ctx = broker_connect(broker);

    prove_sums(ctx);
    memclient_context_close(ctx);
}

int broker_memory_files(struct broker_process *broker)
{
    struct memory_files files = {.n = 0};
    int n = memory_files_add(&files, broker_child(broker)) ? (int)files.n : -1;

    memory_files_deinit(&files);
    return n;
}

static int add_used(const struct memclient_node_info *node, void *data)
{
    *(uint64_t *)data += node->used;
    return 0;
}

static bool is_empty(struct broker_process *broker, struct memclient_context *ctx)
{
    struct memclient_broker_info status = broker_status(ctx);
    uint64_t used = 0;

    assert_done(memclient_list_nodes(ctx, add_used, &used));
    return status.buffers == 0 && status.buffers_detached == 0 && status.buffers_ending == 0 && status.bytes == 0 &&
           status.names == 0 && status.tokens == 0 && status.reservations == 0 && used == 0 &&
           broker_pool_used(ctx, NULL) == 0 && broker_memory_files(broker) <= (int)broker_stock(ctx);
}

void broker_wait_until_empty(struct broker_process *broker)
{
    struct memclient_context *ctx = broker_connect(broker);

    if (!WAIT_UNTIL(is_empty(broker, ctx))) {
        struct memclient_broker_info status = broker_status(ctx);

        fail_msg("left in the broker: %" PRIu64 " sessions, %" PRIu64 " buffers, %" PRIu64 " detached, %" PRIu64
                 " bytes, %" PRIu64 " names, %" PRIu64 " tokens, %" PRIu64 " reservations, %" PRIu64
                 " used in pools, %d memory files",
                 status.sessions, status.buffers, status.buffers_detached, status.bytes, status.names, status.tokens,
                 status.reservations, broker_pool_used(ctx, NULL), broker_memory_files(broker));
    }
    prove_sums(ctx);
    memclient_context_close(ctx);
}

/* ---- its end ----------------------------------------------------------------------------------------------------- */

void broker_finish(struct broker_process *broker)
{
    struct memclient_context *ctx;

    broker_wait_until_empty(broker);
    ctx = broker_connect(broker);
    assert_true(WAIT_UNTIL(broker_status(ctx).sessions == 1));
    memclient_context_close(ctx);
    broker_stop(broker);
}

int broker_cleanup(void **state)
{
    if (the_broker.pid > 0)
        broker_kill(&the_broker);
    return 0;
}

int broker_cleanup_and_settings(void **state)
{
    broker_cleanup(state);
    return settings_release(state);
}

int broker_cleanup_and_groups(void **state)
{
    (void)broker_cleanup(state);
    return cgroup_remove(state);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void broker_assert_done(int r, const char *what, const char *file, int line)
{
    if (r >= 0)
        return;
    print_error("%s: %s (%s, %s)\n", what, memclient_error(), strerror(-r),
                memclient_status_name(memclient_error_status()));
    _fail(file, line);
}

void broker_assert_refused(int r, int wanted, const char *what, const char *file, int line)
{
    if (r == -wanted && memclient_error()[0] != '\0')
        return;
    if (r < 0)
        print_error("%s: %s, not %s; the sentence: \"%s\"\n", what, strerror(-r), strerror(wanted), memclient_error());
    else
        print_error("%s: done, not refused with %s\n", what, strerror(wanted));
    _fail(file, line);
}

void broker_assert_sentence(const char *text, const char *file, int line)
{
    if (strstr(memclient_error(), text) != NULL)
        return;
    print_error("the sentence \"%s\" does not speak of \"%s\"\n", memclient_error(), text);
    _fail(file, line);
}

void broker_check_done(int r, const char *what, const char *file, int line)
{
    if (r >= 0)
        return;
    fprintf(stderr, "%s:%d: in the child (uid %u): %s: %s (%s)\n", file, line, (unsigned)getuid(), what,
            memclient_error(), strerror(-r));
    _exit(EXIT_FAILURE);
}

void broker_check_refused(int r, int wanted, const char *what, const char *file, int line)
{
    if (r == -wanted && memclient_error()[0] != '\0')
        return;
    fprintf(stderr, "%s:%d: in the child (uid %u): %s: %s (\"%s\"), not %s\n", file, line, (unsigned)getuid(), what,
            r < 0 ? strerror(-r) : "done", memclient_error(), strerror(wanted));
    _exit(EXIT_FAILURE);
}

struct memclient_context *broker_connect_in_child(const char *socket)
{
    struct memclient_context_options options = options_for(socket);
    struct memclient_context *ctx;

    CHECK_DONE(memclient_context_open(&options, &ctx));
    return ctx;
}

bool pass_bytes(int channel, const void *bytes, size_t size)
{
    return send(channel, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

bool take_bytes(int channel, void *bytes, size_t size)
{
    return wait_readable(channel) && recv(channel, bytes, size, 0) == (ssize_t)size;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static uint64_t word_at(size_t i, uint64_t seed)
{
    return (i + seed * 0x10001 + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

void pattern_write(void *address, size_t size, uint64_t seed)
{
    uint64_t *words = address;

    for (size_t i = 0; i < size / sizeof(*words); i++)
        words[i] = word_at(i, seed);
}

bool pattern_holds(const void *address, size_t size, uint64_t seed)
{
    const uint64_t *words = address;

    for (size_t i = 0; i < size / sizeof(*words); i++)
        if (words[i] != word_at(i, seed))
            return false;
    return true;
}

bool all_zero(const void *address, size_t size)
{
    const uint64_t *words = address;

    for (size_t i = 0; i < size / sizeof(*words); i++)
        if (words[i] != 0)
            return false;
    return true;
}
