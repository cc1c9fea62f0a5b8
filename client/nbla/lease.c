/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See lease.h.
 *
 * Threads share leases without a lock, which a child of fork() could find taken: who wants a part takes a lease of its
 * context out of those that are kept, and puts it back. Meanwhile it is nobody else's, and others have another one, or
 * make one. A lease is counted: once for each part in use, and once while it is kept or on its way there.
 */
#include "nbla/lease.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define PARTS     8
#define KEPT      8 /* for as many threads or contexts at a time; with more, addresses are left unused */
#define ALIGNMENT (UINT64_C(2) << 20)

struct lease {
    unsigned refs; /* atomic */
    unsigned used; /* parts that were taken; of whoever has it in hand */
    pid_t pid;     /* a child's session is another, which it is not of */
    struct memclient *ctx;
    struct memclient_reservation *reservation;
};

/* Leases with parts that were not taken yet. The context says where to look; the lease itself has the right one. */
static struct {
    uintptr_t lease;
    struct memclient *ctx;
} kept[KEPT];

/* By the number of others. */
static unsigned drop(struct lease *lease)
{
    unsigned left = __atomic_sub_fetch(&lease->refs, 1, __ATOMIC_ACQ_REL);

    if (!left) {
        (void)memclient_reservation_release(lease->reservation);
        free(lease);
    }
    return left;
}

/*
 * Of a lease whose parts are not in use any more: it ends, unless somebody has it in hand and is about to use one. By
 * now it may have ended, and another be where it was, which then only loses parts. So it is named by a number.
 */
static void end_if_kept(uintptr_t address)
{
    for (unsigned i = 0; i < KEPT; i++) {
        uintptr_t expected = address;

        if (__atomic_compare_exchange_n(&kept[i].lease, &expected, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            (void)drop((struct lease *)address);
            return;
        }
    }
}

static struct lease *lease_new(struct memclient *ctx)
{
    struct lease *lease = malloc(sizeof(*lease));

    if (!lease)
        return NULL;
    *lease = (struct lease){.refs = 1, .pid = getpid(), .ctx = ctx};
    if (memclient_reserve(ctx, PARTS * LEASE_PART, ALIGNMENT, 0, &lease->reservation)) {
        free(lease);
        return NULL;
    }
    return lease;
}

static bool keep(struct lease *lease)
{
    uintptr_t address = (uintptr_t)lease;
    struct memclient *ctx = lease->ctx; /* once it is kept, another thread may end it */

    for (unsigned i = 0; i < KEPT; i++) {
        uintptr_t none = 0;

        if (!__atomic_load_n(&kept[i].lease, __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(&kept[i].lease, &none, address, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&kept[i].ctx, ctx, __ATOMIC_RELAXED);
            return true;
        }
    }
    return false;
}

static void put_back(struct lease *lease)
{
    if (lease->used == PARTS || !keep(lease))
        (void)drop(lease);
}

static struct lease *take_kept(struct memclient *ctx)
{
    for (unsigned i = 0; i < KEPT; i++) {
        struct lease *lease = NULL;

        if (__atomic_load_n(&kept[i].ctx, __ATOMIC_RELAXED) == ctx)
            lease = (struct lease *)__atomic_exchange_n(&kept[i].lease, 0, __ATOMIC_ACQ_REL);
        if (lease && lease->ctx == ctx && lease->pid == getpid())
            return lease;
        if (lease)
            (void)drop(lease);
    }
    return NULL;
}

struct lease *lease_take_part(struct memclient *ctx, struct memclient_reservation **reservation, uint64_t *base)
{
    struct lease *lease = take_kept(ctx);

    if (!lease)
        lease = lease_new(ctx);
    if (!lease)
        return NULL;
    *reservation = lease->reservation;
    *base = (uintptr_t)memclient_reservation_address(lease->reservation) + lease->used++ * LEASE_PART;
    __atomic_fetch_add(&lease->refs, 1, __ATOMIC_RELAXED);
    put_back(lease);
    return lease;
}

void lease_end_part(struct lease *lease)
{
    uintptr_t address = (uintptr_t)lease;

    if (drop(lease) == 1)
        end_if_kept(address);
}
