/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of type normal: allocation, devices, blocks that share a segment, limits, many blocks, and fork. */
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "tests/support/child.h"
#include "tests/unit/nbla/nbla.h"

/* What a node of a device's memory is; -1 = several. */
static int node_of(nbla_memory *memory)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_address_info at = MEMCLIENT_ADDRESS_INFO_INIT;

    assert_int_equal(memclient_address_query(nbla_memory_pointer(memory), &at), 0);
    assert_int_equal(memclient_buffer_query(at.buffer, &info), 0);
    return info.n_nodes == 1 ? (int)info.nodes[0] : -1;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* nbla_memory_new with bytes and device_id; nbla_memory_alloc gives zeroed memory, and bytes() stays. */
static void new_and_alloc(void **state)
{
    size_t bytes = 1000;
    nbla_memory *memory = nbla_memory_new(NULL, bytes, "");
    char *pointer;

    assert_non_null(memory);
    assert_true(nbla_memory_disabled(memory));
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_gives(nbla_memory_alloc(memory), 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_int_equal(nbla_memory_bytes(memory), bytes);
    assert_int_equal(nbla_memory_bytes_active(memory), bytes);
    assert_int_equal(nbla_memory_get_type(memory), NBLA_TYPE_NORMAL);
    pointer = nbla_memory_pointer(memory);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(pointer[i], 0);
    memset(pointer, 1, bytes);
    assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* nbla_memory_new: each device_id that there is. */
static void devices(void **state)
{
    static const struct {
        const char *device_id;
        int node;
    } rows[] = {{"numa:0", 0},
                {"numa:1", 1},
                {"numa:1,1", 1},
                {"interleave:0,1", -1},
                {"interleave:0-1", -1},
                {"numa:0-1", -2},
                {"numa:0,1", -2},
                {"", -2},
                {"extra", 1}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        nbla_memory *memory = nbla_memory_new(NULL, 1 << 20, rows[i].device_id);

        assert_non_null(memory);
        assert_gives(nbla_memory_alloc(memory), 0);
        assert_string_equal(nbla_memory_device_id(memory), rows[i].device_id);
        if (rows[i].node != -2)
            assert_int_equal(node_of(memory), rows[i].node);
        assert_gives(nbla_memory_destroy(memory), 0);
    }
}

/* nbla_memory_new: NBLA_ERROR_VALUE of a device that there is not, and a sentence that lists those that there are. */
static void unknown_devices(void **state)
{
    static const char *const ids[] = {
        "numa:",        "numa:2",
        "numa:0,7",     "numa:x",
        "numa:1-0",     "numa:0-99999999",
        "numa:0,",      "numa:-1",
        "numa:0 ",      "numa:99999999999999999999",
        "interleave:",  "interleave:9",
        "cuda:0",       "0",
        "no such pool", "a name that is longer than any pool's name could be, which is 63 bytes at most"};

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        assert_fails(nbla_memory_new(NULL, 1, ids[i]), NBLA_ERROR_VALUE);
        assert_non_null(strstr(nbla_error(), "numa:0"));
        assert_non_null(strstr(nbla_error(), "extra"));
        assert_fails(nbla_memory_new_virtual(NULL, 1, ids[i], NULL, 0), NBLA_ERROR_VALUE);
        assert_fails(nbla_physical_memory_new(NULL, 1, ids[i]), NBLA_ERROR_VALUE);
    }
    assert_fails(nbla_memory_new(NULL, 1, NULL), NBLA_ERROR_VALUE);
}

/* With a context of its own: ctx. */
static void context(void **state)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_address_info at = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_context *ctx;
    nbla_memory *memory;

    options.socket = observed.socket;
    assert_int_equal(memclient_context_open(&options, &ctx), 0);
    memory = nbla_memory_new(ctx, 100, "numa:1");
    assert_gives(nbla_memory_alloc(memory), 0);
    assert_int_equal(memclient_address_query(nbla_memory_pointer(memory), &at), 0);
    assert_ptr_equal(at.context, ctx);
    assert_gives(nbla_memory_destroy(memory), 0);
    memclient_context_close(ctx);
}

/* An allocator makes memory of the same device_id again and again: it is looked for once. */
static void same_device(void **state)
{
    uint64_t requests = 0;

    for (int i = 0; i < 3; i++) {
        nbla_memory *memory = nbla_memory_new(NULL, 100, "numa:1");
        nbla_memory *virtual = nbla_memory_new_virtual(NULL, 100, "numa:1", NULL, 0);
        nbla_physical_memory *p = nbla_physical_memory_new(NULL, 100, "numa:1");
        nbla_memory *other = nbla_memory_new(NULL, 100, "");

        assert_gives(nbla_memory_destroy(other), 0);
        assert_non_null(memory);
        assert_non_null(virtual);
        assert_non_null(p);
        nbla_physical_memory_unref(p);
        assert_gives(nbla_memory_destroy(virtual), 0);
        assert_gives(nbla_memory_destroy(memory), 0);
        if (!i) {
            observer_settle();
            requests = observer_requests();
        }
    }
    assert_int_equal(observer_requests(), requests);
    /* what is none is looked for each time */
    for (int i = 0; i < 2; i++)
        assert_fails(nbla_memory_new(NULL, 100, "numa:9"), NBLA_ERROR_VALUE);
}

/* nbla_memory_alloc: more than there can be is NBLA_ERROR_MEMORY; with a device that is full likewise. */
static void too_much(void **state)
{
    nbla_memory *memory = nbla_memory_new(NULL, SIZE_MAX, ""), *large = nbla_memory_new(NULL, 9 << 20, "extra");

    assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_alloc(large), NBLA_ERROR_MEMORY);
    assert_true(nbla_memory_disabled(large));
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(large), 0);
}

/* A full pool, or a limit that is met: NBLA_ERROR_MEMORY; and what is freed then is there for the retry, as nnabla's
 * allocators do it. */
static void flush_and_retry(void **state)
{
    static const struct {
        const char *device_id;
        size_t bytes;
        const char *sentence;
    } rows[] = {{"extra", 4 << 20, "extra"}, {"", 8 << 20, "session_bytes"}};

    for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); row++) {
        nbla_memory *cached[2], *memory = nbla_memory_new(NULL, 2 * rows[row].bytes, rows[row].device_id);

        for (int i = 0; i < 2; i++) {
            cached[i] = nbla_memory_new(NULL, rows[row].bytes, rows[row].device_id);
            assert_gives(nbla_memory_alloc(cached[i]), 0);
        }
        assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_MEMORY);
        assert_non_null(strstr(nbla_error(), rows[row].sentence));
        for (int i = 0; i < 2; i++)
            assert_gives(nbla_memory_destroy(cached[i]), 0);
        assert_gives(nbla_memory_alloc(memory), 0);
        memset(nbla_memory_pointer(memory), 1, 2 * rows[row].bytes);
        assert_gives(nbla_memory_destroy(memory), 0);
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* nbla_memory_divide copies nothing, at any byte; nbla_memory_try_merge gives the whole back. */
static void divide_and_merge(void **state)
{
    nbla_memory *memory = nbla_allocated(10000), *second, *third;
    char *pointer = nbla_memory_pointer(memory);

    for (int i = 0; i < 10000; i++)
        pointer[i] = (char)i;
    assert_gives(nbla_memory_divide(memory, 777, &second), 0);
    assert_gives(nbla_memory_divide(second, 5000, &third), 0);
    assert_ptr_equal(nbla_memory_pointer(second), pointer + 777);
    assert_ptr_equal(nbla_memory_pointer(third), pointer + 5777);
    assert_string_equal(nbla_memory_device_id(third), "");
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_gives(nbla_memory_try_merge(memory, third), 0);
    assert_gives(nbla_memory_try_merge(second, memory), 1);
    assert_ptr_equal(nbla_memory_pointer(second), pointer);
    assert_gives(nbla_memory_try_merge(second, third), 1);
    assert_int_equal(nbla_memory_bytes_active(second), 10000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(pointer[i], (char)i);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(third), 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_gives(nbla_memory_destroy(second), 0);
}

/* The memory goes back with the last block, whichever that is. */
static void head_before_tail(void **state)
{
    nbla_memory *memory = nbla_allocated(3 << 12), *second;
    char *pointer = nbla_memory_pointer(memory);

    assert_gives(nbla_memory_divide(memory, 1 << 12, &second), 0);
    assert_gives(nbla_memory_destroy(second), NBLA_ERROR_RUNTIME);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    memset(pointer + (1 << 12), 1, 2 << 12);
    assert_null(nbla_memory_prev(second));
    assert_int_equal(nbla_memory_bytes_active(second), 2 << 12);
    assert_gives(nbla_memory_destroy(second), 0);
    observer_expect_nothing();
}

/* What was merged may get memory of its own again, of the bytes that it still has. */
static void alloc_again(void **state)
{
    nbla_memory *memory = nbla_allocated(100), *second;

    assert_gives(nbla_memory_divide(memory, 60, &second), 0);
    assert_gives(nbla_memory_try_merge(memory, second), 1);
    assert_gives(nbla_memory_alloc(second), 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 2));
    memset(nbla_memory_pointer(second), 1, 40);
    /* they are no neighbours by their memory, whatever the links say */
    nbla_memory_associate_consecutive(memory, second);
    assert_gives(nbla_memory_try_merge(memory, second), NBLA_ERROR_RUNTIME);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(second), 0);
}

/* nbla_memory_try_merge: what is linked and no part of the same memory, or not next to it, is NBLA_ERROR_RUNTIME. */
static void merge_of_strangers(void **state)
{
    nbla_memory *memory = nbla_allocated(300), *second, *third, *stranger = nbla_allocated(100);
    nbla_memory *empty = nbla_memory_new(NULL, 100, "");

    assert_gives(nbla_memory_divide(memory, 100, &second), 0);
    assert_gives(nbla_memory_divide(second, 100, &third), 0);
    nbla_memory_associate_consecutive(memory, third);
    assert_gives(nbla_memory_try_merge(memory, third), NBLA_ERROR_RUNTIME);
    assert_gives(nbla_memory_try_merge(third, memory), NBLA_ERROR_RUNTIME);
    nbla_memory_associate_consecutive(third, stranger);
    assert_gives(nbla_memory_try_merge(third, stranger), NBLA_ERROR_RUNTIME);
    assert_gives(nbla_memory_try_merge(stranger, third), NBLA_ERROR_RUNTIME);
    nbla_memory_associate_consecutive(third, empty);
    assert_gives(nbla_memory_try_merge(third, empty), NBLA_ERROR_RUNTIME);
    assert_gives(nbla_memory_try_merge(empty, third), NBLA_ERROR_RUNTIME);
    assert_int_equal(nbla_memory_bytes(memory), 100);
    assert_int_equal(nbla_memory_bytes(third), 100);
    nbla_memory_associate_consecutive(memory, NULL);
    nbla_memory_associate_consecutive(NULL, second);
    nbla_memory_associate_consecutive(NULL, third);
    nbla_memory_associate_consecutive(NULL, stranger);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(second), 0);
    assert_gives(nbla_memory_destroy(third), 0);
    assert_gives(nbla_memory_destroy(stranger), 0);
    assert_gives(nbla_memory_destroy(empty), 0);
}

/* A thousand memories, and a thousand blocks of one. */
static void thousands(void **state)
{
    enum { N = 1000 };
    nbla_memory *memories[N], *blocks[N];
    size_t page = page_size();

    for (int i = 0; i < N; i++) {
        memories[i] = nbla_allocated(page);
        *(int *)nbla_memory_pointer(memories[i]) = i;
    }
    blocks[0] = nbla_allocated(N * 16);
    for (int i = 1; i < N; i++)
        assert_gives(nbla_memory_divide(blocks[i - 1], 16, &blocks[i]), 0);
    for (int i = 0; i < N; i++) {
        assert_int_equal(*(int *)nbla_memory_pointer(memories[i]), i);
        assert_gives(nbla_memory_destroy(memories[i]), 0);
    }
    for (int i = 1; i < N; i++)
        assert_gives(nbla_memory_try_merge(blocks[0], blocks[i]), 1);
    assert_int_equal(nbla_memory_bytes_active(blocks[0]), N * 16);
    for (int i = 0; i < N; i++)
        assert_gives(nbla_memory_destroy(blocks[i]), 0);
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static void use_in_child(int channel, void *context)
{
    nbla_memory **blocks = context, *own;
    char *pointer = nbla_memory_pointer(blocks[0]);

    (void)channel;
    CHECK(*pointer == 1);
    *pointer = 2;
    CHECK(nbla_memory_destroy(blocks[0]) == 0);
    CHECK(nbla_memory_destroy(blocks[1]) == 0);
    own = nbla_memory_new(NULL, 100, "numa:1");
    CHECK(own && nbla_memory_alloc(own) == 0);
    *(char *)nbla_memory_pointer(own) = 3;
    CHECK(nbla_memory_destroy(own) == 0);
}

/* A child has a copy of the memory, and what it writes and frees stays as it was in the parent. */
static void forked(void **state)
{
    nbla_memory *blocks[2] = {nbla_allocated(100)};
    char *pointer = nbla_memory_pointer(blocks[0]);

    assert_gives(nbla_memory_divide(blocks[0], 50, &blocks[1]), 0);
    *pointer = 1;
    child_run(use_in_child, blocks);
    assert_int_equal(*pointer, 1);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_gives(nbla_memory_try_merge(blocks[0], blocks[1]), 1);
    assert_gives(nbla_memory_destroy(blocks[0]), 0);
    assert_gives(nbla_memory_destroy(blocks[1]), 0);
}

#define TEST(function) cmocka_unit_test_teardown(function, nbla_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(new_and_alloc),    TEST(devices),     TEST(unknown_devices),    TEST(context),
        TEST(same_device),      TEST(too_much),    TEST(flush_and_retry),    TEST(divide_and_merge),
        TEST(head_before_tail), TEST(alloc_again), TEST(merge_of_strangers), TEST(thousands),
        TEST(forked),
    };

    nbla_config = "[pool extra]\nnodes = 1\ncapacity = 8M\n[limits]\nsession_bytes = 16M\n";
    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
