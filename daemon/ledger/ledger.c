/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's memory: made, found again, grown. What is in the records is no concern of this file.
 *
 * It grows by a few extents at a time. Addresses for all that it may ever have are reserved at once, without
 * memory and without access, and what has been allocated is mapped over the front of them. The file is as large as that
 * from the beginning, and sealed against shrinking: where nothing was allocated it has holes.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "ledger/journal.h"
#include "ledger/ledger.h"
#include "log/log.h"
#include "proto/status.h"
#include "sys/sys.h"

#define EXTENTS_SIZE ((uint64_t)LEDGER_EXTENTS_MAX * LEDGER_EXTENT_SIZE)
#define RESERVED     ((size_t)(EXTENTS_SIZE + LEDGER_JOURNAL_MAX))
/* So large a piece is mapped and allocated at once; a power of two, at least any page size. */
#define GROWTH 16

static_assert(sizeof(struct ledger_header) <= LEDGER_EXTENT_SIZE, "the header is one extent");
static_assert(LEDGER_EXTENTS_MAX % GROWTH == 0, "the last growth is a whole one");

struct ledger {
    int fd;
    char *base;                   /* RESERVED bytes of addresses */
    struct ledger_header *header; /* at base, once there is memory */
    struct journal journal;
    uint32_t n_used; /* extents that tables have taken, and the header's */
};

static const uint32_t record_sizes[RECORD_KINDS] = {
    [RECORD_SESSION] = sizeof(struct session_record),
    [RECORD_BUFFER] = sizeof(struct buffer_record),
    [RECORD_PLAN] = sizeof(struct plan_record),
    [RECORD_HOLD] = sizeof(struct hold_record),
    [RECORD_TOKEN] = sizeof(struct token_record),
    [RECORD_NAME] = sizeof(struct name_record),
    [RECORD_RESERVATION] = sizeof(struct reservation_record),
    [RECORD_POOL] = sizeof(struct pool_record),
    [RECORD_KEPT] = sizeof(struct kept_record),
    [RECORD_KEPT_MORE] = sizeof(struct kept_more_record),
    [RECORD_ENDED_TOKEN] = sizeof(struct ended_token_record),
};

uint32_t ledger_record_size(enum record_kind kind)
{
    assert(kind > RECORD_NONE && kind < RECORD_KINDS);
    return record_sizes[kind];
}

/* FNV-1a: against damage, not against somebody. */
static uint64_t checksum_of(const struct ledger_header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < offsetof(struct ledger_header, checksum); i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* n extents from the given one on. 0 or a negative errno. */
static int map_extents(struct ledger *ledger, uint32_t first, uint32_t n)
{
    off_t offset = (off_t)first * (off_t)LEDGER_EXTENT_SIZE;
    size_t length = n * LEDGER_EXTENT_SIZE;

    if (sys->fallocate(ledger->fd, 0, offset, (off_t)length) < 0)
        return -errno;
    if (sys->mmap(ledger->base + offset, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ledger->fd, offset) ==
        MAP_FAILED)
        return -errno;
    return 0;
}

/* Addresses for the descriptor, which is taken, and the header mapped. */
static int open_ledger(struct ledger **ret, int *fd)
{
    _cleanup_(ledger_freep) struct ledger *ledger = malloc(sizeof(*ledger));
    void *base;
    int r;

    if (!ledger)
        return fatal(-ENOMEM);
    *ledger = (struct ledger){.fd = -1};
    base = sys->mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return fatal(-errno);
    ledger->base = base;
    ledger->fd = steal_fd(fd);
    r = map_extents(ledger, 0, GROWTH);
    if (r < 0) {
        *fd = steal_fd(&ledger->fd);
        return fatal(r);
    }
    ledger->header = (struct ledger_header *)base;
    ledger->journal = (struct journal){
        .fd = ledger->fd,
        .ledger = base,
        .ledger_size = EXTENTS_SIZE,
        .offset = EXTENTS_SIZE,
        .used = &ledger->header->journal,
    };
    *ret = steal_ptr(&ledger);
    return 0;
}

int ledger_new(struct ledger **ret, uint64_t arena_base, uint64_t arena_size)
{
    _cleanup_(ledger_freep) struct ledger *ledger = NULL;
    _cleanup_close_ int fd = sys_memfd_new("memoryd:ledger", 0);
    struct ledger_header *header;
    int r;

    if (fd < 0 || sys->ftruncate(fd, (off_t)RESERVED) < 0 || sys->add_seals(fd, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return fatal(-errno);
    r = open_ledger(&ledger, &fd);
    if (r < 0)
        return r;
    r = journal_init(&ledger->journal);
    if (r < 0)
        return fatal(r);

    ledger->n_used = 1;
    header = ledger->header;
    header->major = LEDGER_MAJOR;
    header->header_size = sizeof(struct ledger_header);
    header->extent_size = LEDGER_EXTENT_SIZE;
    header->arena_base = arena_base;
    header->arena_size = arena_size;
    header->next_id = 1;
    header->n_extents = GROWTH;
    header->starts = 1;
    memcpy(header->record_sizes, record_sizes, sizeof(record_sizes));
    while (!header->broker_id)
        if (getrandom(&header->broker_id, sizeof(header->broker_id), 0) < 0 && errno != EINTR)
            return fatal(-errno);
    header->magic = LEDGER_MAGIC;
    header->checksum = checksum_of(header);
    *ret = steal_ptr(&ledger);
    return 0;
}

/* With the checksum of before a ledger_need() that did not come to its end: nothing needs the feature yet. */
static bool take_back_features(struct ledger_header *header)
{
    uint64_t features = header->features;

    for (uint64_t feature = 1; feature & LEDGER_FEATURES; feature <<= 1) {
        header->features = features & ~feature;
        if (header->features != features && header->checksum == checksum_of(header))
            return true;
    }
    header->features = features;
    return false;
}

static int check_header(struct ledger_header *header)
{
    if (header->magic != LEDGER_MAGIC || (header->checksum != checksum_of(header) && !take_back_features(header)))
        return LEDGER_E_DAMAGED;
    if (header->major != LEDGER_MAJOR || header->features & ~LEDGER_FEATURES ||
        header->header_size != sizeof(*header) || header->extent_size != LEDGER_EXTENT_SIZE ||
        memcmp(header->record_sizes, record_sizes, sizeof(record_sizes)) != 0)
        return LEDGER_E_FORMAT;
    if (!header->next_id || header->n_extents < GROWTH || header->n_extents > LEDGER_EXTENTS_MAX ||
        header->n_extents % GROWTH)
        return LEDGER_E_DAMAGED;
    return 0;
}

int ledger_adopt(struct ledger **ret, int fd)
{
    _cleanup_(ledger_freep) struct ledger *ledger = NULL;
    struct ledger_header *header;
    struct stat st;
    int r;

    /* what could shrink would be a SIGBUS one day */
    if (sys->fstat(fd, &st) < 0 || st.st_size != (off_t)RESERVED || !(sys->get_seals(fd) & F_SEAL_SHRINK))
        return LEDGER_E_DAMAGED;
    r = open_ledger(&ledger, &fd);
    if (r < 0)
        return r;
    header = ledger->header;
    r = check_header(header);
    if (!r && header->n_extents > GROWTH)
        r = map_extents(ledger, GROWTH, header->n_extents - GROWTH);
    if (!r)
        r = journal_init(&ledger->journal);
    if (r) {
        ledger->fd = -1; /* it stays the caller's */
        return r;
    }
    if (!journal_take_back(&ledger->journal))
        log_error("the ledger's journal is damaged: the last change may be there in part");
    atomic_store(&header->journal, 0);
    ledger->n_used = 1;
    for (uint32_t i = 1; i < header->n_extents; i++)
        if (header->kinds[i] != RECORD_NONE)
            ledger->n_used = i + 1;
    header->starts++;
    *ret = steal_ptr(&ledger);
    return 0;
}

struct ledger *ledger_free(struct ledger *ledger)
{
    if (!ledger)
        return NULL;
    if (ledger->base)
        (void)sys->munmap(ledger->base, RESERVED);
    ledger->fd = fd_close(ledger->fd);
    free(ledger);
    return NULL;
}

int ledger_fd(const struct ledger *ledger)
{
    return ledger->fd;
}

const struct ledger_header *ledger_header(const struct ledger *ledger)
{
    return ledger->header;
}

uint32_t ledger_broker_id(const struct ledger *ledger)
{
    return ledger->header->broker_id;
}

void ledger_need(struct ledger *ledger, uint64_t feature)
{
    struct ledger_header *header = ledger->header;

    assert((feature & LEDGER_FEATURES) == feature);
    if ((header->features & feature) == feature)
        return;
    header->features |= feature;
    atomic_signal_fence(memory_order_release);
    *(volatile uint64_t *)&header->checksum = checksum_of(header);
}

void ledger_set_arena(struct ledger *ledger, uint64_t base, uint64_t size)
{
    ledger->header->arena_base = base;
    ledger->header->arena_size = size;
}

bool ledger_id_was_given(const struct ledger *ledger, uint64_t id)
{
    return id && id < ledger->header->next_id;
}

uint64_t ledger_take_id(struct ledger *ledger)
{
    return ledger->header->next_id++;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

void ledger_log(struct ledger *ledger, const void *at, size_t size)
{
    int r = journal_log(&ledger->journal, at, size);

    if (r < 0) {
        log_error("the ledger's journal cannot grow (%s): the broker ends, and the next one takes back what it was at",
                  strerrordesc_np(-r));
        abort();
    }
}

void ledger_commit(struct ledger *ledger)
{
    atomic_store_explicit(&ledger->header->journal, 0, memory_order_release);
}

bool ledger_is_changed(const struct ledger *ledger)
{
    return atomic_load_explicit(&ledger->header->journal, memory_order_relaxed);
}

struct ledger_executing *ledger_executing(struct ledger *ledger)
{
    return &ledger->header->executing;
}

/* ---- extents ----------------------------------------------------------------------------------------------------- */

int ledger_take_extent(struct ledger *ledger, enum record_kind kind, uint32_t *ret_extent, struct problem *problem)
{
    uint32_t n = ledger->header->n_extents;
    int r;

    if (ledger->n_used == n) {
        if (n == LEDGER_EXTENTS_MAX)
            return refuse(problem, STATUS_NO_MEMORY, "the broker's ledger is as large as it can be; end something");
        r = map_extents(ledger, n, GROWTH);
        if (r < 0)
            return refuse(problem, STATUS_NO_MEMORY, "the broker's ledger cannot grow (%s); try again later",
                          strerrordesc_np(-r));
        ledger->header->n_extents = n + GROWTH;
    }
    ledger->header->kinds[ledger->n_used] = (uint8_t)kind;
    *ret_extent = ledger->n_used++;
    return 0;
}

uint32_t ledger_next_extent(const struct ledger *ledger, enum record_kind kind, uint32_t from)
{
    for (uint32_t i = from ? from : 1; i < ledger->n_used; i++)
        if (ledger->header->kinds[i] == kind)
            return i;
    return 0;
}

void *ledger_extent(const struct ledger *ledger, uint32_t extent)
{
    assert(extent && extent < ledger->n_used);
    return ledger->base + extent * LEDGER_EXTENT_SIZE;
}

uint32_t ledger_extent_of(const struct ledger *ledger, const void *record)
{
    size_t offset = (size_t)((const char *)record - ledger->base);

    assert(offset >= LEDGER_EXTENT_SIZE && offset < ledger->n_used * LEDGER_EXTENT_SIZE);
    return (uint32_t)(offset / LEDGER_EXTENT_SIZE);
}
