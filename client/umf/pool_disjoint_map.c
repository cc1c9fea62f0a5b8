/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map is a hash table with open addressing, at most a quarter full unless memory is short. A block has a slot for
 * each granule of addresses that it overlaps.
 *
 * Readers take no lock. A slot changes only from nothing or a gap to a block, and from a block to a gap. A block is
 * entered before anybody has an address in it. A record that is not in the map holds no address, and its span never
 * changes, so a reader that finds a reused record does not mistake it for what it was. Old tables are kept, since a
 * reader may be in one; together they are no larger than the last.
 */
#include "umf/pool_disjoint.h"

#include <stdlib.h>

#define SLOTS_MIN 64

/* Holds no address. */
static struct block map_gap;

static struct map_table *map_table_new(size_t n, struct map_table *older)
{
    struct map_table *table = calloc(1, sizeof(*table) + n * sizeof(table->slots[0]));

    if (!table)
        return NULL;
    table->mask = n - 1;
    table->older = older;
    return table;
}

bool map_init(struct map *map, size_t granule)
{
    struct map_table *table = map_table_new(SLOTS_MIN, NULL);

    if (!table)
        return false;
    atomic_init(&map->table, table);
    map->shift = 63 - (unsigned)__builtin_clzll(granule);
    return true;
}

void map_deinit(struct map *map)
{
    struct map_table *table = atomic_load(&map->table), *older;

    for (; table; table = older) {
        older = table->older;
        free(table);
    }
}

static struct block *map_load(struct map_table *table, size_t i)
{
    return atomic_load_explicit(&table->slots[i & table->mask], memory_order_relaxed);
}

static void map_store(struct map_table *table, size_t i, struct block *block)
{
    atomic_store_explicit(&table->slots[i & table->mask], block, memory_order_release);
}

static void map_enter(struct map_table *table, uintptr_t granule, struct block *block)
{
    size_t i = map_hash(granule);

    while (map_load(table, i) && map_load(table, i) != &map_gap)
        i++;
    table->used += !map_load(table, i);
    map_store(table, i, block);
}

/* Gaps become empty if no search goes beyond them. */
static void map_close_gaps(struct map_table *table, size_t i)
{
    if (map_load(table, i + 1))
        return;
    for (; map_load(table, i) == &map_gap; i--) {
        map_store(table, i, NULL);
        table->used--;
    }
}

static void map_leave(struct map_table *table, uintptr_t granule, const struct block *block)
{
    size_t i = map_hash(granule);

    while (map_load(table, i) != block)
        i++;
    map_store(table, i, &map_gap);
    map_close_gaps(table, i);
}

/* ---- granules ---------------------------------------------------------------------------------------------------- */

static uintptr_t first_granule(const struct map *map, const struct block *block)
{
    return atomic_load_explicit(&block->from, memory_order_relaxed) >> map->shift;
}

static uintptr_t last_granule(const struct map *map, const struct block *block)
{
    return (atomic_load_explicit(&block->from, memory_order_relaxed) +
            atomic_load_explicit(&block->span, memory_order_relaxed) - 1) >>
           map->shift;
}

static void map_enter_all(const struct map *map, struct map_table *table, struct block *block)
{
    for (uintptr_t granule = first_granule(map, block); granule <= last_granule(map, block); granule++)
        map_enter(table, granule, block);
}

static bool map_has(struct map_table *table, uintptr_t granule, const struct block *block)
{
    size_t i = map_hash(granule);

    while (map_load(table, i) && map_load(table, i) != block)
        i++;
    return map_load(table, i);
}

/* A block is seen once for each of its granules. */
static void map_copy(const struct map *map, struct map_table *from, struct map_table *to)
{
    for (size_t i = 0; i <= from->mask; i++) {
        struct block *block = map_load(from, i);

        if (block && block != &map_gap && !map_has(to, first_granule(map, block), block))
            map_enter_all(map, to, block);
    }
}

static bool map_make_room(struct map *map, size_t n)
{
    struct map_table *table = atomic_load_explicit(&map->table, memory_order_relaxed), *larger;

    if (table->used + n <= table->mask / 4)
        return true;
    larger = map_table_new((table->mask + 1) * 2, table);
    if (!larger)
        return table->used + n < table->mask; /* one slot stays empty, to end searches */
    map_copy(map, table, larger);
    atomic_store_explicit(&map->table, larger, memory_order_release);
    return true;
}

bool map_insert(struct map *map, struct block *block, uintptr_t from, size_t span)
{
    if (!map_make_room(map, (span >> map->shift) + 2))
        return false;
    atomic_store_explicit(&block->span, span, memory_order_relaxed);
    atomic_store_explicit(&block->from, from, memory_order_release);
    map_enter_all(map, atomic_load_explicit(&map->table, memory_order_relaxed), block);
    return true;
}

void map_remove(struct map *map, struct block *block)
{
    struct map_table *table = atomic_load_explicit(&map->table, memory_order_relaxed);

    for (uintptr_t granule = first_granule(map, block); granule <= last_granule(map, block); granule++)
        map_leave(table, granule, block);
    atomic_store_explicit(&block->from, UINTPTR_MAX, memory_order_relaxed);
}

void map_take_all(struct map *map, struct list *list)
{
    struct map_table *table = atomic_load_explicit(&map->table, memory_order_relaxed);

    for (size_t i = 0; i <= table->mask; i++) {
        struct block *block = map_load(table, i);

        if (!block || block == &map_gap || atomic_load(&block->from) == UINTPTR_MAX)
            continue;
        atomic_store(&block->from, UINTPTR_MAX);
        list_append(list, &block->link);
    }
}
