/* SPDX-License-Identifier: Apache-2.0 */
/* What operations cost in requests to the broker: it must not grow with what they are done to. */
#include "tests/unit/nbla/nbla.h"

#include "base/align.h"

#define CHUNK ((size_t)64 << 10)
enum { MANY = 1000, BATCHES = (MANY + MEMCLIENT_BATCH_MAX - 1) / MEMCLIENT_BATCH_MAX };

#define assert_costs(wanted, statement) observer_assert_costs(NULL, wanted, statement)

static void normal(void **state)
{
    nbla_memory *memory = nbla_memory_new(NULL, CHUNK, ""), *second;

    assert_costs(1, assert_gives(nbla_memory_alloc(memory), 0));
    assert_costs(0, {
        assert_gives(nbla_memory_divide(memory, 100, &second), 0);
        assert_gives(nbla_memory_try_merge(memory, second), 1);
        assert_gives(nbla_memory_destroy(second), 0);
    });
    assert_costs(1, assert_gives(nbla_memory_destroy(memory), 0));
}

/* Few chunks come with what maps them: one request makes all, and one finds them a place. */
static void few_chunks(void **state)
{
    nbla_physical_memory *p[3];
    nbla_memory *memory;

    for (int i = 0; i < 3; i++)
        p[i] = nbla_physical_memory_new(NULL, CHUNK, "");
    memory = nbla_memory_new_virtual(NULL, 2 * CHUNK, "", p, 2);
    assert_costs(2, assert_gives(nbla_memory_bind(memory), 0));
    assert_costs(1, assert_gives(nbla_memory_grow(memory, p + 2, 1), 1));
    assert_gives(nbla_memory_append_phys(memory, p + 2, 1), 0);
    assert_costs(1, assert_gives(nbla_memory_unbind(memory), 0));
    assert_costs(1, assert_gives(nbla_memory_bind(memory), 0));
    assert_gives(nbla_memory_destroy(memory), 0);
    for (int i = 0; i < 3; i++)
        nbla_physical_memory_unref(p[i]);
}

/* Of many, 64 are made by one request, and 64 are mapped by one. */
static void many_chunks(void **state)
{
    nbla_physical_memory *p[MANY];
    nbla_memory *memory;
    char *at;

    for (int i = 0; i < MANY; i++)
        p[i] = nbla_physical_memory_new(NULL, i % 2 ? 1 : CHUNK, "");
    memory = nbla_memory_new_virtual(NULL, MANY / 2 * CHUNK, "", p, MANY);
    for (int i = 0; i < MANY; i++)
        nbla_physical_memory_unref(p[i]);

    assert_costs(BATCHES + 1 + BATCHES, assert_gives(nbla_memory_bind(memory), 0));
    at = nbla_memory_pointer(memory);
    for (int i = 0; i < MANY; i++) {
        *(int *)(void *)at = i;
        at += nbla_physical_memory_bytes(p[i]);
    }
    assert_costs(1, assert_gives(nbla_memory_unbind(memory), 0));
    assert_costs(1 + BATCHES, assert_gives(nbla_memory_bind(memory), 0));
    at = nbla_memory_pointer(memory);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(*(int *)(void *)at, i);
        at += nbla_physical_memory_bytes(p[i]);
    }
    assert_costs(1 + BATCHES, assert_gives(nbla_memory_destroy(memory), 0));
}

/* One request for the memory of each, and one for the addresses of eight at least, however many there are. */
static void many_blocks(void **state)
{
    enum { PARTS = 8, BLOCKS = 40 };
    nbla_memory *memories[BLOCKS];

    assert_costs(BLOCKS + BLOCKS / PARTS, {
        for (int i = 0; i < BLOCKS; i++) {
            nbla_physical_memory *p = nbla_physical_memory_new(NULL, 1024, "");

            memories[i] = nbla_memory_new_virtual(NULL, 1024, "", &p, 1);
            assert_gives(nbla_memory_bind(memories[i]), 0);
            *(volatile int *)nbla_memory_pointer(memories[i]) = i;
            nbla_physical_memory_unref(p);
        }
    });
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(*(volatile int *)nbla_memory_pointer(memories[i]), i);
        assert_gives(nbla_memory_destroy(memories[i]), 0);
    }
}

/* Contexts that bind in turn, as a program's own and a library's do, have leases of their own. */
static void many_blocks_of_two_contexts(void **state)
{
    enum { PARTS = 8, BLOCKS = 40 };
    struct memclient_context *contexts[2] = {NULL, NULL};
    nbla_memory *memories[BLOCKS];
    uint64_t before, after;

    assert_int_equal(memclient_context_open(NULL, &contexts[1]), 0);
    (void)observer_settled_requests(NULL);
    before = observer_settled_requests(contexts[1]);
    for (int i = 0; i < BLOCKS; i++) {
        struct memclient_context *ctx = contexts[i % 2];
        nbla_physical_memory *p = nbla_physical_memory_new(ctx, 1024, "");

        memories[i] = nbla_memory_new_virtual(ctx, 1024, "", &p, 1);
        assert_gives(nbla_memory_bind(memories[i]), 0);
        nbla_physical_memory_unref(p);
    }
    (void)observer_settled_requests(NULL);
    after = observer_settled_requests(contexts[1]);
    assert_in_range(after - before, BLOCKS, BLOCKS + 2 * BLOCKS / 2 / PARTS + 1);
    for (int i = 0; i < BLOCKS; i++)
        assert_gives(nbla_memory_destroy(memories[i]), 0);
    memclient_context_close(contexts[1]);
}

/* Addresses where nothing had its home are used again: one request is enough for many that come after each other. */
static void one_block_after_the_other(void **state)
{
    enum { BLOCKS = 40 };

    assert_costs(2 * BLOCKS + 2, {
        for (int i = 0; i < BLOCKS; i++) {
            nbla_physical_memory *p = nbla_physical_memory_new(NULL, 1024, "");
            nbla_memory *memory = nbla_bound(1, &p);

            assert_gives(nbla_memory_destroy(memory), 0);
            nbla_physical_memory_unref(p);
        }
    });
}

/* Each step costs the same, one request, be it the first or the thousandth, and stays where it was. */
static void growing(void **state)
{
    nbla_physical_memory *p = nbla_chunk(1024);
    nbla_memory *memory = nbla_bound(1, &p);
    const char *at = nbla_memory_pointer(memory);

    nbla_physical_memory_unref(p);
    for (int i = 0; i < MANY; i++) {
        p = nbla_physical_memory_new(NULL, 1024, "");
        assert_costs(1, assert_gives(nbla_memory_grow(memory, &p, 1), 1));
        assert_gives(nbla_memory_append_phys(memory, &p, 1), 0);
        nbla_physical_memory_unref(p);
    }
    assert_ptr_equal(nbla_memory_pointer(memory), at);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* Of several devices, and each of them twice: they get their memory in as many requests as there are devices. */
static void chunks_of_devices(void **state)
{
    static const char *const devices[] = {"numa:0", "numa:0", "numa:1", "numa:1", "small"};
    enum { DEVICES = sizeof(devices) / sizeof(*devices) };
    nbla_physical_memory *p[DEVICES], *twice[2 * DEVICES];
    nbla_memory *memory;

    for (int i = 0; i < DEVICES; i++) {
        p[i] = nbla_physical_memory_new(NULL, CHUNK, devices[i]);
        twice[2 * i] = twice[2 * i + 1] = p[i];
    }
    memory = nbla_memory_new_virtual(NULL, CHUNK, "", twice, 2 * DEVICES);
    assert_costs(3 + 1, assert_gives(nbla_memory_bind(memory), 0));
    for (size_t i = 0; i < DEVICES; i++) {
        volatile size_t *at = (volatile size_t *)nbla_memory_pointer(memory) + 2 * i * CHUNK / sizeof(*at);

        *at = i;
        assert_int_equal(at[CHUNK / sizeof(*at)], i);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(nbla_physical_memory_id(p[i]), nbla_physical_memory_id(p[k]));
    }
    assert_gives(nbla_memory_destroy(memory), 0);
    for (int i = 0; i < DEVICES; i++)
        nbla_physical_memory_unref(p[i]);
}

/* Memory that is only passed on: others may have a descriptor of it, this process has none. */
static void passed_on(void **state)
{
    nbla_physical_memory *p = nbla_physical_memory_new(NULL, CHUNK, "");
    struct memclient_token token;
    uint64_t offset, length;

    assert_costs(1, assert_int_equal(nbla_physical_memory_alloc(p), CHUNK));
    assert_costs(1, assert_gives(nbla_physical_memory_token(p, &token, &offset, &length), 0));
    assert_costs(1, nbla_physical_memory_unref(p));
}

#define TEST(function) cmocka_unit_test_teardown(function, nbla_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(normal),
        TEST(few_chunks),
        TEST(many_chunks),
        TEST(many_blocks),
        TEST(many_blocks_of_two_contexts),
        TEST(one_block_after_the_other),
        TEST(growing),
        TEST(chunks_of_devices),
        TEST(passed_on),
    };

    nbla_config = "[pool small]\nnodes = 1\ncapacity = 8M\n";
    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
