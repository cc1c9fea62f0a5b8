/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's memory: made, mapped, grown. What is in the records is no concern of this file.
 *
 * It grows by a few extents at a time. Addresses for all that it may ever have are reserved at once, without
 * memory and without access, and what has been allocated is mapped over the front of them.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/steal.h"
#include "ledger/ledger.h"
#include "log/log.h"
#include "proto/status.h"
#include "sys/sys.h"

#define RESERVED ((size_t)LEDGER_EXTENTS_MAX * LEDGER_EXTENT_SIZE)
/* So large a piece is mapped and allocated at once; a power of two, at least any page size. */
#define GROWTH 16

static_assert(sizeof(struct ledger_header) <= LEDGER_EXTENT_SIZE, "the header is one extent");
static_assert(LEDGER_EXTENTS_MAX % GROWTH == 0, "the last growth is a whole one");

struct ledger {
    int fd;
    char *base;                    /* RESERVED bytes of addresses */
    struct ledger_header *header;  /* at base, once there is memory */
    uint32_t n_used;               /* extents that tables have taken, and the header's */
};

static const uint32_t record_sizes[RECORD_KINDS] = {
    [RECORD_SESSION] = sizeof(struct session_record),
    [RECORD_BUFFER] = sizeof(struct buffer_record),
    [RECORD_PLAN] = sizeof(struct plan_record),
    [RECORD_HOLD] = sizeof(struct hold_record),
    [RECORD_TOKEN] = sizeof(struct token_record),
    [RECORD_NAME] = sizeof(struct name_record),
    [RECORD_RESERVATION] = sizeof(struct reservation_record),
};

uint32_t ledger_record_size(enum record_kind kind)
{
    assert(kind > RECORD_NONE && kind < RECORD_KINDS);
    return record_sizes[kind];
}

/* GROWTH extents more. 0 or a negative errno. */
static int grow(struct ledger *ledger, uint32_t n_extents)
{
    off_t offset = (off_t)n_extents * (off_t)LEDGER_EXTENT_SIZE;
    size_t length = GROWTH * LEDGER_EXTENT_SIZE;

    if (sys->fallocate(ledger->fd, 0, offset, (off_t)length) < 0)
        return -errno;
    if (sys->mmap(ledger->base + offset, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, ledger->fd,
                  offset) == MAP_FAILED)
        return -errno;
    return 0;
}

int ledger_new(struct ledger **ret)
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
    ledger->fd = sys_memfd_new("memoryd:ledger", 0);
    if (ledger->fd < 0)
        return fatal(-errno);
    r = grow(ledger, 0);
    if (r < 0)
        return fatal(r);

    ledger->header = (struct ledger_header *)base;
    ledger->n_used = 1;
    ledger->header->header_size = sizeof(struct ledger_header);
    ledger->header->features = LEDGER_FEATURES;
    ledger->header->extent_size = LEDGER_EXTENT_SIZE;
    ledger->header->next_id = 1;
    ledger->header->n_extents = GROWTH;
    memcpy(ledger->header->record_sizes, record_sizes, sizeof(record_sizes));
    while (!ledger->header->broker_id)
        if (getrandom(&ledger->header->broker_id, sizeof(ledger->header->broker_id), 0) < 0 && errno != EINTR)
            return fatal(-errno);
    ledger->header->major = LEDGER_MAJOR;
    /* who finds the magic finds the rest */
    atomic_thread_fence(memory_order_release);
    ledger->header->magic = LEDGER_MAGIC;
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

bool ledger_id_was_given(const struct ledger *ledger, uint64_t id)
{
    return id && id < ledger->header->next_id;
}

uint64_t ledger_take_id(struct ledger *ledger)
{
    return ledger->header->next_id++;
}

int ledger_take_extent(struct ledger *ledger, enum record_kind kind, uint32_t *ret_extent, struct problem *problem)
{
    uint32_t n = ledger->header->n_extents;
    int r;

    if (ledger->n_used == n) {
        if (n == LEDGER_EXTENTS_MAX)
            return refuse(problem, STATUS_NO_MEMORY, "the broker's ledger is as large as it can be; end something");
        r = grow(ledger, n);
        if (r < 0)
            return refuse(problem, STATUS_NO_MEMORY, "the broker's ledger cannot grow (%s); try again later",
                          strerrordesc_np(-r));
        ledger->header->n_extents = n + GROWTH;
    }
    ledger->header->kinds[ledger->n_used] = (uint8_t)kind;
    *ret_extent = ledger->n_used++;
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
