/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing: blocks and chunks by descriptor and token, in this process and another, at the same address and others. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/align.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/nbla/nbla.h"

#define BYTES ((size_t)64 << 10)

/* ---- in this process --------------------------------------------------------------------------------------------- */

/* nbla_memory_export: fd, offset and length of a block; nbla_memory_import_fd opens just that, in the same process at
 * the same address. What was opened can be divided, shared and merged as any other; nbla_memory_id is the same. */
static void export_and_import(void **state)
{
    nbla_memory *memory = nbla_allocated(BYTES), *second, *opened, *third;
    uint64_t offset, length;
    char *pointer;
    int fd;

    assert_gives(nbla_memory_divide(memory, 5000, &second), 0);
    assert_gives(nbla_memory_export(second, &fd, &offset, &length), 0);
    assert_int_equal(offset, 5000);
    assert_int_equal(length, BYTES - 5000);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_gives(nbla_memory_import_fd(NULL, fd, offset, 10000, NULL, &opened), 0);
    close(fd);
    assert_int_equal(nbla_memory_bytes(opened), 10000);
    assert_int_equal(nbla_memory_bytes_active(opened), 10000);
    assert_int_equal(nbla_memory_get_type(opened), NBLA_TYPE_NORMAL);
    assert_int_not_equal(nbla_memory_id(memory), 0);
    assert_int_equal(nbla_memory_id(opened), nbla_memory_id(memory));
    assert_gives(nbla_memory_alloc(opened), NBLA_ERROR_VALUE);
    pointer = nbla_memory_pointer(opened);
    assert_ptr_equal(pointer, nbla_memory_pointer(second));
    pointer[9999] = 7;
    assert_int_equal(((char *)nbla_memory_pointer(second))[9999], 7);
    assert_gives(nbla_memory_divide(opened, 100, &third), 0);
    assert_gives(nbla_memory_export(third, &fd, &offset, &length), 0);
    close(fd);
    assert_int_equal(offset, 5100);
    assert_int_equal(length, 9900);
    /* it is there as long as anybody has it */
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(second), 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_int_equal(pointer[9999], 7);
    assert_gives(nbla_memory_try_merge(third, opened), 1);
    assert_gives(nbla_memory_destroy(third), 0);
    observer_expect_nothing();
    /* merged it may get memory of its own, from its device, which is the pool */
    assert_gives(nbla_memory_alloc(opened), 0);
    assert_string_not_equal(nbla_memory_device_id(opened), "");
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_gives(nbla_memory_destroy(opened), 0);
}

/* nbla_memory_token, nbla_memory_open_token: offset 0 and length 0 are all that the maker asked for. */
static void token_of_all(void **state)
{
    nbla_memory *memory = nbla_allocated(5000), *opened;
    struct memclient_token token;
    uint64_t offset, length;

    assert_gives(nbla_memory_token(memory, &token, &offset, &length), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(length, 5000);
    assert_gives(nbla_memory_open_token(NULL, &token, 0, 0, NULL, &opened), 0);
    assert_int_equal(nbla_memory_bytes(opened), 5000);
    assert_gives(nbla_memory_destroy(opened), 0);
    assert_gives(nbla_memory_open_token(NULL, &token, 4999, 0, NULL, &opened), 0);
    assert_int_equal(nbla_memory_bytes(opened), 1);
    assert_gives(nbla_memory_destroy(opened), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* nbla_memory_open_token and nbla_memory_import_fd: NBLA_ERROR_VALUE of what is none, or not within it. */
static void open_what_is_none(void **state)
{
    struct memclient_token token = {{1}}, stale;
    nbla_memory *memory = nbla_allocated(BYTES), *opened = NULL;
    uint64_t offset, length;
    int fd = memfd_create("none", MFD_CLOEXEC);

    assert_gives(nbla_memory_open_token(NULL, &token, 0, 0, NULL, &opened), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_open_token(NULL, NULL, 0, 0, NULL, &opened), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_import_fd(NULL, -1, 0, 0, NULL, &opened), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_import_fd(NULL, fd, 0, 0, NULL, &opened), NBLA_ERROR_VALUE);
    close(fd);
    assert_gives(nbla_memory_token(memory, &token, &offset, &length), 0);
    assert_gives(nbla_memory_open_token(NULL, &token, 0, BYTES + 1, NULL, &opened), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_open_token(NULL, &token, BYTES, 0, NULL, &opened), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_open_token(NULL, &token, UINT64_MAX, 1, NULL, &opened), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_open_token(NULL, &token, 1, UINT64_MAX, NULL, &opened), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_open_token(NULL, &token, 0, 0, NULL, NULL), NBLA_ERROR_VALUE);
    stale = token;
    assert_gives(nbla_memory_destroy(memory), 0);
    observer_expect_nothing();
    assert_gives(nbla_memory_open_token(NULL, &stale, 0, 0, NULL, &opened), NBLA_ERROR_VALUE);
    assert_null(opened);
}

/* nbla_memory_export and nbla_memory_token of what has no memory: NBLA_ERROR_MEMORY; of several chunks:
 * NBLA_ERROR_NOT_IMPLEMENTED. nbla_memory_id is 0. */
static void share_what_is_none(void **state)
{
    nbla_memory *memory = nbla_memory_new(NULL, 100, ""), *bound;
    nbla_physical_memory *p[2] = {nbla_chunk(BYTES), nbla_chunk(BYTES)};
    struct memclient_token token;
    uint64_t offset, length;
    int fd;

    assert_gives(nbla_memory_export(memory, &fd, &offset, &length), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_token(memory, &token, &offset, &length), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_export(memory, NULL, &offset, &length), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_token(memory, &token, &offset, NULL), NBLA_ERROR_VALUE);
    assert_int_equal(nbla_memory_id(memory), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
    bound = nbla_bound(2, p);
    assert_gives(nbla_memory_export(bound, &fd, &offset, &length), NBLA_ERROR_NOT_IMPLEMENTED);
    assert_gives(nbla_memory_token(bound, &token, &offset, &length), NBLA_ERROR_NOT_IMPLEMENTED);
    assert_gives(nbla_memory_destroy(bound), 0);
    bound = nbla_bound(1, p);
    assert_gives(nbla_memory_token(bound, &token, &offset, &length), 0);
    assert_int_equal(nbla_memory_id(bound), nbla_physical_memory_id(p[0]));
    assert_gives(nbla_memory_destroy(bound), 0);
    nbla_physical_memory_unref(p[0]);
    nbla_physical_memory_unref(p[1]);
}

/* ---- wanted addresses -------------------------------------------------------------------------------------------- */

/* A range that is free, and as far as one can tell stays so. */
static char *free_range(size_t length)
{
    char *at = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_mapped(at);
    munmap(at, length);
    return at;
}

/* nbla_memory_open_token with `wanted`: there, or NBLA_ERROR_MEMORY; NBLA_ERROR_VALUE where its page does not fit. */
static void wanted(void **state)
{
    nbla_memory *memory = nbla_allocated(BYTES), *opened = NULL;
    char *pointer = nbla_memory_pointer(memory), *there = free_range(1 << 20);
    struct memclient_reservation *reservation;
    struct memclient_token token;
    uint64_t offset, length;

    assert_gives(nbla_memory_token(memory, &token, &offset, &length), 0);
    assert_gives(nbla_memory_open_token(NULL, &token, 5000, 100, there + 4000, &opened), NBLA_ERROR_VALUE);
    assert_gives(nbla_memory_open_token(NULL, &token, 0, 0, pointer, &opened), 0);
    assert_ptr_equal(nbla_memory_pointer(opened), pointer);
    assert_gives(nbla_memory_destroy(opened), 0);
    assert_gives(nbla_memory_open_token(NULL, &token, 0, 0, pointer + page_size(), &opened), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_open_token(NULL, &token, 5000, 100, there + 5000 % page_size(), &opened), 0);
    assert_ptr_equal(nbla_memory_pointer(opened), there + 5000 % page_size());
    *(char *)nbla_memory_pointer(opened) = 9;
    assert_int_equal(pointer[5000], 9);
    assert_gives(nbla_memory_destroy(opened), 0);
    /* in the arena, where nothing is */
    assert_int_equal(memclient_reserve(NULL, 1 << 20, NULL, &reservation), 0);
    there = memclient_reservation_address(reservation);
    assert_gives(nbla_memory_open_token(NULL, &token, 0, 0, there, &opened), NBLA_ERROR_MEMORY);
    assert_int_equal(memclient_reservation_release(reservation), 0);
    assert_gives(nbla_memory_open_token(NULL, &token, 0, 0, there, &opened), 0);
    assert_ptr_equal(nbla_memory_pointer(opened), there);
    assert_gives(nbla_memory_destroy(opened), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* nbla_physical_memory_open_token with `wanted`: nbla_memory_bind puts it there, or fails with NBLA_ERROR_MEMORY;
 * nbla_memory_grow puts it there, or not at all. */
static void wanted_chunks(void **state)
{
    nbla_physical_memory *p = nbla_chunk(BYTES), *opened[2];
    char *there = free_range(1 << 30);
    struct memclient_token token;
    nbla_memory *memory, *again;
    uint64_t offset, length;

    assert_gives(nbla_physical_memory_token(p, &token, &offset, &length), 0);
    assert_gives(nbla_physical_memory_open_token(NULL, &token, 0, 0, there + 1, &opened[0]), NBLA_ERROR_VALUE);
    assert_gives(nbla_physical_memory_open_token(NULL, &token, 1, 0, NULL, &opened[0]), NBLA_ERROR_VALUE);
    assert_gives(nbla_physical_memory_open_token(NULL, &token, 0, BYTES / 2, NULL, &opened[0]), 0);
    assert_gives(nbla_physical_memory_open_token(NULL, &token, BYTES / 2, 0, there + BYTES / 2, &opened[1]), 0);
    assert_int_equal(nbla_physical_memory_bytes(opened[0]), BYTES / 2);
    assert_int_equal(nbla_physical_memory_alloc(opened[1]), BYTES / 2);
    memory = nbla_bound(2, opened);
    assert_ptr_equal(nbla_memory_pointer(memory), there);
    again = nbla_memory_new_virtual(NULL, 1, "", opened, 2);
    assert_gives(nbla_memory_bind(again), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_grow(memory, &p, 1), 1);
    there[BYTES / 2] = 5;
    assert_int_equal(there[BYTES + BYTES / 2], 5);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_bind(again), 0);
    assert_ptr_equal(nbla_memory_pointer(again), there);
    assert_gives(nbla_memory_destroy(again), 0);
    memory = nbla_bound(1, opened);
    assert_gives(nbla_memory_grow(memory, opened + 1, 1), 0);
    assert_int_equal(nbla_memory_bytes(memory), BYTES / 2);
    assert_gives(nbla_memory_destroy(memory), 0);
    nbla_physical_memory_unref(opened[0]);
    assert_gives(nbla_physical_memory_open_token(NULL, &token, 0, BYTES / 2, there, &opened[0]), 0);
    memory = nbla_bound(1, opened);
    assert_gives(nbla_memory_grow(memory, opened + 1, 1), 1);
    assert_ptr_equal(nbla_memory_pointer(memory), there);
    assert_gives(nbla_memory_destroy(memory), 0);
    /* they cannot both be where they are wanted */
    memory = nbla_memory_new_virtual(NULL, 1, "", (nbla_physical_memory *[]){opened[1], opened[0], opened[1]}, 3);
    assert_gives(nbla_memory_bind(memory), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_destroy(memory), 0);
    nbla_physical_memory_unref(p);
    nbla_physical_memory_unref(opened[0]);
    nbla_physical_memory_unref(opened[1]);
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

#define CHUNKS 3

/* What is told of it. */
struct note {
    struct memclient_token token[CHUNKS];
    uint64_t offset[CHUNKS];
    uint64_t length[CHUNKS];
    void *address;
};

static void send_note(struct child *child, const struct note *note)
{
    assert_int_equal(write(child->channel, note, sizeof(*note)), sizeof(*note));
}

static void receive_note(int channel, struct note *note)
{
    CHECK(wait_readable(channel));
    CHECK(read(channel, note, sizeof(*note)) == sizeof(*note));
}

/* It is where its maker has it. A sanitizer's shadow may lie anywhere. */
static void check_address(void *pointer, void *address)
{
    CHECK(pointer == address || TEST_TSAN);
}

static void consume_token(int channel, void *context)
{
    nbla_memory *memory;
    struct note note = {0};
    char *pointer;

    (void)context;
    receive_note(channel, &note);
    CHECK(nbla_memory_open_token(NULL, note.token, *note.offset, *note.length, NULL, &memory) == 0);
    pointer = nbla_memory_pointer(memory);
    check_address(pointer, note.address);
    CHECK(*pointer == 'a');
    tell(channel);
    hear(channel);
    CHECK(*pointer == 'b');
    *pointer = 'c';
    CHECK(nbla_memory_destroy(memory) == 0);
}

/* A block by token, at the same address; it outlives its maker's. */
static void another_process_by_token(void **state)
{
    nbla_memory *memory, *second;
    struct child child;
    struct note note = {0};
    char *pointer;

    child_start(&child, consume_token, NULL);
    memory = nbla_allocated(BYTES);
    assert_gives(nbla_memory_divide(memory, 12345, &second), 0);
    note.address = pointer = nbla_memory_pointer(second);
    assert_gives(nbla_memory_token(second, note.token, note.offset, note.length), 0);
    *pointer = 'a';
    send_note(&child, &note);
    child_hear(&child);
    *pointer = 'b';
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(second), 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    child_tell(&child);
    child_finish(&child);
}

static void consume_fd(int channel, void *context)
{
    nbla_memory *memory;
    struct note note = {0};
    char *pointer;
    int fd;

    (void)context;
    receive_note(channel, &note);
    fd = fd_receive_one(channel);
    CHECK(fd >= 0);
    CHECK(nbla_memory_import_fd(NULL, fd, *note.offset, *note.length, NULL, &memory) == 0);
    close(fd);
    pointer = nbla_memory_pointer(memory);
    check_address(pointer, note.address);
    CHECK(*pointer == 'a');
    *pointer = 'b';
    CHECK(nbla_memory_destroy(memory) == 0);
}

/* Likewise by descriptor. */
static void another_process_by_fd(void **state)
{
    nbla_memory *memory;
    struct child child;
    struct note note = {0};
    int fd;

    child_start(&child, consume_fd, NULL);
    memory = nbla_allocated(BYTES);
    note.address = nbla_memory_pointer(memory);
    assert_gives(nbla_memory_export(memory, &fd, note.offset, note.length), 0);
    *(char *)note.address = 'a';
    send_note(&child, &note);
    fd_send_one(child.channel, fd);
    close(fd);
    child_finish(&child);
    assert_int_equal(*(char *)note.address, 'b');
    assert_gives(nbla_memory_destroy(memory), 0);
}

/* Opens the chunks, binds all but the last, and grows by that. */
static void consume_chunks(int channel, void *context)
{
    nbla_physical_memory *p[CHUNKS];
    nbla_memory *memory;
    struct note note = {0};
    char *pointer;

    (void)context;
    receive_note(channel, &note);
    for (int i = 0; i < CHUNKS; i++)
        CHECK(nbla_physical_memory_open_token(NULL, &note.token[i], note.offset[i], note.length[i], NULL, &p[i]) == 0);
    memory = nbla_memory_new_virtual(NULL, BYTES * (CHUNKS - 1), "", p, CHUNKS - 1);
    CHECK(memory && nbla_memory_bind(memory) == 0);
    pointer = nbla_memory_pointer(memory);
    check_address(pointer, note.address);
    CHECK(nbla_memory_grow(memory, &p[CHUNKS - 1], 1) == 1);
    for (size_t i = 0; i < CHUNKS; i++)
        CHECK(pointer[i * BYTES] == 'a' + (char)i);
    pointer[2 * BYTES] = 'z';
    if (!TEST_TSAN)
        CHECK(nbla_memory_grow(memory, p, 1) == 0);
    CHECK(nbla_memory_destroy(memory) == 0);
    for (int i = 0; i < CHUNKS; i++)
        nbla_physical_memory_unref(p[i]);
}

/* nbla_physical_memory_token: chunks that are bound here, and were elsewhere before, lie there as they do here, the one
 * that was grown by and the one that was shared before it had a place too. */
static void chunks_in_another_process(void **state)
{
    nbla_physical_memory *p[CHUNKS];
    nbla_memory *memory;
    struct child child;
    struct note note = {0};
    char *pointer;

    child_start(&child, consume_chunks, NULL);
    for (int i = 0; i < CHUNKS; i++)
        p[i] = nbla_chunk(BYTES);
    memory = nbla_bound(1, p);
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_physical_memory_token(p[1], &note.token[1], &note.offset[1], &note.length[1]), 0);
    memory = nbla_bound(2, p);
    assert_gives(nbla_memory_grow(memory, p + 2, 1), 1);
    note.address = pointer = nbla_memory_pointer(memory);
    for (size_t i = 0; i < CHUNKS; i++) {
        pointer[i * BYTES] = 'a' + (char)i;
        assert_gives(nbla_physical_memory_token(p[i], &note.token[i], &note.offset[i], &note.length[i]), 0);
    }
    send_note(&child, &note);
    child_finish(&child);
    assert_int_equal(pointer[2 * BYTES], 'z');
    assert_gives(nbla_memory_destroy(memory), 0);
    for (int i = 0; i < CHUNKS; i++)
        nbla_physical_memory_unref(p[i]);
}

/* nbla_physical_memory_export, nbla_physical_memory_import_fd: a chunk gets its memory by it, and is the same there. */
static void chunk_by_fd(void **state)
{
    nbla_physical_memory *p = nbla_physical_memory_new(NULL, BYTES, ""), *opened;
    nbla_memory *memory, *other;
    uint64_t offset, length;
    int fd;

    assert_gives(nbla_physical_memory_export(p, &fd, &offset, &length), 0);
    assert_true(nbla_physical_memory_allocated(p));
    assert_int_equal(offset, 0);
    assert_int_equal(length, BYTES);
    assert_gives(nbla_physical_memory_import_fd(NULL, fd, offset, length, NULL, &opened), 0);
    assert_int_equal(nbla_physical_memory_id(opened), nbla_physical_memory_id(p));
    memory = nbla_bound(1, &p);
    other = nbla_bound(1, &opened);
    *(char *)nbla_memory_pointer(memory) = 'x';
    assert_int_equal(*(char *)nbla_memory_pointer(other), 'x');
    assert_gives(nbla_memory_destroy(memory), 0);
    assert_gives(nbla_memory_destroy(other), 0);
    nbla_physical_memory_unref(p);
    nbla_physical_memory_unref(opened);
    close(fd);
    assert_gives(nbla_physical_memory_export(NULL, &fd, &offset, &length), NBLA_ERROR_VALUE);
    assert_gives(nbla_physical_memory_import_fd(NULL, -1, 0, 0, NULL, &opened), NBLA_ERROR_VALUE);
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* All of a context of its own, ctx, and with a device_id: nbla_memory_new_virtual, nbla_physical_memory_new; and opened
 * in it, by nbla_memory_import_fd and nbla_memory_open_token, nbla_physical_memory_import_fd and
 * nbla_physical_memory_open_token. */
static void own_context(void **state)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    nbla_physical_memory *own, *p[3];
    struct memclient_token token;
    uint64_t offset, length;
    nbla_memory *memory[3];
    struct memclient_context *ctx;
    int fd;

    options.socket = observed.socket;
    assert_int_equal(memclient_context_open(&options, &ctx), 0);
    own = nbla_physical_memory_new(ctx, BYTES, "numa:1");
    memory[0] = nbla_memory_new_virtual(ctx, BYTES, "numa:1", &own, 1);
    nbla_physical_memory_unref(own);
    assert_string_equal(nbla_memory_device_id(memory[0]), "numa:1");
    assert_gives(nbla_memory_bind(memory[0]), 0);
    assert_gives(nbla_memory_export(memory[0], &fd, &offset, &length), 0);
    assert_gives(nbla_memory_token(memory[0], &token, &offset, &length), 0);
    assert_gives(nbla_memory_import_fd(ctx, fd, offset, length, NULL, &memory[1]), 0);
    assert_gives(nbla_memory_open_token(ctx, &token, offset, length, NULL, &memory[2]), 0);
    assert_gives(nbla_physical_memory_import_fd(ctx, fd, offset, length, NULL, &p[1]), 0);
    assert_gives(nbla_physical_memory_open_token(ctx, &token, offset, length, NULL, &p[2]), 0);
    /* chunks of other contexts go behind each other as well */
    assert_gives(nbla_physical_memory_import_fd(NULL, fd, offset, length, NULL, &p[0]), 0);
    for (int i = 0; i < 3; i++) {
        *(char *)nbla_memory_pointer(memory[0]) = (char)i;
        assert_int_equal(*(char *)nbla_memory_pointer(memory[i]), i);
        assert_gives(nbla_memory_grow(memory[0], &p[i], 1), 1);
        assert_int_equal(((char *)nbla_memory_pointer(memory[0]))[(size_t)(i + 1) * BYTES], i);
    }
    for (int i = 0; i < 3; i++) {
        assert_gives(nbla_memory_destroy(memory[i]), 0);
        nbla_physical_memory_unref(p[i]);
    }
    close(fd);
    memclient_context_close(ctx);
}

/* `wanted` of nbla_memory_import_fd, which is NBLA_ERROR_MEMORY where something else is, and of
 * nbla_physical_memory_import_fd. */
static void wanted_by_fd(void **state)
{
    nbla_memory *memory = nbla_allocated(BYTES), *opened, *bound;
    char *pointer = nbla_memory_pointer(memory), *there = free_range(1 << 30);
    nbla_physical_memory *p;
    uint64_t offset, length;
    int fd;

    assert_gives(nbla_memory_export(memory, &fd, &offset, &length), 0);
    assert_gives(nbla_memory_import_fd(NULL, fd, 0, 0, pointer + page_size(), &opened), NBLA_ERROR_MEMORY);
    assert_gives(nbla_memory_import_fd(NULL, fd, 0, 0, there, &opened), 0);
    assert_ptr_equal(nbla_memory_pointer(opened), there);
    assert_gives(nbla_memory_destroy(opened), 0);
    assert_gives(nbla_physical_memory_import_fd(NULL, fd, 0, 0, there, &p), 0);
    bound = nbla_bound(1, &p);
    assert_ptr_equal(nbla_memory_pointer(bound), there);
    assert_gives(nbla_memory_destroy(bound), 0);
    assert_gives(nbla_memory_destroy(memory), 0);
    nbla_physical_memory_unref(p);
    close(fd);
}

#define TEST(function) cmocka_unit_test_teardown(function, nbla_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(export_and_import),
        TEST(token_of_all),
        TEST(open_what_is_none),
        TEST(share_what_is_none),
        TEST(wanted),
        TEST(wanted_chunks),
        TEST(another_process_by_token),
        TEST(another_process_by_fd),
        TEST(chunks_in_another_process),
        TEST(chunk_by_fd),
        TEST(own_context),
        TEST(wanted_by_fd),
    };

    return test_run(tests, nbla_group_setup, nbla_group_teardown);
}
