/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree below range_index.h, which explains it, and which others include: words, memory, paths, and steps of
 * changes.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define RANGE_INDEX_REST  64
#define RANGE_INDEX_CHUNK ((size_t)65536)

#define RANGE_INDEX_UNUSED __attribute__((__unused__)) static

struct range_entry {
    uint64_t start;
    uint64_t size;
    void *value;
};

struct range_leaf {
    struct range_entry entry;
    struct range_leaf *next; /* the next free one */
};

struct range_node {
    uintptr_t child[16];
    uint64_t prefix;  /* with zeros from its 4 bits on */
    uint32_t present; /* a bit for each child; only with the lock */
    struct range_node *next;
} __attribute__((__aligned__(64)));

struct range_chunk {
    struct range_chunk *next;
};

struct range_index {
    uintptr_t root;
    uint64_t retired;
    uint64_t reshaped;
    /* from here on only with the lock */
    uintptr_t resting[RANGE_INDEX_REST]; /* the last that were taken out, as words */
    struct range_leaf *leaves;
    struct range_node *nodes;
    struct range_chunk *chunks;
    size_t n_unused; /* places in the first chunk that were never used */
};

/* ---- words ------------------------------------------------------------------------------------------------------- */

static inline bool range_word_is_node(uintptr_t word)
{
    return word && !(word & 1);
}

static inline struct range_leaf *range_word_leaf(uintptr_t word)
{
    return (struct range_leaf *)(word - 1);
}

static inline struct range_node *range_word_node(uintptr_t word)
{
    return (struct range_node *)(word & ~(uintptr_t)63);
}

static inline unsigned range_word_shift(uintptr_t word)
{
    return word & 63;
}

static inline unsigned range_slot(uint64_t address, unsigned shift)
{
    return address >> shift & 15;
}

/* Can the address be below a node of this prefix? */
static inline bool range_is_below(uint64_t address, uint64_t prefix, unsigned shift)
{
    return !((address ^ prefix) >> shift >> 4);
}

static inline uintptr_t range_word_load(const uintptr_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void range_word_store(uintptr_t *word, uintptr_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline bool range_entry_holds(const struct range_entry *entry, uint64_t address)
{
    return address - entry->start < entry->size || address == entry->start;
}

/* ---- memory of leaves and nodes ---------------------------------------------------------------------------------- */

/*
 * Where the program is built with LeakSanitizer, it looks here too for what is still reachable at the end. It does not
 * know of mapped memory by itself.
 */
extern void __lsan_register_root_region(const void *start, size_t size) __attribute__((__weak__));
extern void __lsan_unregister_root_region(const void *start, size_t size) __attribute__((__weak__));

/* Memory for a node or for leaves, never used before: what was one of them never becomes the other. */
RANGE_INDEX_UNUSED void *range_index_room(struct range_index *index)
{
    struct range_chunk *chunk;

    if (!index->n_unused) {
        /* not by malloc(), which may itself use this index (client/preload) */
        chunk = mmap(NULL, RANGE_INDEX_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED)
            return NULL;
        if (__lsan_register_root_region)
            __lsan_register_root_region(chunk, RANGE_INDEX_CHUNK);
        chunk->next = index->chunks;
        index->chunks = chunk;
        index->n_unused = RANGE_INDEX_CHUNK / sizeof(struct range_node) - 1;
    }
    return (struct range_node *)(void *)index->chunks + index->n_unused--;
}

static inline struct range_node *range_node_new(struct range_index *index)
{
    struct range_node *node = index->nodes;

    if (!node)
        return range_index_room(index);
    index->nodes = node->next;
    return node;
}

RANGE_INDEX_UNUSED struct range_leaf *range_leaf_new(struct range_index *index, uint64_t start, uint64_t size,
                                                     void *value)
{
    struct range_leaf *leaf = index->leaves;

    if (!leaf) {
        leaf = range_index_room(index);
        if (!leaf)
            return NULL;
        for (size_t i = 0; i + 1 < sizeof(struct range_node) / sizeof(*leaf); i++)
            leaf[i].next = &leaf[i + 1];
    }
    index->leaves = leaf->next;
    __atomic_store_n(&leaf->entry.start, start, __ATOMIC_RELEASE);
    __atomic_store_n(&leaf->entry.size, size, __ATOMIC_RELEASE);
    __atomic_store_n(&leaf->entry.value, value, __ATOMIC_RELEASE);
    return leaf;
}

static inline void range_leaf_free(struct range_index *index, struct range_leaf *leaf)
{
    leaf->next = index->leaves;
    index->leaves = leaf;
}

/* The leaf or node is out of the tree; readers may still be in it. */
RANGE_INDEX_UNUSED void range_index_retire(struct range_index *index, uintptr_t word)
{
    uintptr_t *place = &index->resting[index->retired % RANGE_INDEX_REST], rested = *place;

    *place = word;
    __atomic_store_n(&index->retired, index->retired + 1, __ATOMIC_RELEASE);
    if (range_word_is_node(rested)) {
        range_word_node(rested)->next = index->nodes;
        index->nodes = range_word_node(rested);
    } else if (rested) {
        range_leaf_free(index, range_word_leaf(rested));
    }
}

/* ---- the tree, with the lock ------------------------------------------------------------------------------------- */

/* The path down to where a start is, or would be, and where the paths to its neighbours branch off. */
struct range_path {
    uintptr_t *place;                              /* the word at its end */
    struct range_node *parent;                     /* of which that is a child; NULL: it is the root */
    unsigned slot;                                 /* of the child */
    const struct range_node *low_node, *high_node; /* the last ones with children before and after it; or NULL */
    uint32_t low, high;                            /* the bits of these children */
};

static inline void range_path_go(struct range_index *index, uint64_t start, struct range_path *path)
{
    *path = (struct range_path){.place = &index->root};
    while (range_word_is_node(*path->place)) {
        struct range_node *node = range_word_node(*path->place);
        unsigned shift = range_word_shift(*path->place);
        uint32_t bit, others;

        if (!range_is_below(start, node->prefix, shift))
            break;
        path->parent = node;
        path->slot = range_slot(start, shift);
        path->place = &node->child[path->slot];
        bit = UINT32_C(1) << path->slot;
        others = node->present & (bit - 1);
        if (others) {
            path->low_node = node;
            path->low = others;
        }
        others = node->present & -(bit << 1);
        if (others) {
            path->high_node = node;
            path->high = others;
        }
    }
}

static inline struct range_leaf *range_first_below(uintptr_t word)
{
    while (range_word_is_node(word))
        word = range_word_node(word)->child[__builtin_ctz(range_word_node(word)->present)];
    return range_word_leaf(word);
}

static inline struct range_leaf *range_last_below(uintptr_t word)
{
    while (range_word_is_node(word))
        word = range_word_node(word)->child[31 ^ __builtin_clz(range_word_node(word)->present)];
    return range_word_leaf(word);
}

/* The prefix of a node, or the start of a leaf. */
static inline uint64_t range_word_prefix(uintptr_t word)
{
    return range_word_is_node(word) ? range_word_node(word)->prefix : range_word_leaf(word)->entry.start;
}

/* The last leaf that starts before the path's start; NULL: none. */
static inline struct range_leaf *range_path_before(const struct range_path *path, uint64_t start)
{
    if (*path->place && range_word_prefix(*path->place) < start)
        return range_last_below(*path->place);
    return path->low_node ? range_last_below(path->low_node->child[31 ^ __builtin_clz(path->low)]) : NULL;
}

/* The first leaf that starts there or after it. */
static inline struct range_leaf *range_path_after(const struct range_path *path, uint64_t start)
{
    if (*path->place && range_word_prefix(*path->place) >= start)
        return range_first_below(*path->place);
    return path->high_node ? range_first_below(path->high_node->child[__builtin_ctz(path->high)]) : NULL;
}

/* Enters a leaf at the end of its path. On -ENOMEM the leaf is freed. */
RANGE_INDEX_UNUSED int range_path_enter(struct range_index *index, struct range_path *path, struct range_leaf *leaf)
{
    uint64_t start = leaf->entry.start, differs;
    uintptr_t there = *path->place;
    struct range_node *node;
    unsigned shift;

    if (there) {
        differs = range_word_prefix(there) ^ start;
        shift = (63 - (unsigned)__builtin_clzll(differs)) & ~3u;
        node = range_node_new(index);
        if (!node) {
            range_leaf_free(index, leaf);
            return -ENOMEM;
        }
        for (unsigned i = 0; i < 16; i++)
            range_word_store(&node->child[i], 0);
        __atomic_store_n(&node->prefix, start >> shift >> 4 << 4 << shift, __ATOMIC_RELEASE);
        node->present = UINT32_C(1) << range_slot(start, shift) | UINT32_C(1) << range_slot(start ^ differs, shift);
        range_word_store(&node->child[range_slot(start ^ differs, shift)], there);
        range_word_store(&node->child[range_slot(start, shift)], (uintptr_t)leaf + 1);
        range_word_store(path->place, (uintptr_t)node + shift);
        return 0;
    }
    if (path->parent)
        path->parent->present |= UINT32_C(1) << path->slot;
    range_word_store(path->place, (uintptr_t)leaf + 1);
    return 0;
}

/* The place of the word of the leaf with this start; NULL if there is none. */
static inline uintptr_t *range_index_place(struct range_index *index, uint64_t start)
{
    uintptr_t *place = &index->root;

    while (range_word_is_node(*place))
        place = &range_word_node(*place)->child[range_slot(start, range_word_shift(*place))];
    return *place && range_word_leaf(*place)->entry.start == start ? place : NULL;
}

/* Replaces a leaf by another one of the same start. */
static inline void range_index_replace(struct range_index *index, uintptr_t *place, struct range_leaf *leaf)
{
    uintptr_t old = *place;

    range_word_store(place, (uintptr_t)leaf + 1);
    range_index_retire(index, old);
}

/* Between the two steps of a split or merge. */
static inline void range_index_reshape(struct range_index *index)
{
    __atomic_store_n(&index->reshaped, index->reshaped + 1, __ATOMIC_RELEASE);
}
