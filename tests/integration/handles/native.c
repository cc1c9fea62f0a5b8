/* SPDX-License-Identifier: Apache-2.0 */
/* The native API. */
#include "tests/integration/handles/facade.h"

static void map_at_home(struct memory *memory, uint64_t offset)
{
    void *base;

    CHECK(!memclient_map(memory->object, NULL, &base));
    memory->at = (char *)base + offset;
    memory->number = (uintptr_t)base;
}

static void make(struct memory *memory)
{
    struct memclient_buffer *buf;

    CHECK(!memclient_alloc(NULL, MEMORY_SIZE, NULL, &buf));
    memory->object = buf;
    map_at_home(memory, 0);
}

static void open_token(const struct handed *handed, struct memory *memory)
{
    struct memclient_buffer *buf;

    CHECK(!memclient_open_token(NULL, &handed->token, 0, &buf));
    memory->object = buf;
    map_at_home(memory, handed->offset);
}

static void open_fd(const struct handed *handed, struct memory *memory)
{
    struct memclient_buffer *buf;

    CHECK(!memclient_import_fd(NULL, handed->fd, &buf));
    memory->object = buf;
    map_at_home(memory, handed->offset);
}

static void give_back(struct memory *memory)
{
    CHECK(!memclient_unmap(NULL, (void *)(uintptr_t)memory->number, 0));
    memclient_buffer_unref(memory->object);
}

void token_of_fd(const struct handed *handed, struct memclient_token *token, struct memclient_buffer **buf)
{
    CHECK(!memclient_import_fd(NULL, handed->fd, buf));
    CHECK(!memclient_share(*buf, NULL, token));
}

const struct facade native_facade = {
    .name = "native",
    .make = make,
    .give_back = give_back,
    .open_token = open_token,
    .open_fd = open_fd,
    .close_token = give_back,
    .close_fd = give_back,
};
