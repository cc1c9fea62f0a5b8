/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the members of a heap share, in three kinds of buffers.
 *
 *     control   one: geometry, the directory of slabs, the table of members. Whoever has it may write it
 *     slab      several: blocks of one size, and behind them a state word for each and a bitmap of hints
 *     queue     one for each reader: what it gives back, since it can write nothing else
 *
 * The control buffer has tokens that grant writing, so nobody ever gets it to read only. A reader gets its queue, and
 * with each block the token that lets it read the slab; the slab itself says which heap it is of.
 *
 * **The state word** of a block is the truth about it: who owns it, for whom it was given away, and its generation,
 * which each change of hands raises. Every change is one compare and swap:
 *
 *     FREE ──alloc──► owned by M ──give──► owned by M, for N ──take──► owned by N ──free──► FREE
 *                       └──free──► FREE              └──M takes it back──► owned by M
 *
 * What is given to a reader, which cannot take it by a swap, is owned by it at once. All else is a hint: a bit of the
 * bitmap says that some member has looked at the block and found it free or taken it; it may be wrong either way, and
 * is made again from the words.
 *
 * **Members** have numbers. The one who has number N holds a lock on byte N of the control buffer, by a description of
 * its own (fcntl(2), F_OFD_SETLK), which the kernel drops when the process ends, however it ends. Whoever gets the lock
 * therefore knows that the former member is dead, and is the only one to take its blocks back; only then the number is
 * used again. One that dies while it sweeps leaves work that the next one finds undone. A reader cannot lock a byte of
 * the control buffer; it has a lock on its queue.
 *
 * **Trust.** A heap is one trust domain: any member can spoil the data and the books of all. But nothing that is read
 * here makes another one crash, loop or leave the slab. Geometry is copied and checked when a heap is opened, and never
 * read again; indexes are checked against the copy; tokens lead to buffers whose size and kind are checked; each loop
 * is bounded by the copy, calls of the broker that lead to nothing are counted, and a swap that fails is not repeated
 * without bound.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <memclient/memclient.h>

#define HEAP_VERSION 1

/* What a buffer of a heap begins with, a slab's part behind the blocks. */
enum heap_magic {
    HEAP_CONTROL = 0x636f6d62,
    HEAP_SLAB = 0x6c736d62,
    HEAP_QUEUE = 0x75716d62,
};

enum {
    HEAP_CLASSES = 8,
    HEAP_SLABS = 1024,
    HEAP_MEMBERS = 1023,    /* numbers are below, and above 0 */
    HEAP_ANYBODY = 1023,    /* for whom a block may be */
    HEAP_SLAB_MAX = 1 << 20 /* blocks of a slab */
};

/* A copy that is checked and then believed: what is shared is read once, also by the compiler. */
static inline void layout_copy(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    __asm__ volatile("" ::: "memory");
}

/* ---- the state word ---------------------------------------------------------------------------------------------- */

#define WORD_FIELD       1023u
#define WORD_TO_SHIFT    10
#define WORD_SHIFT       20
#define WORD_GENERATIONS ((UINT64_C(1) << (64 - WORD_SHIFT)) - 1)

/* Of a slab that was given back. No member has this number. */
#define WORD_RETIRED UINT64_C(0xfffff)

static inline unsigned word_owner(uint64_t word)
{
    return (unsigned)word & WORD_FIELD;
}

static inline unsigned word_to(uint64_t word)
{
    return (unsigned)(word >> WORD_TO_SHIFT) & WORD_FIELD;
}

static inline uint64_t word_generation(uint64_t word)
{
    return word >> WORD_SHIFT;
}

static inline bool word_is_free(uint64_t word)
{
    return !(word & ((UINT64_C(1) << WORD_SHIFT) - 1));
}

static inline uint64_t word_make(uint64_t generation, unsigned to, unsigned owner)
{
    return generation << WORD_SHIFT | (uint64_t)to << WORD_TO_SHIFT | owner;
}

/* The same block in other hands: references that were given out are stale. */
static inline uint64_t word_pass(uint64_t word, unsigned to, unsigned owner)
{
    return word_make(word_generation(word) + 1, to, owner);
}

static inline uint64_t word_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline bool word_swap(uint64_t *word, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* ---- the control buffer ------------------------------------------------------------------------------------------ */

struct heap_class {
    uint64_t block_size;
    uint64_t n_blocks; /* of a slab */
};

struct heap_geometry {
    uint8_t id[16];
    uint32_t n_classes;
    uint32_t slabs_max;
    uint32_t flags; /* enum memclient_heap_flag */
    uint32_t pages;
    uint32_t placement;
    uint32_t n_nodes;
    uint64_t page_size;
    uint64_t part_size;
    uint32_t has_weights;
    uint32_t nodes[64];
    uint32_t weights[64];
    char memory[MEMCLIENT_POOL_NAME_SIZE]; /* the memory pool, or "" */
    struct heap_class classes[HEAP_CLASSES];
};

/* The words of the directory and of the table of members: a kind, a number of a member, an incarnation. */
enum entry_kind {
    ENTRY_FREE = 0,
    ENTRY_BUSY = 1, /* of a slab: the member makes it, or gives it back. Of a member: it is being swept */
    ENTRY_LIVE = 2, /* of a member: it can write */
    ENTRY_READER = 3,
};

static inline uint64_t entry_make(unsigned kind, unsigned member, uint32_t incarnation)
{
    return (uint64_t)incarnation << 32 | (uint64_t)member << 8 | kind;
}

static inline unsigned entry_kind(uint64_t word)
{
    return (unsigned)word & 255;
}

static inline unsigned entry_member(uint64_t word)
{
    return (unsigned)(word >> 8) & WORD_FIELD;
}

static inline uint32_t entry_incarnation(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

struct slab_entry {
    uint64_t word;  /* the member: who is busy with it */
    uint64_t class; /* of its blocks */
    struct memclient_token writing, reading;
};

struct member_entry {
    uint64_t word; /* the member: who has invited this reader, 0 once that one is gone */
    struct memclient_token queue;
};

struct heap_control {
    uint32_t magic;
    uint32_t version;
    uint32_t destroyed; /* slabs get no names any more */
    uint32_t unused;
    struct heap_geometry geometry;
    struct slab_entry slabs[HEAP_SLABS];
    struct member_entry members[HEAP_MEMBERS];
};

/* ---- a slab ------------------------------------------------------------------------------------------------------ */

/* Behind the blocks; after it the words, then the hints: a bit of each block that is set if somebody has it in mind. */
struct slab_head {
    uint32_t magic;
    uint32_t version;
    uint8_t id[16]; /* the heap's */
    uint64_t block_size;
    uint64_t n_blocks;
    uint32_t number;
    uint32_t incarnation;
    uint8_t unused[16];
};

static inline uint64_t slab_hint_words(uint64_t n_blocks)
{
    return (n_blocks + 63) / 64;
}

/* No overflow: a slab is checked to be less than 2^46 bytes. */
static inline uint64_t slab_bytes(const struct heap_class *class)
{
    return class->block_size * class->n_blocks + sizeof(struct slab_head) +
           (class->n_blocks + slab_hint_words(class->n_blocks)) * sizeof(uint64_t);
}

/* ---- a reader's queue -------------------------------------------------------------------------------------------- */

enum { HEAP_QUEUE_ENTRIES = 8000 };

struct heap_queue {
    uint32_t magic;
    uint32_t version;
    uint8_t id[16];
    uint32_t number;
    uint32_t incarnation;
    uint32_t joined;  /* written by the reader */
    uint32_t revoked; /* written by who sweeps it */
    uint32_t n_classes;
    struct heap_class classes[HEAP_CLASSES];
    uint64_t head; /* written by the reader; what is before it and not before `tail` is given back */
    uint64_t tail;
    uint64_t entries[HEAP_QUEUE_ENTRIES]; /* return_make() */
};

#define RETURN_INDEX_SHIFT 10
#define RETURN_SHIFT       30
#define RETURN_GENERATIONS ((UINT64_C(1) << (64 - RETURN_SHIFT)) - 1)

/* One word, so that nobody ever sees half of one and half of another. */
static inline uint64_t return_make(unsigned slab, uint64_t index, uint64_t generation)
{
    return generation << RETURN_SHIFT | index << RETURN_INDEX_SHIFT | slab;
}

_Static_assert(sizeof(struct slab_head) == 64, "layout");
_Static_assert(sizeof(struct slab_entry) == 80, "layout");
_Static_assert(sizeof(struct member_entry) == 40, "layout");
_Static_assert(sizeof(struct heap_queue) <= 65536, "layout");
