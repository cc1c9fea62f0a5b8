/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See lease.h.
 *
 * Threads share leases without a lock, which a child of fork() could find taken: a thread takes a lease of its context
 * out of the kept ones, takes a part, and puts the lease back. Meanwhile other threads use another lease or make one. A
 * lease has a reference for each part in use, and one while it is kept or in a thread's hands.
 */
#include "nbla/lease.h"

#include <stdlib.h>

#include "nbla/process.h"

#define PARTS_FIRST 8
#define PARTS_MOST  32
/* A lease is not used forever: once the session that reserved it has ended, no buffer gets its home in it. */
#define TIMES_MOST 64
#define KEPT       8 /* for as many threads or contexts at a time; with more, addresses stay unused */
#define ALIGNMENT  (UINT64_C(2) << 20)

struct lease {
    unsigned refs;     /* atomic */
    uint32_t returned; /* atomic: the parts that may be used again */
    unsigned parts;
    unsigned used;  /* the first parts, which were taken; this and the next belong to the thread that has the lease */
    unsigned times; /* how often a part was taken */
    pid_t pid;      /* of its session: a child of fork() has another one */
    struct memclient_context *ctx;
    struct memclient_reservation *reservation;
};

/* Leases with parts left. The context here is a hint; the one in the lease is right. */
static struct {
    struct lease *lease;
    struct memclient_context *ctx;
} kept[KEPT];

static void lease_drop(struct lease *lease)
{
    if (__atomic_sub_fetch(&lease->refs, 1, __ATOMIC_ACQ_REL))
        return;
    (void)memclient_reservation_release(lease->reservation);
    free(lease);
}

/* How many parts the next lease has, and how many it may have. */
static unsigned parts_next = PARTS_FIRST;
static unsigned parts_most = PARTS_MOST;

static int lease_reserve(struct lease *lease, unsigned parts)
{
    struct memclient_reserve_options options = MEMCLIENT_RESERVE_OPTIONS_INIT;

    options.alignment = ALIGNMENT;
    lease->parts = parts;
    return memclient_reserve(lease->ctx, parts * LEASE_PART, &options, &lease->reservation);
}

/* Reserves more parts than the last lease had. Where that is refused, no lease tries it again. */
static int lease_reserve_more(struct lease *lease)
{
    unsigned most = __atomic_load_n(&parts_most, __ATOMIC_RELAXED);
    unsigned next = __atomic_load_n(&parts_next, __ATOMIC_RELAXED);
    unsigned parts = next < most ? next : most;
    int r = lease_reserve(lease, parts);

    if (r && parts > PARTS_FIRST) {
        __atomic_store_n(&parts_most, PARTS_FIRST, __ATOMIC_RELAXED);
        return lease_reserve(lease, PARTS_FIRST);
    }
    if (!r)
        __atomic_store_n(&parts_next, 2 * parts < PARTS_MOST ? 2 * parts : PARTS_MOST, __ATOMIC_RELAXED);
    return r;
}

static struct lease *lease_new(struct memclient_context *ctx)
{
    struct lease *lease = malloc(sizeof(*lease));

    if (!lease)
        return NULL;
    *lease = (struct lease){.refs = 1, .pid = process_id(), .ctx = ctx};
    if (lease_reserve_more(lease)) {
        free(lease);
        return NULL;
    }
    process_register();
    return lease;
}

static bool lease_keep(struct lease *lease)
{
    struct memclient_context *ctx = lease->ctx; /* once it is kept, another thread may end it */

    for (unsigned i = 0; i < KEPT; i++) {
        struct lease *none = NULL;

        if (__atomic_compare_exchange_n(&kept[i].lease, &none, lease, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&kept[i].ctx, ctx, __ATOMIC_RELAXED);
            return true;
        }
    }
    return false;
}

static bool lease_has_parts(const struct lease *lease)
{
    return lease->times < TIMES_MOST &&
           (lease->used < lease->parts || __atomic_load_n(&lease->returned, __ATOMIC_RELAXED));
}

static void lease_put_back(struct lease *lease)
{
    if (!lease_has_parts(lease) || !lease_keep(lease))
        lease_drop(lease);
}

static struct lease *lease_take_at(unsigned i)
{
    return __atomic_exchange_n(&kept[i].lease, NULL, __ATOMIC_ACQ_REL);
}

static struct lease *lease_take_kept(struct memclient_context *ctx)
{
    for (unsigned i = 0; i < KEPT; i++) {
        struct lease *lease = __atomic_load_n(&kept[i].ctx, __ATOMIC_RELAXED) == ctx ? lease_take_at(i) : NULL;

        if (lease && lease->ctx == ctx && lease->pid == process_id())
            return lease;
        if (lease)
            lease_drop(lease);
    }
    return NULL;
}

/* Was its context closed, so that its addresses are no longer reserved? */
static bool lease_is_closed(const struct lease *lease)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    return memclient_address_query(memclient_reservation_address(lease->reservation), &info) ||
           info.reservation != lease->reservation;
}

/* Drops leases of closed contexts, to make room for others. */
static void lease_drop_closed(void)
{
    for (unsigned i = 0; i < KEPT; i++) {
        struct lease *lease = lease_take_at(i);

        if (lease && !lease_is_closed(lease))
            lease_put_back(lease);
        else if (lease)
            lease_drop(lease);
    }
}

/* Prefers a part that was used, which is warm in the processor's caches. */
static unsigned lease_use_part(struct lease *lease)
{
    uint32_t returned = __atomic_load_n(&lease->returned, __ATOMIC_ACQUIRE);
    unsigned part;

    lease->times++;
    if (!returned)
        return lease->used++;
    part = (unsigned)__builtin_ctz(returned);
    __atomic_fetch_and(&lease->returned, ~(UINT32_C(1) << part), __ATOMIC_ACQ_REL);
    return part;
}

struct lease *lease_take_part(struct memclient_context *ctx, struct memclient_reservation **reservation, uint64_t *base)
{
    struct lease *lease = lease_take_kept(ctx);

    if (!lease) {
        lease_drop_closed();
        lease = lease_new(ctx);
    }
    if (!lease)
        return NULL;
    *reservation = lease->reservation;
    *base = (uintptr_t)memclient_reservation_address(lease->reservation) + lease_use_part(lease) * LEASE_PART;
    __atomic_fetch_add(&lease->refs, 1, __ATOMIC_RELAXED);
    lease_put_back(lease);
    return lease;
}

void lease_end_part(struct lease *lease, uint64_t base, bool again)
{
    uint64_t part = (base - (uintptr_t)memclient_reservation_address(lease->reservation)) / LEASE_PART;

    if (again)
        __atomic_fetch_or(&lease->returned, UINT32_C(1) << part, __ATOMIC_ACQ_REL);
    lease_drop(lease);
}

void lease_release_all(void)
{
    for (unsigned i = 0; i < KEPT; i++) {
        struct lease *lease = lease_take_at(i);

        if (lease)
            lease_drop(lease);
    }
}
