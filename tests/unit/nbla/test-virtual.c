/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of type virtual, and physical memory: bind, unbind, grow, chunks in several memories, and places for them. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/align.h"
#include "tests/support/child.h"
#include "tests/unit/nbla/nbla.h"

#define CHUNK ((size_t)64 << 10)

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

/* nbla_physical_memory_new with bytes and device_id; nbla_physical_memory_alloc is idempotent and rounds bytes up;
 * nbla_physical_memory_bytes, nbla_physical_memory_allocated, and nbla_physical_memory_id tell. */
static void physical(void **state)
{
    size_t bytes = 1000;
    nbla_physical_memory *p = nbla_physical_memory_new(NULL, bytes, "numa:1");
    nbla_physical_memory *none = nbla_physical_memory_new(NULL, 0, "");

    assert_int_equal(nbla_physical_memory_bytes(p), bytes);
    assert_int_equal(nbla_physical_memory_bytes(none), 1);
    assert_false(nbla_physical_memory_allocated(p));
    assert_int_equal(nbla_physical_memory_id(p), 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_int_equal(nbla_physical_memory_alloc(p), page_size());
    assert_int_equal(nbla_physical_memory_alloc(p), page_size());
    assert_int_equal(nbla_physical_memory_bytes(p), page_size());
    assert_true(nbla_physical_memory_allocated(p));
    assert_int_not_equal(nbla_physical_memory_id(p), 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    nbla_physical_memory_unref(p);
    nbla_physical_memory_unref(none);
}

/* nbla_physical_memory_ref, nbla_physical_memory_unref: p is there until the last. */
static void counted(void **state)
{
    nbla_physical_memory *p = nbla_chunk(CHUNK);

    assert_ptr_equal(nbla_physical_memory_ref(p), p);
    assert_null(nbla_physical_memory_ref(NULL));
    nbla_physical_memory_unref(NULL);
    nbla_physical_memory_unref(p);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    nbla_physical_memory_unref(p);
    observer_expect_nothing();
}

/* nbla_physical_memory_alloc of p: too much is 0 and NBLA_ERROR_MEMORY, and may be tried again. */
static void physical_fails(void **state)
{
    nbla_physical_memory *p = nbla_physical_memory_new(NULL, 9 << 20, "small");

    assert_fails(nbla_physical_memory_alloc(p), NBLA_ERROR_MEMORY);
    assert_fails(nbla_physical_memory_alloc(p), NBLA_ERROR_MEMORY);
    assert_false(nbla_physical_memory_allocated(p));
    assert_fails(nbla_physical_memory_alloc(NULL), NBLA_ERROR_VALUE);
    nbla_physical_memory_unref(p);
}

/* ---- bind, unbind, grow ------------------------------------------------------------------------------------------ */

/*
 * The life of a virtual memory, as nnabla's allocator has it. nbla_memory_bind: "Bind physical memories on virtual
 * address." nbla_memory_unbind: "Unbind physical memories from corresponding virtual address, and return physical
 * memory list as vector." The list is read by nbla_memory_phys_at. nbla_memory_grow: "Glow virtual memory from already
 * allocated virtual address."
 */
static void bind_grow_unbind(void **state)
{
    nbla_physical_memory *p[4];
    nbla_memory *memory, *second;
    char *pointer;

    for (int i = 0; i < 4; i++)
        p[i] = nbla_physical_memory_new(NULL, CHUNK, "");
    memory = nbla_memory_new_virtual(NULL, 3 * CHUNK, "", p, 3);
    assert_int_equal(nbla_memory_get_type(memory), NBLA_TYPE_VIRTUAL);
    assert_true(nbla_memory_disabled(memory));
    assert_int_equal(nbla_memory_bytes_active(memory), 0);
    assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_divide(memory, CHUNK, &second), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_grow(memory, p + 3, 1), NBLA_ERROR_MEMORY);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));

    assert_gives(nbla_memory_bind(memory), 0);
    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_divide(memory, CHUNK, &second), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_VALUE);
    pointer = nbla_memory_pointer(memory);
    assert_int_equal(nbla_memory_bytes_active(memory), 3 * CHUNK);
    for (size_t i = 0; i < 3; i++)
        memset(pointer + i * CHUNK, 'a' + (int)i, CHUNK);

    assert_gives(nbla_memory_grow(memory, NULL, 0), 1);
    assert_int_equal(nbla_memory_bytes(memory), 3 * CHUNK);
    assert_gives(nbla_memory_grow(memory, p + 3, 1), 1);
    assert_ptr_equal(nbla_memory_pointer(memory), pointer);
    assert_int_equal(nbla_memory_bytes(memory), 4 * CHUNK);
    assert_int_equal(nbla_memory_phys_count(memory), 3);
    assert_gives(nbla_memory_append_phys(memory, p + 3, 1), 0);
    memset(pointer + 3 * CHUNK, 'd', CHUNK);

    assert_gives(nbla_memory_unbind(memory), 0);
    assert_true(nbla_memory_disabled(memory));
    assert_gives(nbla_memory_unbind(memory), 0);
    assert_int_equal(nbla_memory_phys_count(memory), 4);
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(nbla_memory_phys_at(memory, i), p[i]);

    /* the same chunks elsewhere, in another order */
    second = nbla_bound(2, (nbla_physical_memory *[]){p[3], p[1]});
    pointer = nbla_memory_pointer(second);
    assert_int_equal(pointer[0], 'd');
    assert_int_equal(pointer[CHUNK], 'b');
    assert_gives(nbla_memory_destroy(second), 0);
    nbla_memory_clear_phys(memory);
    assert_gives(nbla_memory_destroy(memory), 0);
    for (int i = 0; i < 4; i++)
        nbla_physical_memory_unref(p[i]);
}

/* The same chunk in two memories at once, and twice in one: they show the same bytes. */
static void aliases(void **state)
{
    nbla_physical_memory *p[3] = {nbla_chunk(CHUNK), nbla_chunk(CHUNK)};
    nbla_memory *first, *second;
    char *a, *b;

    p[2] = p[0];
    first = nbla_bound(2, p);
    second = nbla_bound(3, p);
    a = nbla_memory_pointer(first);
    b = nbla_memory_pointer(second);
    assert_ptr_not_equal(a, b);
    memset(a, 'x', CHUNK);
    assert_int_equal(b[CHUNK - 1], 'x');
    assert_int_equal(b[2 * CHUNK], 'x');
    b[2 * CHUNK] = 'y';
    assert_int_equal(*a, 'y');
    /* the old one goes, and the new one grows by what it had */
    assert_gives(nbla_memory_destroy(first), 0);
    assert_gives(nbla_memory_grow(second, p + 1, 1), 1);
    assert_int_equal(*b, 'y');
    nbla_physical_memory_unref(p[0]);
    nbla_physical_memory_unref(p[1]);
    /* what is bound is counted, whatever the list says */
    nbla_memory_clear_phys(second);
    assert_true(WAIT_UNTIL(observer_buffers() == 2));
    assert_int_equal(*b, 'y');
    assert_gives(nbla_memory_destroy(second), 0);
}

/* nbla_memory_grow to twice the bytes always succeeds with the same pointer; at last it gives 0 and changes nothing. */
static void grow_to_the_end(void **state)
{
    nbla_physical_memory *p = nbla_chunk(CHUNK), *large = nbla_chunk(8 << 20);
    nbla_memory *memory = nbla_bound(1, &p);
    char *pointer = nbla_memory_pointer(memory);
    size_t bytes;
    int r;

    *pointer = 1;
    do {
        bytes = nbla_memory_bytes(memory);
        r = nbla_memory_grow(memory, &large, 1);
        assert_ptr_equal(nbla_memory_pointer(memory), pointer);
    } while (r == 1);
    assert_int_equal(r, 0);
    assert_true(bytes > 2 * CHUNK);
    assert_int_equal(nbla_memory_bytes(memory), bytes);
    assert_int_equal(*pointer, 1);
    pointer[bytes - 1] = 1;
    assert_gives(nbla_memory_unbind(memory), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
    nbla_physical_memory_unref(p);
    nbla_physical_memory_unref(large);
}

/* nbla_memory_bind and nbla_memory_grow where a chunk gets no memory: NBLA_ERROR_MEMORY, and nothing has changed. */
static void all_or_nothing(void **state)
{
    nbla_physical_memory *p[2] = {nbla_physical_memory_new(NULL, CHUNK, ""),
                                  nbla_physical_memory_new(NULL, 9 << 20, "small")};
    nbla_memory *memory = nbla_memory_new_virtual(NULL, CHUNK, "", p, 2);

    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_MEMORY);
    assert_true(nbla_memory_disabled(memory));
    nbla_memory_clear_phys(memory);
    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_append_phys(memory, p, 1), 0);
    assert_gives(nbla_memory_bind(memory), 0);
    assert_gives(nbla_memory_grow(memory, p, 2), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_grow(memory, (nbla_physical_memory *[]){NULL}, 1), NBLA_ERROR_VALUE);
    assert_int_equal(nbla_memory_bytes(memory), CHUNK);
    assert_gives(nbla_memory_destroy(memory), 0);
    nbla_physical_memory_unref(p[0]);
    nbla_physical_memory_unref(p[1]);
}

/* nbla_memory_new_virtual: more bytes than the n chunks of p have cannot be bound; less can. */
static void bytes_of_virtual(void **state)
{
    nbla_physical_memory *p[2] = {nbla_chunk(CHUNK), NULL};
    size_t n = 1;
    nbla_memory *memory = nbla_memory_new_virtual(NULL, CHUNK + 1, "numa:0", p, n);

    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_append_phys(memory, p, 1), 0);
    assert_gives(nbla_memory_bind(memory), 0);
    assert_int_equal(nbla_memory_bytes(memory), CHUNK + 1);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_fails(nbla_memory_new_virtual(NULL, 1, "", p, 2), NBLA_ERROR_VALUE);
    assert_fails(nbla_memory_new_virtual(NULL, 1, "", NULL, 1), NBLA_ERROR_VALUE);
    nbla_physical_memory_unref(p[0]);
}

/* Virtual memories are no parts of one allocation: NBLA_ERROR_RUNTIME. */
static void merge_of_virtual(void **state)
{
    nbla_physical_memory *p = nbla_chunk(CHUNK);
    nbla_memory *memory = nbla_bound(1, &p), *from = nbla_bound(1, &p);

    nbla_memory_associate_consecutive(memory, from);
    assert_gives(nbla_memory_try_merge(memory, from), NBLA_ERROR_RUNTIME);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(from), 0);
    nbla_physical_memory_unref(p);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Where the session may have few addresses of the host, the process's own do; where it may have few of those, less. */
static void bind_without_room(int channel, void *context)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    nbla_physical_memory *p[2];
    struct memclient_context *ctx;
    nbla_memory *memory[3];

    (void)channel;
    (void)context;
    options.socket = observed.socket;
    CHECK(memclient_context_open(&options, &ctx) == 0);
    for (int i = 0; i < 2; i++) {
        p[i] = nbla_physical_memory_new(ctx, CHUNK, "");
        CHECK(nbla_physical_memory_alloc(p[i]) == CHUNK);
    }
    for (int i = 0; i < 3; i++) {
        memory[i] = nbla_memory_new_virtual(ctx, CHUNK, "", p, 1);
        CHECK(nbla_memory_bind(memory[i]) == 0);
        CHECK(nbla_memory_grow(memory[i], p + 1, 1) == 1);
        *(char *)nbla_memory_pointer(memory[i]) = 1;
    }
    for (int i = 0; i < 3; i++)
        CHECK(nbla_memory_destroy(memory[i]) == 0);
    for (int i = 0; i < 2; i++)
        nbla_physical_memory_unref(p[i]);
    memclient_context_close(ctx);
}

static void no_room_in_the_arena(void **state)
{
    child_run(bind_without_room, NULL);
}

static void bind_with_few_addresses(int channel, void *context)
{
    nbla_physical_memory *p = nbla_physical_memory_new(NULL, CHUNK, "");
    struct rlimit limit = {.rlim_cur = (rlim_t)220 << 20, .rlim_max = (rlim_t)220 << 20};
    nbla_memory *memory = nbla_memory_new_virtual(NULL, CHUNK, "", &p, 1);

    (void)channel;
    (void)context;
    CHECK(nbla_physical_memory_alloc(p) == CHUNK);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(nbla_memory_bind(memory) == 0);
    CHECK(nbla_memory_grow(memory, &p, 1) == 0);
    *(char *)nbla_memory_pointer(memory) = 1;
    CHECK(nbla_memory_destroy(memory) == 0);
    nbla_physical_memory_unref(p);
}

/* Room is a wish: where the process may not have it, it is bound without, and does not grow. */
static void no_room_in_the_process(void **state)
{
    if (TEST_ASAN || TEST_TSAN)
        test_skip("sanitizers need addresses without a limit");
    child_run(bind_with_few_addresses, NULL);
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static void use_in_child(int channel, void *context)
{
    nbla_memory *memory = context;
    char *pointer = nbla_memory_pointer(memory);

    (void)channel;
    CHECK(*pointer == 1);
    *pointer = 2;
    CHECK(nbla_memory_unbind(memory) == 0);
    CHECK(nbla_memory_destroy(memory) == 0);
}

/* A child has the addresses as well, and what it writes and unbinds stays in the parent, which can grow it. */
static void forked(void **state)
{
    nbla_physical_memory *p = nbla_chunk(CHUNK);
    nbla_memory *memory = nbla_bound(1, &p);
    char *pointer = nbla_memory_pointer(memory);

    *pointer = 1;
    child_run(use_in_child, memory);
    assert_int_equal(*pointer, 1);
    assert_gives(nbla_memory_grow(memory, &p, 1), 1);
    assert_int_equal(pointer[CHUNK], 1);
    assert_gives(nbla_memory_destroy(memory), 0);
    nbla_physical_memory_unref(p);
}

#define TEST(function) cmocka_unit_test_teardown(function, nbla_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(physical),
        TEST(counted),
        TEST(physical_fails),
        TEST(bind_grow_unbind),
        TEST(aliases),
        TEST(grow_to_the_end),
        TEST(all_or_nothing),
        TEST(bytes_of_virtual),
        TEST(merge_of_virtual),
        TEST(no_room_in_the_arena),
        TEST(no_room_in_the_process),
        TEST(forked),
    };

    nbla_config = "[pool small]\nnodes = 1\ncapacity = 8M\n[limits]\nsession_addresses = 600M\n";
    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
