/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random sequences of the class's operations, with a model of the class beside it: after each step every block says
 * what its model says, the blocks of an allocation cover it without a gap, and every byte is what was last written.
 *
 * The model is nnabla's class with the document's condition for merging. A failure prints the seed; NBLA_SEED=N runs it
 * again.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/nbla/nbla.h"

enum { BLOCKS = 48, STEPS = 4000, LARGEST = 40000 };

struct model {
    nbla_memory *memory; /* NULL: none */
    size_t bytes;
    size_t requested;
    char *pointer;
    bool locked;
    int next, prev; /* -1 = none */
    unsigned char fill;
};

static struct model models[BLOCKS];
static unsigned long seed;

static unsigned next_random(unsigned below)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(seed >> 33) % below;
}

static int free_place(void)
{
    for (int i = 0; i < BLOCKS; i++)
        if (!models[i].memory)
            return i;
    return -1;
}

static nbla_memory *memory_at(int i)
{
    return i < 0 ? NULL : models[i].memory;
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static void check_bytes(const struct model *model)
{
    for (size_t i = 0; i < model->bytes; i += 97)
        assert_int_equal((unsigned char)model->pointer[i], model->fill);
    assert_int_equal((unsigned char)model->pointer[model->bytes - 1], model->fill);
}

static void check(const struct model *model)
{
    nbla_memory *memory = model->memory;

    assert_int_equal(nbla_memory_bytes(memory), model->bytes);
    assert_int_equal(nbla_memory_requested_bytes(memory), model->requested);
    assert_ptr_equal(nbla_memory_pointer(memory), model->pointer);
    assert_int_equal(nbla_memory_disabled(memory), !model->pointer);
    assert_int_equal(nbla_memory_locked(memory), model->locked);
    assert_ptr_equal(nbla_memory_next(memory), memory_at(model->next));
    assert_ptr_equal(nbla_memory_prev(memory), memory_at(model->prev));
    assert_int_equal(nbla_memory_bytes_active(memory),
                     model->pointer && model->next < 0 && model->prev < 0 ? model->bytes : 0);
    if (model->pointer)
        check_bytes(model);
}

static void check_all(void)
{
    for (int i = 0; i < BLOCKS; i++)
        if (models[i].memory)
            check(&models[i]);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void fill(struct model *model)
{
    model->fill = (unsigned char)next_random(256);
    memset(model->pointer, model->fill, model->bytes);
}

static void make(void)
{
    size_t bytes = next_random(LARGEST);
    int i = free_place();

    if (i < 0)
        return;
    models[i] = (struct model){.next = -1, .prev = -1};
    models[i].memory = nbla_memory_new(NULL, bytes, "");
    models[i].bytes = models[i].requested = bytes ? bytes : 1;
    assert_non_null(models[i].memory);
}

static void alloc(int i)
{
    if (models[i].pointer) {
        assert_gives(nbla_memory_alloc(models[i].memory), NBLA_ERROR_VALUE);
        return;
    }
    assert_gives(nbla_memory_alloc(models[i].memory), 0);
    models[i].pointer = nbla_memory_pointer(models[i].memory);
    fill(&models[i]);
}

static void divide(int i)
{
    size_t second_start = next_random((unsigned)models[i].bytes + 2);
    struct model *first = &models[i], *second;
    int j = free_place();

    if (j < 0)
        return;
    second = &models[j];
    if (!second_start || second_start >= first->bytes) {
        assert_gives(nbla_memory_divide(first->memory, second_start, &second->memory), NBLA_ERROR_VALUE);
        return;
    }
    if (!first->pointer) {
        assert_gives(nbla_memory_divide(first->memory, second_start, &second->memory), NBLA_ERROR_MEMORY);
        return;
    }
    *second = (struct model){.next = first->next, .prev = i, .fill = first->fill};
    assert_gives(nbla_memory_divide(first->memory, second_start, &second->memory), 0);
    second->bytes = second->requested = first->bytes - second_start;
    second->pointer = first->pointer + second_start;
    if (first->next >= 0)
        models[first->next].prev = j;
    first->next = j;
    first->bytes = second_start;
}

/* Merged blocks keep their links, so what they lead to may be no neighbour in memory any more. */
static bool are_consecutive(const struct model *left, const struct model *right)
{
    return left->pointer && right->pointer && left->pointer + left->bytes == right->pointer;
}

static void take_over(int i, int j, bool is_next)
{
    struct model *memory = &models[i], *from = &models[j];

    memory->bytes += from->bytes;
    if (is_next) {
        memory->next = from->next;
        if (from->next >= 0)
            models[from->next].prev = i;
    } else {
        memory->pointer = from->pointer;
        memory->prev = from->prev;
        if (from->prev >= 0)
            models[from->prev].next = i;
    }
    from->pointer = NULL;
    fill(memory);
}

static void try_merge(int i, int j)
{
    struct model *memory = &models[i], *from = &models[j];
    bool is_next = memory->next == j;

    if (from->locked || (!is_next && memory->prev != j)) {
        assert_gives(nbla_memory_try_merge(memory->memory, from->memory), 0);
        return;
    }
    if (!(is_next ? are_consecutive(memory, from) : are_consecutive(from, memory))) {
        assert_gives(nbla_memory_try_merge(memory->memory, from->memory), NBLA_ERROR_RUNTIME);
        return;
    }
    assert_gives(nbla_memory_try_merge(memory->memory, from->memory), 1);
    take_over(i, j, is_next);
}

static void destroy(int i)
{
    struct model *model = &models[i];

    if (model->pointer && model->prev >= 0) {
        assert_gives(nbla_memory_destroy(model->memory), NBLA_ERROR_RUNTIME);
        return;
    }
    assert_gives(nbla_memory_destroy(model->memory), 0);
    model->memory = NULL;
    for (int j = 0; j < BLOCKS; j++) {
        if (models[j].next == i)
            models[j].next = -1;
        if (models[j].prev == i)
            models[j].prev = -1;
    }
}

static void step(void)
{
    int i = (int)next_random(BLOCKS), j = (int)next_random(BLOCKS);

    if (!models[i].memory) {
        make();
        return;
    }
    switch (next_random(10)) {
    case 0:
        nbla_memory_lock(models[i].memory);
        models[i].locked = true;
        break;
    case 1:
    case 2:
        nbla_memory_release(models[i].memory);
        models[i].locked = false;
        break;
    case 3:
        alloc(i);
        break;
    case 4:
    case 5:
        divide(i);
        break;
    case 6:
        if (models[j].memory)
            try_merge(i, j);
        break;
    case 7:
        if (models[i].next >= 0)
            try_merge(i, models[i].next);
        break;
    case 8:
        if (models[i].prev >= 0)
            try_merge(i, models[i].prev);
        break;
    default:
        destroy(i);
        break;
    }
}

static void random_operations(void **state)
{
    print_message("NBLA_SEED=%lu\n", seed);
    memset(models, 0, sizeof(models));
    for (int i = 0; i < STEPS; i++) {
        step();
        check_all();
    }
    for (int rest = BLOCKS; rest > 0;) {
        rest = 0;
        for (int i = 0; i < BLOCKS; i++) {
            if (models[i].memory)
                destroy(i);
            rest += models[i].memory != NULL;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_operations, nbla_nothing_left),
    };
    const char *text = getenv("NBLA_SEED");

    seed = text ? strtoul(text, NULL, 10) : (unsigned long)time(NULL);
    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
