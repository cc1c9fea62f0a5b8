/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/truth.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/support/memory_files.h"

struct look {
    struct truth *truth;
    struct memory_files files;
    uint64_t in_buffers; /* bytes that the kernel has allocated for them */
    uint64_t n_buffers, n_stock;
    uint64_t used; /* of pools */
    bool moving;   /* something is being made or freed */
};

/* The first one stays. */
static void __attribute__((format(printf, 2, 3))) find_fault(struct look *look, const char *format, ...)
{
    va_list arguments;

    if (look->truth->fault[0])
        return;
    va_start(arguments, format);
    vsnprintf(look->truth->fault, sizeof(look->truth->fault), format, arguments);
    va_end(arguments);
}

static int look_at_buffer(const struct memclient_buffer_info *info, void *data)
{
    struct look *look = data;
    const struct memory_file *file = memory_files_find(&look->files, info->inode);

    if (info->flags & MEMCLIENT_BUFFER_FOREIGN)
        return 0;
    if (info->state == MEMCLIENT_BUFFER_STATE_COMMITTING || info->state == MEMCLIENT_BUFFER_STATE_ENDING)
        look->moving = true;
    look->n_buffers++;
    look->truth->listed += info->bytes;
    if (!file) {
        find_fault(look, "buffer %" PRIu64 " has no memory file", info->id);
        return 0;
    }
    look->in_buffers += file->bytes;
    if (file->bytes > info->bytes)
        find_fault(look, "buffer %" PRIu64 " is listed with %" PRIu64 " bytes, and has %" PRIu64, info->id, info->bytes,
                   file->bytes);
    return 0;
}

static int look_at_pool(const struct memclient_pool_info *pool, void *data)
{
    struct look *look = data;

    look->used += pool->used;
    look->truth->stock += pool->stock;
    look->n_stock += pool->stock_buffers;
    if (pool->stock_ready != pool->stock)
        look->moving = true;
    return 0;
}

static void compare(struct look *look)
{
    struct truth *truth = look->truth;
    uint64_t others = truth->allocated - look->in_buffers;

    if (look->moving)
        find_fault(look, "something is being made or freed");
    if (look->used != truth->listed)
        find_fault(look, "pools use %" PRIu64 " bytes, and buffers have %" PRIu64, look->used, truth->listed);
    if (others != truth->stock || look->files.n != look->n_buffers + look->n_stock)
        find_fault(look,
                   "%zu files are open for %" PRIu64 " buffers and %" PRIu64 " in stock, of %" PRIu64
                   " bytes and %" PRIu64,
                   look->files.n, look->n_buffers, look->n_stock, truth->stock, others);
}

bool truth_look(struct memclient_context *ctx, pid_t keeper, struct truth *truth)
{
    struct look look = {.truth = truth};
    pid_t broker = youngest_child_of(keeper);
    bool may_look = memory_files_add(&look.files, keeper) && (!broker || memory_files_add(&look.files, broker));

    *truth = (struct truth){.allocated = memory_files_bytes(&look.files)};
    if (memclient_list_buffers(ctx, look_at_buffer, &look) || memclient_list_pools(ctx, look_at_pool, &look))
        find_fault(&look, "a listing failed: %s", memclient_error());
    compare(&look);
    memory_files_deinit(&look.files);
    return may_look;
}

bool truth_comes(struct memclient_context *ctx, pid_t keeper, uint64_t listed, uint64_t to_come, struct truth *truth)
{
    return WAIT_UNTIL(truth_look(ctx, keeper, truth) && !truth->fault[0] && truth->listed == listed &&
                      truth->listed + truth->stock - truth->allocated == to_come);
}
