/* SPDX-License-Identifier: Apache-2.0 */
/* See geometry.h. */
#include "heap/geometry.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "api/check.h"
#include "base/checked.h"

#define SLAB_SIZE     (UINT64_C(32) << 20)
#define SLAB_SIZE_MAX (UINT64_C(1) << 45)

static int geometry_check_class(const struct heap_class *class)
{
    uint64_t size;

    if (!class->block_size || class->block_size % 64 || !class->n_blocks || class->n_blocks > HEAP_SLAB_MAX ||
        !checked_mul_u64(class->block_size, class->n_blocks, &size) || size > SLAB_SIZE_MAX)
        return fail_with(EINVAL, "%llu blocks of %llu bytes: a slab has 1 to %d blocks, and 32 TiB at most",
                         ULL(class->n_blocks), ULL(class->block_size), HEAP_SLAB_MAX);
    return 0;
}

int geometry_check_classes(const struct heap_geometry *geometry)
{
    int r = 0;

    if (!geometry->n_classes || geometry->n_classes > HEAP_CLASSES)
        return fail_with(EINVAL, "block_sizes: a heap has blocks of 1 to %d sizes", HEAP_CLASSES);
    for (unsigned i = 0; !r && i < geometry->n_classes; i++)
        r = geometry_check_class(&geometry->classes[i]);
    return r;
}

int geometry_check(const struct heap_geometry *geometry)
{
    int r = geometry_check_classes(geometry);

    if (!r && (!geometry->slabs_max || geometry->slabs_max > HEAP_SLABS))
        r = fail_with(EINVAL, "slabs_max: a heap has 1 to %d slabs", HEAP_SLABS);
    if (!r && geometry->flags & ~(unsigned)MEMCLIENT_HEAP_KEEP_GIVEN)
        r = fail_with(EINVAL, "flags: 0x%x is not known", geometry->flags);
    if (!r && (geometry->n_nodes > 64 || geometry->memory[sizeof(geometry->memory) - 1]))
        r = fail_with(EINVAL, "a heap's memory has 64 nodes at most");
    return r;
}

/* The blocks that fit into SLAB_SIZE with a word and a hint for each, so that no page, which may be a huge one, is
 * begun for a few bytes more. */
static uint64_t geometry_fitting(uint64_t block_size)
{
    uint64_t besides = sizeof(struct slab_head) + sizeof(uint64_t);

    return (SLAB_SIZE - besides) * 8 / ((block_size + sizeof(uint64_t)) * 8 + 1);
}

static void geometry_set_blocks(struct heap_class *class, uint64_t slab_size)
{
    uint64_t least = slab_size ? 1 : 8;

    class->n_blocks = slab_size ? slab_size / class->block_size : geometry_fitting(class->block_size);
    if (class->n_blocks < least)
        class->n_blocks = least;
    if (class->n_blocks > HEAP_SLAB_MAX)
        class->n_blocks = HEAP_SLAB_MAX;
}

static int geometry_set_classes(struct heap_geometry *geometry, const struct memclient_heap_options *options)
{
    if (!options->block_sizes || !options->n_block_sizes || options->n_block_sizes > HEAP_CLASSES)
        return fail_with(EINVAL, "block_sizes and n_block_sizes: a heap has blocks of 1 to %d sizes, not of %zu",
                         HEAP_CLASSES, options->block_sizes ? options->n_block_sizes : 0);
    geometry->n_classes = (uint32_t)options->n_block_sizes;
    for (unsigned i = 0; i < geometry->n_classes; i++) {
        struct heap_class *class = &geometry->classes[i];

        if (!options->block_sizes[i] || !checked_align_up_u64(options->block_sizes[i], 64, &class->block_size) ||
            class->block_size > SLAB_SIZE_MAX / 8)
            return fail_with(EINVAL, "block_sizes[%u] is %llu: a block has 1 byte to 4 TiB", i,
                             ULL(options->block_sizes[i]));
        geometry_set_blocks(class, options->slab_size);
        /* the smallest comes first */
        for (unsigned j = i; j && geometry->classes[j - 1].block_size > geometry->classes[j].block_size; j--) {
            struct heap_class larger = geometry->classes[j - 1];

            geometry->classes[j - 1] = geometry->classes[j];
            geometry->classes[j] = larger;
        }
    }
    return 0;
}

static int geometry_set_memory(struct heap_geometry *geometry, const struct memclient_alloc_options *from)
{
    struct memclient_alloc_options memory;
    int r = check_options(&memory, sizeof(memory), from, "the memory options");

    if (r)
        return r;
    if (memory.alignment || memory.address || memory.flags || memory.wait_ms || memory.name || memory.name_options)
        return fail_with(EINVAL, "memory: only pool, nodes, pages, page_size, placement, part_size and weights are "
                                 "options of a heap's slabs");
    if (memory.n_nodes > 64 || (memory.n_nodes && !memory.nodes) ||
        (memory.pool && strnlen(memory.pool, sizeof(geometry->memory)) == sizeof(geometry->memory)))
        return fail_with(EINVAL, "memory: at most 64 nodes, and a pool's name of at most %d bytes",
                         MEMCLIENT_POOL_NAME_SIZE - 1);
    if (memory.pool)
        memcpy(geometry->memory, memory.pool, strlen(memory.pool));
    geometry->n_nodes = (uint32_t)memory.n_nodes;
    if (memory.n_nodes)
        memcpy(geometry->nodes, memory.nodes, memory.n_nodes * sizeof(*memory.nodes));
    geometry->has_weights = memory.weights && memory.n_nodes;
    if (geometry->has_weights)
        memcpy(geometry->weights, memory.weights, memory.n_nodes * sizeof(*memory.weights));
    geometry->pages = memory.pages;
    geometry->page_size = memory.page_size;
    geometry->placement = memory.placement;
    geometry->part_size = memory.part_size;
    return 0;
}

int geometry_set(struct heap_geometry *geometry, const struct memclient_heap_options *options)
{
    int r = geometry_set_classes(geometry, options);

    if (!r)
        r = geometry_set_memory(geometry, options->memory);
    geometry->slabs_max = options->slabs_max && options->slabs_max <= UINT32_MAX ? (uint32_t)options->slabs_max
                          : options->slabs_max                                   ? 0
                                                                                 : HEAP_SLABS;
    geometry->flags = options->flags;
    if (!r)
        r = geometry_check(geometry);
    if (!r && getrandom(geometry->id, sizeof(geometry->id), 0) != (ssize_t)sizeof(geometry->id))
        r = fail_errno("getrandom");
    return r;
}
