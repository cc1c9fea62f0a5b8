/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The class, sentence by sentence of nnabla's document, with a kind of memory of the test's own: what the class does by
 * itself, and when it calls which operation. There is no broker.
 */
#include "tests/unit/nbla/nbla.h"

#include <stdlib.h>
#include <string.h>

/* ---- a kind of memory -------------------------------------------------------------------------------------------- */

/* The operations that were called, and what they are to give. */
static struct {
    char calls[256];
    int result;
    nbla_memory *memory;
    nbla_memory *from;
    size_t bytes;
    size_t n;
} mock;

static int note(const char *call, nbla_memory *memory, nbla_memory *from)
{
    size_t length = strlen(mock.calls);

    snprintf(mock.calls + length, sizeof(mock.calls) - length, "%s%s", length ? " " : "", call);
    mock.memory = memory;
    mock.from = from;
    mock.bytes = nbla_memory_bytes(memory);
    return mock.result;
}

/* Since the last time. */
#define assert_calls(wanted)                     \
    do {                                         \
        assert_string_equal(mock.calls, wanted); \
        *mock.calls = '\0';                      \
    } while (0)

static int mock_alloc(nbla_memory *memory)
{
    int r = note("alloc", memory, NULL);

    if (r >= 0)
        nbla_memory_set_pointer(memory, nbla_memory_priv(memory));
    return r;
}

static const struct nbla_memory_ops plain_ops, full_ops;

static int mock_divide(nbla_memory *memory, size_t second_start, nbla_memory **second)
{
    int r = note("divide", memory, NULL);

    if (r < 0)
        return r;
    *second = nbla_memory_new_ops(nbla_memory_bytes(memory) - second_start, nbla_memory_device_id(memory),
                                  NBLA_TYPE_NORMAL, &plain_ops, NULL);
    nbla_memory_set_pointer(*second, (char *)nbla_memory_pointer(memory) + second_start);
    return 0;
}

static int mock_merge_next(nbla_memory *memory, nbla_memory *from)
{
    return note("merge_next", memory, from);
}

static int mock_merge_prev(nbla_memory *memory, nbla_memory *from)
{
    int r = note("merge_prev", memory, from);

    if (r >= 0)
        nbla_memory_set_pointer(memory, nbla_memory_pointer(from));
    return r;
}

static int mock_bind(nbla_memory *memory)
{
    int r = note("bind", memory, NULL);

    if (r >= 0)
        nbla_memory_set_pointer(memory, nbla_memory_priv(memory));
    return r;
}

static int mock_unbind(nbla_memory *memory)
{
    return note("unbind", memory, NULL);
}

static int mock_grow(nbla_memory *memory, nbla_physical_memory *const *p, size_t n)
{
    (void)p;
    mock.n = n;
    return note("grow", memory, NULL);
}

static nbla_device_memory_state mock_state(nbla_memory *memory)
{
    (void)note("get_device_state", memory, NULL);
    return NBLA_DEVICE_LOCKED;
}

static void mock_lock(nbla_memory *memory)
{
    (void)note("lock_device", memory, NULL);
}

static void mock_unlock(nbla_memory *memory)
{
    (void)note("unlock_device", memory, NULL);
}

static void mock_destroy(nbla_memory *memory)
{
    (void)note("destroy", memory, NULL);
}

/* No more than what a class that derives must have. */
static const struct nbla_memory_ops plain_ops = {
    .size = sizeof(plain_ops),
    .alloc = mock_alloc,
    .divide = mock_divide,
    .merge_next = mock_merge_next,
    .merge_prev = mock_merge_prev,
};

static const struct nbla_memory_ops full_ops = {
    .size = sizeof(full_ops),
    .alloc = mock_alloc,
    .divide = mock_divide,
    .merge_next = mock_merge_next,
    .merge_prev = mock_merge_prev,
    .bind = mock_bind,
    .unbind = mock_unbind,
    .grow = mock_grow,
    .get_device_state = mock_state,
    .lock_device = mock_lock,
    .destroy = mock_destroy,
    .unlock_device = mock_unlock,
};

static char bytes_of_all[65536];

static nbla_memory *make(size_t bytes)
{
    nbla_memory *memory = nbla_memory_new_ops(bytes, "mock", NBLA_TYPE_NORMAL, &plain_ops, bytes_of_all);

    assert_non_null(memory);
    return memory;
}

static nbla_memory *make_allocated(size_t bytes)
{
    nbla_memory *memory = make(bytes);

    assert_gives(nbla_memory_alloc(memory), 0);
    return memory;
}

/* Three blocks of 100, linked: memory, second, third. */
static void make_three(nbla_memory *blocks[3])
{
    blocks[0] = make_allocated(300);
    assert_gives(nbla_memory_divide(blocks[0], 100, &blocks[1]), 0);
    assert_gives(nbla_memory_divide(blocks[1], 100, &blocks[2]), 0);
    *mock.calls = '\0';
}

static int setup(void **state)
{
    memset(&mock, 0, sizeof(mock));
    return 0;
}

/* ---- construction ------------------------------------------------------------------------------------------------ */

/* nbla_memory_new_ops: "Constructor will be called from a inherited class constructor to set bytes and device_id." */
static void new_ops(void **state)
{
    nbla_memory_type type = NBLA_TYPE_VIRTUAL;
    nbla_memory *memory = nbla_memory_new_ops(1000, "some device_id", type, &plain_ops, bytes_of_all);
    struct nbla_memory_ops ops = plain_ops;
    void *priv = bytes_of_all;

    assert_int_equal(nbla_memory_bytes(memory), 1000);
    assert_int_equal(nbla_memory_requested_bytes(memory), 1000);
    assert_string_equal(nbla_memory_device_id(memory), "some device_id");
    assert_int_equal(nbla_memory_get_type(memory), NBLA_TYPE_VIRTUAL);
    assert_ptr_equal(nbla_memory_priv(memory), priv);
    assert_true(nbla_memory_disabled(memory));
    assert_false(nbla_memory_locked(memory));
    assert_gives(nbla_memory_destroy(memory), 0);

    assert_fails(nbla_memory_new_ops(1, NULL, type, &ops, priv), NBLA_ERROR_VALUE);
    assert_fails(nbla_memory_new_ops(1, "", type, NULL, priv), NBLA_ERROR_VALUE);
    assert_fails(nbla_memory_new_ops(1, "", (nbla_memory_type)2, &ops, priv), NBLA_ERROR_VALUE);
    ops.size = offsetof(struct nbla_memory_ops, merge_prev);
    assert_fails(nbla_memory_new_ops(1, "", type, &ops, priv), NBLA_ERROR_VALUE);
    for (int missing = 0; missing < 4; missing++) {
        ops = plain_ops;
        ops.alloc = missing == 0 ? NULL : mock_alloc;
        ops.divide = missing == 1 ? NULL : mock_divide;
        ops.merge_next = missing == 2 ? NULL : mock_merge_next;
        ops.merge_prev = missing == 3 ? NULL : mock_merge_prev;
        assert_fails(nbla_memory_new_ops(1, "", type, &ops, priv), NBLA_ERROR_VALUE);
    }
}

/* Programs compiled it in: it may grow at its end in a later version, with a new line here, and never change else. */
static void layout(void **state)
{
    if (sizeof(void *) != 8)
        test_skip("the sizes are those of 64-bit systems");
    assert_int_equal(offsetof(struct nbla_memory_ops, alloc), 8);
    assert_int_equal(offsetof(struct nbla_memory_ops, destroy), 80);
    assert_int_equal(sizeof(struct nbla_memory_ops), 104);
}

/* nbla_memory_bytes: 0 counts as 1. */
static void no_bytes_are_one(void **state)
{
    nbla_memory *memory = make(0);

    assert_int_equal(nbla_memory_bytes(memory), 1);
    assert_int_equal(nbla_memory_requested_bytes(memory), 1);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* struct nbla_memory_ops of an older program, by its size: unbind, grow, get_device_state, lock_device, destroy,
 * unlock_device and buffer are the defaults. */
static void older_ops(void **state)
{
    struct nbla_memory_ops ops = full_ops;
    struct memclient_token token;
    uint64_t offset, length;
    nbla_memory *memory;

    ops.size = offsetof(struct nbla_memory_ops, unbind);
    memory = nbla_memory_new_ops(1, "", NBLA_TYPE_VIRTUAL, &ops, bytes_of_all);
    assert_gives(nbla_memory_bind(memory), 0);
    assert_gives(nbla_memory_unbind(memory), NBLA_ERROR_NOT_IMPLEMENTED);
    assert_gives(nbla_memory_grow(memory, NULL, 0), NBLA_ERROR_NOT_IMPLEMENTED);
    assert_gives(nbla_memory_token(memory, &token, &offset, &length), NBLA_ERROR_NOT_IMPLEMENTED);
    nbla_memory_lock_device(memory);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    nbla_memory_unlock_device(memory);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_calls("bind");
}

/* Of a newer program: an operation that is not known here must not be there. */
static void newer_ops(void **state)
{
    struct {
        struct nbla_memory_ops ops;
        void (*later)(void);
    } newer = {.ops = full_ops};
    nbla_memory *memory;

    newer.ops.size = sizeof(newer);
    memory = nbla_memory_new_ops(1, "", NBLA_TYPE_VIRTUAL, &newer.ops, bytes_of_all);
    assert_gives(nbla_memory_bind(memory), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
    newer.later = abort;
    assert_fails(nbla_memory_new_ops(1, "", NBLA_TYPE_VIRTUAL, &newer.ops, bytes_of_all), NBLA_ERROR_VALUE);
}

/*
 * nbla_memory_destroy: "It is recommended to insert assertion ensuring that this->prev() returns false". "If ptr_ is
 * nullptr, a Memory has previously been merged to another, and is not retaining a memory block that should be freed."
 * The operation is called with or without memory; RUNTIME is NBLA_ERROR_RUNTIME.
 */
static void destroy(void **state)
{
    nbla_memory *memory = nbla_memory_new_ops(1, "", NBLA_TYPE_NORMAL, &full_ops, bytes_of_all), *blocks[3];

    assert_gives(nbla_memory_destroy(NULL), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_calls("destroy");

    make_three(blocks);
    assert_gives(nbla_memory_destroy(blocks[1]), NBLA_ERROR_RUNTIME);
    assert_gives(nbla_memory_destroy(blocks[2]), NBLA_ERROR_RUNTIME);
    assert_ptr_equal(nbla_memory_prev(blocks[2]), blocks[1]);
    /* the head before the tail; its neighbour has no link to it any more */
    assert_gives(nbla_memory_destroy(blocks[0]), 0);
    assert_null(nbla_memory_prev(blocks[1]));
    assert_gives(nbla_memory_destroy(blocks[1]), 0);
    assert_null(nbla_memory_prev(blocks[2]));
    assert_gives(nbla_memory_destroy(blocks[2]), 0);
}

/* A block that was merged may go before, or after, those that it still knows. */
static void destroy_merged(void **state)
{
    nbla_memory *blocks[3];

    make_three(blocks);
    assert_gives(nbla_memory_try_merge(blocks[0], blocks[1]), 1);
    assert_ptr_equal(nbla_memory_prev(blocks[1]), blocks[0]);
    assert_ptr_equal(nbla_memory_next(blocks[1]), blocks[2]);
    assert_gives(nbla_memory_try_merge(blocks[0], blocks[2]), 1);
    assert_gives(nbla_memory_destroy(blocks[2]), 0);
    assert_null(nbla_memory_next(blocks[1]));
    assert_gives(nbla_memory_destroy(blocks[0]), 0);
    assert_null(nbla_memory_prev(blocks[1]));
    assert_gives(nbla_memory_destroy(blocks[1]), 0);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* nbla_memory_bytes: "Get memory block size in bytes." nbla_memory_requested_bytes: "Get requested allocation memory
 * size in bytes." The two of memory that was divided differ; nbla_memory_set_requested_bytes sets the second. */
static void bytes_and_requested_bytes(void **state)
{
    nbla_memory *memory = make_allocated(1000), *second;

    assert_gives(nbla_memory_divide(memory, 400, &second), 0);
    assert_int_equal(nbla_memory_bytes(memory), 400);
    assert_int_equal(nbla_memory_requested_bytes(memory), 1000);
    assert_int_equal(nbla_memory_bytes(second), 600);
    assert_int_equal(nbla_memory_requested_bytes(second), 600);
    nbla_memory_set_requested_bytes(memory, 350);
    assert_int_equal(nbla_memory_requested_bytes(memory), 350);
    nbla_memory_set_requested_bytes(memory, 0);
    assert_int_equal(nbla_memory_requested_bytes(memory), 0);
    nbla_memory_set_requested_bytes(memory, SIZE_MAX);
    assert_int_equal(nbla_memory_requested_bytes(memory), 400);
    assert_gives(nbla_memory_try_merge(memory, second), 1);
    assert_int_equal(nbla_memory_requested_bytes(memory), 1000);
    assert_gives(nbla_memory_destroy(second), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* nbla_memory_pointer, nbla_memory_const_pointer: "Get a raw pointer retaining a memory block instance."
 * nbla_memory_set_pointer says which; nbla_memory_device_id: "Get device id as a string."; nbla_memory_get_type: one of
 * nbla_memory_type. */
static void pointer(void **state)
{
    nbla_memory *memory = make(10);

    assert_null(nbla_memory_pointer(memory));
    assert_null(nbla_memory_const_pointer(memory));
    assert_gives(nbla_memory_alloc(memory), 0);
    assert_ptr_equal(nbla_memory_pointer(memory), bytes_of_all);
    assert_ptr_equal(nbla_memory_const_pointer(memory), bytes_of_all);
    nbla_memory_set_pointer(memory, bytes_of_all + 1);
    assert_ptr_equal(nbla_memory_pointer(memory), bytes_of_all + 1);
    assert_string_equal(nbla_memory_device_id(memory), "mock");
    assert_int_equal(nbla_memory_get_type(memory), NBLA_TYPE_NORMAL);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* nbla_memory_locked: "This returns true if this Memory instance is in use." nbla_memory_lock: "Get a lock of this
 * Memory instance when it's used to prevent merging with another." nbla_memory_release: "Release a lock when it's not
 * used." It is not counted. */
static void lock_and_release(void **state)
{
    nbla_memory *memory = make_allocated(10), *second;

    assert_gives(nbla_memory_divide(memory, 5, &second), 0);
    assert_false(nbla_memory_locked(memory));
    nbla_memory_lock(memory);
    nbla_memory_lock(memory);
    assert_true(nbla_memory_locked(memory));
    assert_false(nbla_memory_locked(second));
    assert_gives(nbla_memory_try_merge(second, memory), 0);
    nbla_memory_release(memory);
    assert_false(nbla_memory_locked(memory));
    nbla_memory_release(memory);
    nbla_memory_lock(second);
    assert_gives(nbla_memory_try_merge(second, memory), 1);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(second), 0);
}

/* nbla_memory_disabled: "This returns whether the Memory instance was disabled by merging to another memory block." So
 * it is of memory that has none yet. */
static void disabled(void **state)
{
    nbla_memory *memory = make(10), *second;

    assert_true(nbla_memory_disabled(memory));
    assert_gives(nbla_memory_alloc(memory), 0);
    assert_false(nbla_memory_disabled(memory));
    assert_gives(nbla_memory_divide(memory, 5, &second), 0);
    assert_false(nbla_memory_disabled(second));
    assert_gives(nbla_memory_try_merge(memory, second), 1);
    assert_true(nbla_memory_disabled(second));
    assert_false(nbla_memory_disabled(memory));
    assert_int_equal(nbla_memory_bytes(second), 5);
    assert_gives(nbla_memory_destroy(second), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* nbla_memory_next: "Returns the next memory block which has previously been split from an originally allocated memory
 * block." nbla_memory_prev: "Returns the previous memory block." */
static void next_and_prev(void **state)
{
    nbla_memory *blocks[3];

    make_three(blocks);
    assert_null(nbla_memory_prev(blocks[0]));
    assert_ptr_equal(nbla_memory_next(blocks[0]), blocks[1]);
    assert_ptr_equal(nbla_memory_prev(blocks[1]), blocks[0]);
    assert_ptr_equal(nbla_memory_next(blocks[1]), blocks[2]);
    assert_ptr_equal(nbla_memory_prev(blocks[2]), blocks[1]);
    assert_null(nbla_memory_next(blocks[2]));
    for (int i = 0; i < 3; i++)
        assert_gives(nbla_memory_destroy(blocks[i]), 0);
}

/* nbla_memory_associate_consecutive: "Set Memory::prev_/Memory::next_ pointers of `left` and `right` as connected."
 * Whatever they were connected with keeps its own, which end with what they lead to. */
static void associate_consecutive(void **state)
{
    nbla_memory *left = make(1), *right = make(1), *other = make(1);

    nbla_memory_associate_consecutive(NULL, NULL);
    nbla_memory_associate_consecutive(left, right);
    assert_ptr_equal(nbla_memory_next(left), right);
    assert_ptr_equal(nbla_memory_prev(right), left);
    assert_null(nbla_memory_prev(left));
    nbla_memory_associate_consecutive(left, other);
    assert_ptr_equal(nbla_memory_next(left), other);
    assert_ptr_equal(nbla_memory_prev(right), left);
    nbla_memory_associate_consecutive(NULL, other);
    assert_null(nbla_memory_prev(other));
    assert_ptr_equal(nbla_memory_next(left), other);
    assert_gives(nbla_memory_destroy(left), 0);
    assert_null(nbla_memory_prev(right));
    nbla_memory_associate_consecutive(right, right);
    nbla_memory_associate_consecutive(right, NULL);
    assert_null(nbla_memory_next(right));
    assert_gives(nbla_memory_destroy(right), 0);
    assert_gives(nbla_memory_destroy(other), 0);
}

/* nbla_memory_bytes_active: "Returns number of bytes of memory block this owns. This returns 0 if this is not
 * originally allocated memory instance, i.e., divided by another memory." So of both halves. */
static void bytes_active(void **state)
{
    nbla_memory *memory = make(10), *second;

    assert_int_equal(nbla_memory_bytes_active(memory), 0);
    assert_gives(nbla_memory_alloc(memory), 0);
    assert_int_equal(nbla_memory_bytes_active(memory), 10);
    assert_gives(nbla_memory_divide(memory, 5, &second), 0);
    assert_int_equal(nbla_memory_bytes_active(memory), 0);
    assert_int_equal(nbla_memory_bytes_active(second), 0);
    assert_gives(nbla_memory_try_merge(memory, second), 1);
    assert_int_equal(nbla_memory_bytes_active(memory), 10);
    assert_int_equal(nbla_memory_bytes_active(second), 0);
    assert_gives(nbla_memory_destroy(second), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* nbla_memory_alloc: "Allocate memory by Memory::alloc_impl implemented in an implementation class." Twice is VALUE, a
 * failure is its own and may be tried again: NBLA_ERROR_VALUE, NBLA_ERROR_MEMORY. */
static void alloc(void **state)
{
    nbla_memory *memory = make(10), *without = nbla_memory_new_ops(1, "", NBLA_TYPE_NORMAL, &plain_ops, NULL);

    mock.result = NBLA_ERROR_IO;
    assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_IO);
    mock.result = NBLA_ERROR_MEMORY;
    assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_MEMORY);
    assert_true(nbla_memory_disabled(memory));
    mock.result = 0;
    assert_gives(nbla_memory_alloc(memory), 0);
    assert_calls("alloc alloc alloc");
    assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_VALUE);
    assert_calls("");
    /* it says that it has, and has not */
    assert_gives(nbla_memory_alloc(without), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_alloc(NULL), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(without), 0);
}

/* nbla_memory_divide: "This splits memory at an offset specified by second_start, and returns a second block. A first
 * block is retained in this instance." Checked first: NBLA_ERROR_VALUE; without memory NBLA_ERROR_MEMORY. */
static void divide(void **state)
{
    nbla_memory *memory = make(100), *second = NULL, *third;

    assert_gives(nbla_memory_divide(memory, 0, &second), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_divide(memory, 100, &second), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_divide(memory, SIZE_MAX, &second), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_divide(memory, 50, &second), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_alloc(memory), 0);
    assert_calls("alloc");
    assert_gives(nbla_memory_divide(memory, 50, NULL), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_divide(NULL, 50, &second), NBLA_ERROR_VALUE);
    mock.result = NBLA_ERROR_RUNTIME;
    assert_gives(nbla_memory_divide(memory, 50, &second), NBLA_ERROR_RUNTIME);
    assert_null(second);
    assert_int_equal(nbla_memory_bytes(memory), 100);
    mock.result = 0;
    nbla_memory_lock(memory);
    assert_gives(nbla_memory_divide(memory, 60, &second), 0);
    assert_int_equal(mock.bytes, 100); /* when it was called */
    assert_calls("divide divide");
    assert_ptr_equal(nbla_memory_pointer(second), bytes_of_all + 60);
    assert_false(nbla_memory_locked(second));
    /* in the middle */
    assert_gives(nbla_memory_divide(memory, 59, &third), 0);
    assert_ptr_equal(nbla_memory_next(memory), third);
    assert_ptr_equal(nbla_memory_prev(third), memory);
    assert_ptr_equal(nbla_memory_next(third), second);
    assert_ptr_equal(nbla_memory_prev(second), third);
    assert_int_equal(nbla_memory_bytes(third), 1);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(third), 0);
    assert_gives(nbla_memory_destroy(second), 0);
}

static int divide_into_nothing(nbla_memory *memory, size_t second_start, nbla_memory **second)
{
    (void)memory;
    (void)second_start;
    (void)second;
    return 0;
}

/* An operation says that it has divided it, and has not. */
static void no_second(void **state)
{
    struct nbla_memory_ops ops = plain_ops;
    nbla_memory *memory, *second = NULL;

    ops.divide = divide_into_nothing;
    memory = nbla_memory_new_ops(100, "", NBLA_TYPE_NORMAL, &ops, bytes_of_all);
    assert_gives(nbla_memory_alloc(memory), 0);
    assert_gives(nbla_memory_divide(memory, 50, &second), NBLA_ERROR_MEMORY);
    assert_null(second);
    assert_int_equal(nbla_memory_bytes(memory), 100);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* nbla_memory_try_merge: "Merge another memory block specified by from if it's possible. Merging is performed if [...]
 * `from` is a valid pointer. `from` is not locked. `from` is next or previous of this. When merged, `from` will be
 * disabled". */
static void try_merge(void **state)
{
    nbla_memory *memory, *from, *blocks[3];

    make_three(blocks);
    memory = blocks[1];
    from = blocks[2];
    nbla_memory_lock(memory); /* does not matter */
    assert_gives(nbla_memory_try_merge(memory, NULL), 0);
    assert_gives(nbla_memory_try_merge(NULL, from), NBLA_ERROR_VALUE);
    nbla_memory_lock(from);
    assert_gives(nbla_memory_try_merge(memory, from), 0);
    nbla_memory_release(from);
    assert_calls("");
    assert_gives(nbla_memory_try_merge(memory, from), 1);
    assert_calls("merge_next");
    assert_ptr_equal(mock.memory, memory);
    assert_ptr_equal(mock.from, from);
    assert_int_equal(nbla_memory_bytes(memory), 200);
    assert_true(nbla_memory_disabled(from));
    assert_null(nbla_memory_next(memory));
    from = blocks[0];
    assert_gives(nbla_memory_try_merge(memory, from), 1);
    assert_calls("merge_prev");
    assert_int_equal(nbla_memory_bytes(memory), 300);
    assert_ptr_equal(nbla_memory_pointer(memory), bytes_of_all);
    assert_true(nbla_memory_disabled(from));
    assert_null(nbla_memory_prev(memory));
    for (int i = 0; i < 3; i++)
        assert_gives(nbla_memory_destroy(blocks[i]), 0);
}

/* nbla_memory_try_merge: merging what is neither next nor previous does nothing, and adds nothing. */
static void merge_of_others(void **state)
{
    nbla_memory *blocks[3], *other = make_allocated(50);

    make_three(blocks);
    assert_gives(nbla_memory_try_merge(blocks[0], blocks[2]), 0);
    assert_gives(nbla_memory_try_merge(blocks[0], other), 0);
    assert_gives(nbla_memory_try_merge(blocks[0], blocks[0]), 0);
    assert_int_equal(nbla_memory_bytes(blocks[0]), 100);
    assert_false(nbla_memory_disabled(other));
    assert_ptr_equal(nbla_memory_next(blocks[0]), blocks[1]);
    assert_calls("");
    for (int i = 0; i < 3; i++)
        assert_gives(nbla_memory_destroy(blocks[i]), 0);
    assert_gives(nbla_memory_destroy(other), 0);
}

/* nbla_memory_try_merge: memory of two kinds, though linked, is NBLA_ERROR_RUNTIME; and what an operation refuses is
 * not done. */
static void merge_refused(void **state)
{
    nbla_memory *memory = make_allocated(10), *second;
    nbla_memory *other = nbla_memory_new_ops(1, "", NBLA_TYPE_NORMAL, &full_ops, bytes_of_all);

    assert_gives(nbla_memory_divide(memory, 5, &second), 0);
    mock.result = NBLA_ERROR_RUNTIME;
    assert_gives(nbla_memory_try_merge(memory, second), NBLA_ERROR_RUNTIME);
    assert_gives(nbla_memory_try_merge(second, memory), NBLA_ERROR_RUNTIME);
    assert_int_equal(nbla_memory_bytes(memory), 5);
    assert_false(nbla_memory_disabled(second));
    assert_ptr_equal(nbla_memory_next(memory), second);
    mock.result = 0;
    nbla_memory_associate_consecutive(second, other);
    assert_gives(nbla_memory_try_merge(second, other), NBLA_ERROR_RUNTIME);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(second), 0);
    assert_gives(nbla_memory_destroy(other), 0);
}

/* ---- virtual memory ---------------------------------------------------------------------------------------------- */

/* nbla_memory_bind, nbla_memory_unbind, nbla_memory_grow: "This method can be executed only if memory_type_ ==
 * MemType::Virtual." Else NBLA_ERROR_MEMORY. */
static void only_virtual(void **state)
{
    nbla_memory *memory = nbla_memory_new_ops(1, "", NBLA_TYPE_NORMAL, &full_ops, bytes_of_all);

    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_unbind(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_grow(memory, NULL, 0), NBLA_ERROR_MEMORY);
    assert_calls("");
    assert_gives(nbla_memory_bind(NULL), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_unbind(NULL), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_grow(NULL, NULL, 0), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* nbla_memory_bind, nbla_memory_unbind and nbla_memory_grow of a kind that has none: NBLA_ERROR_NOT_IMPLEMENTED. */
static void not_implemented(void **state)
{
    nbla_memory *memory = nbla_memory_new_ops(1, "", NBLA_TYPE_VIRTUAL, &plain_ops, bytes_of_all);
    uint64_t offset, length;
    int fd;

    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_NOT_IMPLEMENTED);
    assert_gives(nbla_memory_unbind(memory), NBLA_ERROR_NOT_IMPLEMENTED);
    assert_gives(nbla_memory_grow(memory, NULL, 0), NBLA_ERROR_NOT_IMPLEMENTED);
    nbla_memory_set_pointer(memory, bytes_of_all);
    assert_gives(nbla_memory_export(memory, &fd, &offset, &length), NBLA_ERROR_NOT_IMPLEMENTED);
    assert_int_equal(nbla_memory_id(memory), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* nbla_memory_bind and nbla_memory_unbind: the pointer is there between them. nbla_memory_grow: n more of p. */
static void virtual_operations(void **state)
{
    nbla_memory *memory = nbla_memory_new_ops(1, "", NBLA_TYPE_VIRTUAL, &full_ops, bytes_of_all);
    nbla_physical_memory *p[2] = {nbla_physical_memory_new(NULL, 30, ""), nbla_physical_memory_new(NULL, 12, "")};

    mock.result = NBLA_ERROR_MEMORY;
    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_MEMORY);
    assert_true(nbla_memory_disabled(memory));
    mock.result = 0;
    assert_gives(nbla_memory_bind(memory), 0);
    assert_ptr_equal(nbla_memory_pointer(memory), bytes_of_all);
    assert_int_equal(nbla_memory_bytes_active(memory), 1);
    assert_gives(nbla_memory_grow(memory, p, 2), 0);
    assert_int_equal(nbla_memory_bytes(memory), 1);
    mock.result = NBLA_ERROR_OS;
    assert_gives(nbla_memory_grow(memory, p, 2), NBLA_ERROR_OS);
    assert_gives(nbla_memory_unbind(memory), NBLA_ERROR_OS);
    assert_false(nbla_memory_disabled(memory));
    mock.result = 1;
    assert_gives(nbla_memory_grow(memory, p, 2), 1);
    assert_int_equal(mock.n, 2);
    assert_int_equal(nbla_memory_bytes(memory), 43);
    assert_int_equal(nbla_memory_phys_count(memory), 0);
    assert_gives(nbla_memory_unbind(memory), 0);
    assert_true(nbla_memory_disabled(memory));
    assert_calls("bind bind grow grow unbind grow unbind");
    assert_gives(nbla_memory_grow(memory, NULL, 1), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_grow(memory, (nbla_physical_memory *[]){p[0], NULL}, 2), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_destroy(memory), 0);
    nbla_physical_memory_unref(p[0]);
    nbla_physical_memory_unref(p[1]);
}

/* nbla_memory_phys_at: "Get physical memory as reference." nbla_memory_append_phys: "Append physical memories."
 * nbla_memory_clear_phys: "Clear physical memory." They count; nbla_memory_phys_count tells how many, of whatever
 * memory. p, n, and i may be anything. */
static void physical_memories(void **state)
{
    nbla_memory *memory = make(1);
    nbla_physical_memory *p[3] = {nbla_physical_memory_new(NULL, 1, ""), nbla_physical_memory_new(NULL, 2, "")};
    size_t n = 2, i = 0;

    p[2] = p[0];
    assert_int_equal(nbla_memory_phys_count(memory), 0);
    assert_null(nbla_memory_phys_at(memory, i));
    assert_gives(nbla_memory_append_phys(memory, p, n), 0);
    assert_gives(nbla_memory_append_phys(memory, p + n, 1), 0);
    assert_gives(nbla_memory_append_phys(memory, NULL, 0), 0);
    nbla_physical_memory_unref(p[0]);
    nbla_physical_memory_unref(p[1]);
    assert_int_equal(nbla_memory_phys_count(memory), 3);
    for (i = 0; i < 3; i++)
        assert_ptr_equal(nbla_memory_phys_at(memory, i), p[i]);
    assert_null(nbla_memory_phys_at(memory, 3));
    assert_int_equal(nbla_physical_memory_bytes(nbla_memory_phys_at(memory, 1)), 2);
    assert_gives(nbla_memory_append_phys(memory, NULL, 1), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_append_phys(memory, (nbla_physical_memory *[]){p[0], NULL}, 2), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_append_phys(NULL, p, 1), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_append_phys(memory, p, SIZE_MAX / 8), NBLA_ERROR_MEMORY);
    assert_int_equal(nbla_memory_phys_count(memory), 3);
    nbla_memory_clear_phys(memory);
    nbla_memory_clear_phys(memory);
    assert_int_equal(nbla_memory_phys_count(memory), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

/* nbla_memory_get_device_state: "In default this function does noting and return DeviceMemoryState::Unlocked."
 * nbla_memory_lock_device: "Request device memory state [...] In default this function does nothing."
 * nbla_memory_unlock_device likewise. A kind's own nbla_device_memory_state is given as it is. */
static void device_state(void **state)
{
    nbla_memory *memory = make(1), *other = nbla_memory_new_ops(1, "", NBLA_TYPE_NORMAL, &full_ops, bytes_of_all);

    nbla_memory_lock_device(memory);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    nbla_memory_unlock_device(memory);
    nbla_memory_lock_device(other);
    assert_int_equal(nbla_memory_get_device_state(other), NBLA_DEVICE_LOCKED);
    nbla_memory_unlock_device(other);
    assert_calls("lock_device get_device_state unlock_device");
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(other), 0);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* nbla_strerror of each error; nbla_error and nbla_error_code are the last failure's. */
static void errors(void **state)
{
    static const struct {
        enum nbla_status error;
        int number;
        const char *name;
    } rows[] = {
        {NBLA_ERROR_UNCLASSIFIED, -1, "unclassified"},
        {NBLA_ERROR_NOT_IMPLEMENTED, -2, "not_implemented"},
        {NBLA_ERROR_VALUE, -3, "value"},
        {NBLA_ERROR_TYPE, -4, "type"},
        {NBLA_ERROR_MEMORY, -5, "memory"},
        {NBLA_ERROR_IO, -6, "io"},
        {NBLA_ERROR_OS, -7, "os"},
        {NBLA_ERROR_TARGET_SPECIFIC, -8, "target_specific"},
        {NBLA_ERROR_TARGET_SPECIFIC_ASYNC, -9, "target_specific_async"},
        {NBLA_ERROR_RUNTIME, -10, "runtime"},
    };
    nbla_memory *memory = make(1);

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(rows[i].error, rows[i].number);
        assert_string_equal(nbla_strerror(rows[i].number), rows[i].name);
    }
    assert_string_equal(nbla_strerror(0), "unclassified");
    assert_string_equal(nbla_strerror(-11), "unclassified");
    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_MEMORY);
    assert_string_equal(nbla_error(), "this memory is not virtual: calling bind() is prohibited");
    assert_gives(nbla_memory_alloc(memory), 0);
    assert_int_equal(nbla_error_code(), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* Where no broker is: an object is made without one, a device must be asked for, and memory says so. */
static void no_broker(void **state)
{
    nbla_memory *memory = nbla_memory_new(NULL, 1, "");
    nbla_physical_memory *p = nbla_physical_memory_new(NULL, 1, "");

    assert_gives(nbla_memory_alloc(memory), NBLA_ERROR_OS);
    assert_fails(nbla_physical_memory_alloc(p), NBLA_ERROR_OS);
    assert_fails(nbla_memory_new(NULL, 1, "numa:0"), NBLA_ERROR_OS);
    assert_int_equal(nbla_memory_get_device_state(memory), NBLA_DEVICE_UNLOCKED);
    assert_gives(nbla_memory_destroy(memory), 0);
    nbla_physical_memory_unref(p);
}

static int group_setup(void **state)
{
    setenv("MEMORYD_SOCKET", "/nonexistent/memoryd.sock", 1);
    assert_string_equal(nbla_error(), "");
    assert_int_equal(nbla_error_code(), 0);
    return 0;
}

#define TEST(function) cmocka_unit_test_setup(function, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(new_ops),
        TEST(layout),
        TEST(no_bytes_are_one),
        TEST(older_ops),
        TEST(newer_ops),
        TEST(destroy),
        TEST(destroy_merged),
        TEST(bytes_and_requested_bytes),
        TEST(pointer),
        TEST(lock_and_release),
        TEST(disabled),
        TEST(next_and_prev),
        TEST(associate_consecutive),
        TEST(bytes_active),
        TEST(alloc),
        TEST(divide),
        TEST(no_second),
        TEST(try_merge),
        TEST(merge_of_others),
        TEST(merge_refused),
        TEST(only_virtual),
        TEST(not_implemented),
        TEST(virtual_operations),
        TEST(physical_memories),
        TEST(device_state),
        TEST(errors),
        TEST(no_broker),
    };

    return test_run(tests, group_setup, NULL);
}
