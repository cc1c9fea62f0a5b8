/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging, and taking back. What is found by a later broker may be damaged, so it is checked before it is believed.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/align.h"
#include "ledger/journal.h"
#include "ledger/ledger.h"
#include "sys/sys.h"

/* A batch of 64 of anything fits; a power of two, at least any page size. */
#define CAPACITY_FIRST (UINT64_C(256) << 10)

struct entry {
    uint64_t offset;
    uint64_t size;
};

static char *journal_base(const struct journal *journal)
{
    return journal->ledger + journal->offset;
}

static uint64_t entry_size(uint64_t size)
{
    return sizeof(struct entry) + align_up(size, sizeof(uint64_t)) + sizeof(uint64_t);
}

static int journal_set_capacity(struct journal *journal, uint64_t capacity)
{
    uint64_t more = capacity - journal->capacity;
    off_t at = (off_t)(journal->offset + journal->capacity);

    if (capacity > LEDGER_JOURNAL_MAX)
        return -ENOSPC;
    if (sys->fallocate(journal->fd, 0, at, (off_t)more) < 0)
        return -errno;
    if (sys->mmap(journal_base(journal) + journal->capacity, (size_t)more, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_FIXED, journal->fd, at) == MAP_FAILED)
        return -errno;
    journal->capacity = capacity;
    return 0;
}

int journal_init(struct journal *journal)
{
    uint64_t capacity = CAPACITY_FIRST;

    while (capacity < atomic_load_explicit(journal->used, memory_order_acquire) && capacity < LEDGER_JOURNAL_MAX)
        capacity *= 2;
    return journal_set_capacity(journal, capacity);
}

int journal_log(struct journal *journal, const void *at, size_t size)
{
    uint64_t used = atomic_load_explicit(journal->used, memory_order_relaxed);
    uint64_t after = used + entry_size(size);
    struct entry entry = {.offset = (uint64_t)((const char *)at - journal->ledger), .size = size};
    char *to = journal_base(journal) + used;
    int r;

    while (after > journal->capacity) {
        r = journal_set_capacity(journal, 2 * journal->capacity);
        if (r)
            return r;
    }
    memcpy(to, &entry, sizeof(entry));
    memcpy(to + sizeof(entry), at, size);
    memcpy(journal_base(journal) + after - sizeof(uint64_t), &entry.size, sizeof(uint64_t));
    /* the entry before its number, its number before what the caller writes next */
    atomic_store_explicit(journal->used, after, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    return 0;
}

bool journal_take_back(struct journal *journal)
{
    uint64_t used = atomic_load_explicit(journal->used, memory_order_acquire);

    if (used > journal->capacity || used % sizeof(uint64_t))
        return false;
    while (used) {
        const char *end = journal_base(journal) + used;
        struct entry entry;
        uint64_t size;

        if (used < entry_size(0))
            return false;
        memcpy(&size, end - sizeof(size), sizeof(size));
        if (size > journal->ledger_size || entry_size(size) > used)
            return false;
        memcpy(&entry, end - entry_size(size), sizeof(entry));
        /* records only: the header is never logged */
        if (entry.size != size || entry.offset < LEDGER_EXTENT_SIZE || entry.offset > journal->ledger_size ||
            size > journal->ledger_size - entry.offset)
            return false;
        memcpy(journal->ledger + entry.offset, end - entry_size(size) + sizeof(entry), size);
        used -= entry_size(size);
        /* a broker that is killed here is followed by one that goes on from here */
        atomic_store_explicit(journal->used, used, memory_order_release);
    }
    return true;
}
