/* SPDX-License-Identifier: Apache-2.0 */
/* nbla: a block of a memory that was divided, and a chunk that is bound to virtual memory. */
#include <memclient/nbla.h>

#include "tests/integration/handles/facade.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The second half; of the first one nothing is left. */
static void make_memory(struct memory *memory)
{
    nbla_memory *whole = nbla_memory_new(NULL, 2 * MEMORY_SIZE, ""), *second;

    CHECK(whole && !nbla_memory_alloc(whole));
    CHECK(!nbla_memory_divide(whole, MEMORY_SIZE, &second));
    CHECK(!nbla_memory_destroy(whole));
    memory->at = nbla_memory_pointer(second);
    memory->object = second;
}

static void get_memory_token(const struct memory *memory, struct handed *handed)
{
    uint64_t offset, length;

    CHECK(!nbla_memory_token(memory->object, &handed->token, &offset, &length));
    CHECK(offset == handed->offset && length == MEMORY_SIZE);
}

static void get_memory_fd(const struct memory *memory, struct handed *handed)
{
    uint64_t offset, length;

    CHECK(!nbla_memory_export(memory->object, &handed->fd, &offset, &length));
    CHECK(offset == handed->offset && length == MEMORY_SIZE);
}

static void destroy_memory(struct memory *memory)
{
    CHECK(!nbla_memory_destroy(memory->object));
}

static void note_opened(struct memory *memory, nbla_memory *opened)
{
    memory->at = nbla_memory_pointer(opened);
    memory->object = opened;
}

static void open_memory_token(const struct handed *handed, struct memory *memory)
{
    nbla_memory *opened;

    CHECK(!nbla_memory_open_token(NULL, &handed->token, handed->offset, MEMORY_SIZE, NULL, &opened));
    note_opened(memory, opened);
}

static void open_memory_fd(const struct handed *handed, struct memory *memory)
{
    nbla_memory *opened;

    CHECK(!nbla_memory_import_fd(NULL, handed->fd, handed->offset, MEMORY_SIZE, NULL, &opened));
    note_opened(memory, opened);
}

const struct facade nbla_facade = {
    .name = "nbla",
    .make = make_memory,
    .get_token = get_memory_token,
    .get_fd = get_memory_fd,
    .give_back = destroy_memory,
    .open_token = open_memory_token,
    .open_fd = open_memory_fd,
    .close_token = destroy_memory,
    .close_fd = destroy_memory,
};

/* ---- a chunk ----------------------------------------------------------------------------------------------------- */

/* Takes the chunk over. */
static void bind_chunk(struct memory *memory, nbla_physical_memory *chunk, size_t offset)
{
    nbla_memory *bound = nbla_memory_new_virtual(NULL, nbla_physical_memory_bytes(chunk), "", &chunk, 1);

    CHECK(bound && !nbla_memory_bind(bound));
    memory->at = (char *)nbla_memory_pointer(bound) + offset;
    memory->object = bound;
    memory->number = (uintptr_t)chunk;
}

static nbla_physical_memory *chunk_of(const struct memory *memory)
{
    return (void *)(uintptr_t)memory->number;
}

static void make_chunk(struct memory *memory)
{
    nbla_physical_memory *chunk = nbla_physical_memory_new(NULL, MEMORY_SIZE, "");

    CHECK(chunk && nbla_physical_memory_alloc(chunk) == MEMORY_SIZE);
    bind_chunk(memory, chunk, 0);
}

static void get_chunk_token(const struct memory *memory, struct handed *handed)
{
    uint64_t offset, length;

    CHECK(!nbla_physical_memory_token(chunk_of(memory), &handed->token, &offset, &length));
    CHECK(!offset && length == MEMORY_SIZE);
}

static void get_chunk_fd(const struct memory *memory, struct handed *handed)
{
    uint64_t offset, length;

    CHECK(!nbla_physical_memory_export(chunk_of(memory), &handed->fd, &offset, &length));
    CHECK(!offset && length == MEMORY_SIZE);
}

static void unbind_chunk(struct memory *memory)
{
    CHECK(!nbla_memory_unbind(memory->object));
    CHECK(!nbla_memory_destroy(memory->object));
    nbla_physical_memory_unref(chunk_of(memory));
}

/* All of the buffer, as parts need not begin where a page does. */
static void open_chunk_token(const struct handed *handed, struct memory *memory)
{
    nbla_physical_memory *chunk;

    CHECK(!nbla_physical_memory_open_token(NULL, &handed->token, 0, 0, NULL, &chunk));
    bind_chunk(memory, chunk, handed->offset);
}

static void open_chunk_fd(const struct handed *handed, struct memory *memory)
{
    nbla_physical_memory *chunk;

    CHECK(!nbla_physical_memory_import_fd(NULL, handed->fd, 0, 0, NULL, &chunk));
    bind_chunk(memory, chunk, handed->offset);
}

const struct facade nbla_physical_facade = {
    .name = "nbla physical",
    .make = make_chunk,
    .get_token = get_chunk_token,
    .get_fd = get_chunk_fd,
    .give_back = unbind_chunk,
    .open_token = open_chunk_token,
    .open_fd = open_chunk_fd,
    .close_token = unbind_chunk,
    .close_fd = unbind_chunk,
};
