/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random sequences of the operations of virtual memory over chunks that several memories have at once, with a model
 * beside it: which chunks are bound where, and what was last written into each. After each step every memory has its
 * pointer, bytes and list, and shows what its chunks have.
 *
 * A failure prints the seed; NBLA_SEED=N runs it again.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/align.h"
#include "tests/unit/nbla/nbla.h"

enum { CHUNKS = 12, MEMORIES = 8, MOST = 24, STEPS = 1500 };

/* Chunks by number, in order. */
struct numbers {
    int n;
    int at[MOST];
};

static struct chunk {
    nbla_physical_memory *p;
    size_t bytes;
    char written;
} chunks[CHUNKS];

static struct model {
    nbla_memory *memory; /* NULL: none */
    size_t bytes;
    char *pointer;
    struct numbers list;
    struct numbers bound;
} models[MEMORIES];

static unsigned long seed;

static unsigned next_random(unsigned below)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(seed >> 33) % below;
}

static size_t bytes_of(const struct numbers *numbers)
{
    size_t bytes = 0;

    for (int i = 0; i < numbers->n; i++)
        bytes += chunks[numbers->at[i]].bytes;
    return bytes;
}

/* Up to four chunks. */
static struct numbers some_chunks(nbla_physical_memory *p[MOST])
{
    struct numbers numbers = {.n = (int)next_random(5)};

    for (int i = 0; i < numbers.n; i++) {
        numbers.at[i] = (int)next_random(CHUNKS);
        p[i] = chunks[numbers.at[i]].p;
    }
    return numbers;
}

static bool has_room(const struct numbers *numbers, const struct numbers *more)
{
    return numbers->n + more->n <= MOST;
}

static void append(struct numbers *numbers, const struct numbers *more)
{
    for (int i = 0; i < more->n; i++)
        numbers->at[numbers->n++] = more->at[i];
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static void check(const struct model *model)
{
    const char *at = model->pointer;

    assert_ptr_equal(nbla_memory_pointer(model->memory), model->pointer);
    assert_int_equal(nbla_memory_bytes(model->memory), model->bytes);
    assert_int_equal(nbla_memory_phys_count(model->memory), model->list.n);
    for (int i = 0; i < model->list.n; i++)
        assert_ptr_equal(nbla_memory_phys_at(model->memory, (size_t)i), chunks[model->list.at[i]].p);
    for (int i = 0; at && i < model->bound.n; i++) {
        const struct chunk *chunk = &chunks[model->bound.at[i]];

        assert_int_equal(at[0], chunk->written);
        assert_int_equal(at[chunk->bytes - 1], chunk->written);
        at += chunk->bytes;
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void make(struct model *model)
{
    nbla_physical_memory *p[MOST];

    *model = (struct model){.list = some_chunks(p)};
    model->bytes = bytes_of(&model->list);
    model->memory = nbla_memory_new_virtual(NULL, model->bytes, "", p, (size_t)model->list.n);
    assert_non_null(model->memory);
    if (!model->bytes)
        model->bytes = 1;
}

static void bind(struct model *model)
{
    if (model->pointer || bytes_of(&model->list) < model->bytes) {
        assert_gives(nbla_memory_bind(model->memory), NBLA_ERROR_MEMORY);
        return;
    }
    assert_gives(nbla_memory_bind(model->memory), 0);
    model->pointer = nbla_memory_pointer(model->memory);
    assert_non_null(model->pointer);
    model->bound = model->list;
}

static void unbind(struct model *model)
{
    assert_gives(nbla_memory_unbind(model->memory), 0);
    model->pointer = NULL;
    model->bound.n = 0;
}

static void grow(struct model *model)
{
    nbla_physical_memory *p[MOST];
    struct numbers more = some_chunks(p);

    if (!has_room(&model->bound, &more) || !has_room(&model->list, &more))
        return;
    if (!model->pointer) {
        assert_gives(nbla_memory_grow(model->memory, p, (size_t)more.n), NBLA_ERROR_MEMORY);
        return;
    }
    /* the room is far above what these have */
    assert_gives(nbla_memory_grow(model->memory, p, (size_t)more.n), 1);
    append(&model->bound, &more);
    model->bytes += bytes_of(&more);
    if (next_random(4)) {
        assert_gives(nbla_memory_append_phys(model->memory, p, (size_t)more.n), 0);
        append(&model->list, &more);
    }
}

static void write_somewhere(const struct model *model)
{
    char *at = model->pointer;

    for (int i = 0; at && i < model->bound.n; i++) {
        struct chunk *chunk = &chunks[model->bound.at[i]];

        chunk->written = (char)next_random(128);
        memset(at, chunk->written, chunk->bytes);
        at += chunk->bytes;
    }
}

static void step(struct model *model)
{
    if (!model->memory) {
        make(model);
        return;
    }
    switch (next_random(8)) {
    case 0:
    case 1:
        bind(model);
        break;
    case 2:
        unbind(model);
        break;
    case 3:
    case 4:
        grow(model);
        break;
    case 5:
        nbla_memory_clear_phys(model->memory);
        model->list.n = 0;
        break;
    case 6:
        assert_gives(nbla_memory_destroy(model->memory), 0);
        model->memory = NULL;
        break;
    default:
        break;
    }
    if (model->memory)
        write_somewhere(model);
}

static void random_operations(void **state)
{
    print_message("NBLA_SEED=%lu\n", seed);
    for (int i = 0; i < CHUNKS; i++) {
        chunks[i].bytes = (1 + next_random(4)) * page_size();
        chunks[i].p = nbla_chunk(chunks[i].bytes);
    }
    for (int i = 0; i < STEPS; i++) {
        step(&models[next_random(MEMORIES)]);
        for (int j = 0; j < MEMORIES; j++)
            if (models[j].memory)
                check(&models[j]);
    }
    assert_true(WAIT_UNTIL(observer_buffers() == CHUNKS));
    for (int i = 0; i < CHUNKS; i++)
        nbla_physical_memory_unref(chunks[i].p);
    for (int i = 0; i < MEMORIES; i++)
        assert_gives(nbla_memory_destroy(models[i].memory), 0);
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
