/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: one memfd that holds every record of the broker, and outlives it.
 *
 * It is mapped into one large reservation of addresses, so a record stays where it is however the ledger grows,
 * and it is divided into extents of 64 KiB, each of records of one kind. It grows by fallocate first, so that missing
 * memory is an error there and never a signal later. Only growing costs system calls, and it happens once in a thousand
 * records.
 *
 * Records are changed in *changes*: everything that is written from one ledger_commit() to the next. When a broker dies
 * in the middle of a change, the next one takes it back; so a change happens wholly or not at all, however many records
 * it is about. Before a record is overwritten, ledger_log() copies it into the journal, a part of the same memfd;
 * committing empties the journal with one store. The stores of a process that is killed are not lost, so their order is
 * enough, and no system call is needed.
 *
 * The header says all that a later broker must know to read the ledger. Its first part never changes and has a
 * checksum. records.h has the records, and table.h the tables of one kind.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/problem.h"
#include "ledger/records.h"

#define LEDGER_MAGIC UINT64_C(0x726764656c6d656d) /* "memledgr" */
#define LEDGER_MAJOR 1
/* Set in a ledger once it needs them; a bit that a broker does not know means: do not touch. */
#define LEDGER_FOREIGN        UINT64_C(1) /* of buffers some may be foreign, which are of no pool */
#define LEDGER_STOCK          UINT64_C(2) /* of buffers some may be nobody's yet: they are charged to a pool's stock */
#define LEDGER_AHEAD          UINT64_C(4) /* out of use: of buffers some may have been made ahead, and have the flag */
#define LEDGER_HOLD_CACHE     UINT64_C(8) /* of buffers some may have been in clients' caches, and have flags of that */
#define LEDGER_CLIENT_CHARGED UINT64_C(16) /* of pools and buffers some may have their pages allocated by clients */
#define LEDGER_HOME_WASTE     UINT64_C(32) /* of buffers some have a note in their flags of what their home wastes */
#define LEDGER_FEATURES \
    (LEDGER_FOREIGN | LEDGER_STOCK | LEDGER_AHEAD | LEDGER_HOLD_CACHE | LEDGER_CLIENT_CHARGED | LEDGER_HOME_WASTE)
#define LEDGER_EXTENT_SIZE (UINT64_C(64) << 10)
#define LEDGER_EXTENTS_MAX 32768
/* The journal is behind all extents; one change can be as large as this. */
#define LEDGER_JOURNAL_MAX (UINT64_C(256) << 20)

/* The session of a request that belongs to none. */
#define LEDGER_NO_SESSION UINT64_MAX

/* A request, while the loop is at it: outside of changes, so that a death does not take it back. */
struct ledger_executing {
    uint64_t session; /* 0: the loop is at none */
    uint64_t sequence;
    uint32_t method;
    uint32_t unused;
};

/* The first extent. */
struct ledger_header {
    /* never changed, but for ledger_need() */
    uint64_t magic;
    uint32_t major;
    uint32_t header_size;
    uint64_t features;
    uint64_t extent_size;
    uint32_t broker_id; /* random; in every token */
    uint32_t record_sizes[RECORD_KINDS];
    uint64_t checksum; /* of all above */

    /* homes and reservations are in it; changed only while there are none */
    uint64_t arena_base;
    uint64_t arena_size;

    /* only growing */
    uint64_t next_id;   /* the next id to be given out; below it are those that were */
    uint32_t n_extents; /* that have pages, the first one included */
    uint32_t starts;    /* brokers that it has seen */

    _Atomic uint64_t journal; /* bytes of the change in progress; 0 = none is */
    struct ledger_executing executing;
    uint8_t kinds[LEDGER_EXTENTS_MAX]; /* enum record_kind of each extent */
};

struct ledger;

/* 0 or a negative errno. */
int ledger_new(struct ledger **ret, uint64_t arena_base, uint64_t arena_size);

enum {
    _LEDGER_E_SUCCESS,
    LEDGER_E_FORMAT,  /* of another version, or with features that this program does not know */
    LEDGER_E_DAMAGED, /* no ledger, or its header is not sound */
};

/* Adopts what another broker left, and takes its last change back if that was not committed. Takes the descriptor on
 * success. 0, LEDGER_E_*, or a negative errno. */
int ledger_adopt(struct ledger **ret, int fd);

/* The tables must be gone. The memory goes with the last descriptor. */
struct ledger *ledger_free(struct ledger *ledger);
DEFINE_CLEANUP(struct ledger *, ledger_free);

/* Borrowed. */
int ledger_fd(const struct ledger *ledger);
const struct ledger_header *ledger_header(const struct ledger *ledger);
uint32_t ledger_broker_id(const struct ledger *ledger);
/* Only brokers that know this feature can read it from now on, even if the change is not committed. */
void ledger_need(struct ledger *ledger, uint64_t feature);
/* No record may have an address. */
void ledger_set_arena(struct ledger *ledger, uint64_t base, uint64_t size);

/* Was this id ever given out? An object whose id was, and that is not found, has ended (STALE, not NO_SUCH_ID). */
bool ledger_id_was_given(const struct ledger *ledger, uint64_t id);
/* A fresh id, which is not taken back with a change. */
uint64_t ledger_take_id(struct ledger *ledger);

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* Saves these bytes, to be put back if the change is not committed. Without memory for that the broker ends here, and
 * the next one takes the change back. */
void ledger_log(struct ledger *ledger, const void *at, size_t size);
/* Makes what was changed so far permanent. */
void ledger_commit(struct ledger *ledger);
/* Is there anything to commit? */
bool ledger_is_changed(const struct ledger *ledger);

/* The loop begins, and has ended, the execution of a request. */
static inline void ledger_executing_begin(struct ledger_executing *slot, uint64_t session, uint64_t sequence,
                                          uint32_t method)
{
    slot->sequence = sequence;
    slot->method = method;
    atomic_signal_fence(memory_order_release);
    *(volatile uint64_t *)&slot->session = session;
}

static inline void ledger_executing_end(struct ledger_executing *slot)
{
    *(volatile uint64_t *)&slot->session = 0;
}

struct ledger_executing *ledger_executing(struct ledger *ledger);

/* ---- for table.c ------------------------------------------------------------------------------------------------- */

/* An extent for records of this kind. 0 or NO_MEMORY. */
int ledger_take_extent(struct ledger *ledger, enum record_kind kind, uint32_t *ret_extent, struct problem *problem);
/* The first extent of this kind from `from` on; 0 = there is none. */
uint32_t ledger_next_extent(const struct ledger *ledger, enum record_kind kind, uint32_t from);
void *ledger_extent(const struct ledger *ledger, uint32_t extent);
uint32_t ledger_extent_of(const struct ledger *ledger, const void *record);
uint32_t ledger_record_size(enum record_kind kind);
