/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See lease.h.
 *
 * Threads share one lease without a lock, which a child of fork() could find taken: who wants a part takes the lease
 * out of `current`, and puts it back. Meanwhile it is nobody else's, and others make one of their own. A lease is
 * counted: once for each part in use, and once while it is in `current` or on its way there.
 */
#include "nbla/lease.h"

#include <stdlib.h>
#include <unistd.h>

#define PARTS     8
#define ALIGNMENT (UINT64_C(2) << 20)

struct lease {
    unsigned refs; /* atomic */
    unsigned used; /* parts that were taken; of whoever has it in hand */
    pid_t pid;     /* a child's session is another, which it is not of */
    struct memclient *ctx;
    struct memclient_reservation *reservation;
};

static struct lease *current;

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

static void put_back(struct lease *lease)
{
    struct lease *former;

    if (lease->used == PARTS) {
        (void)drop(lease);
        return;
    }
    former = __atomic_exchange_n(&current, lease, __ATOMIC_ACQ_REL);
    if (former)
        (void)drop(former);
}

/* If none of its parts is in use. Who takes one meanwhile makes a lease of his own. */
static void end_idle_lease(void)
{
    struct lease *lease = __atomic_exchange_n(&current, NULL, __ATOMIC_ACQ_REL);

    if (!lease)
        return;
    if (__atomic_load_n(&lease->refs, __ATOMIC_ACQUIRE) == 1)
        (void)drop(lease);
    else
        put_back(lease);
}

struct lease *lease_take_part(struct memclient *ctx, struct memclient_reservation **reservation, uint64_t *base)
{
    struct lease *lease = __atomic_exchange_n(&current, NULL, __ATOMIC_ACQ_REL);

    if (lease && (lease->ctx != ctx || lease->pid != getpid())) {
        (void)drop(lease);
        lease = NULL;
    }
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
    if (drop(lease) == 1)
        end_idle_lease();
}
