/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: one memfd that holds every record of the broker.
 *
 * It is mapped into one large reservation of addresses, so a record stays where it is however the ledger grows,
 * and it is divided into extents of 64 KiB, each of records of one kind. It grows by fallocate first: memory that
 * is not there is found out by an error there and never by a signal later. Growing is the only thing that costs
 * system calls, and it happens once in a thousand records.
 *
 * The header says all that a later broker must know to read it: magic, major version, features, the size of each
 * kind of record, the next id, the kind of each extent. Of everything else see records.h; tables of one kind are
 * in table.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/problem.h"
#include "ledger/records.h"

#define LEDGER_MAGIC       UINT64_C(0x726764656c6d656d) /* "memledgr" */
#define LEDGER_MAJOR       1
#define LEDGER_FEATURES    UINT64_C(0) /* a bit that a broker does not know means: do not touch */
#define LEDGER_EXTENT_SIZE (UINT64_C(64) << 10)
#define LEDGER_EXTENTS_MAX 32768

/* The first extent. */
struct ledger_header {
    uint64_t magic;
    uint32_t major;
    uint32_t header_size;
    uint64_t features;
    uint64_t extent_size;
    uint64_t next_id; /* the next id to be given out; below it are those that were */
    uint32_t broker_id; /* random; in every token */
    uint32_t n_extents; /* that have pages, the first one included */
    uint32_t record_sizes[RECORD_KINDS];
    uint8_t kinds[LEDGER_EXTENTS_MAX]; /* enum record_kind of each extent */
};

struct ledger;

/* 0 or a negative errno. */
int ledger_new(struct ledger **ret);
/* The tables must be gone. */
struct ledger *ledger_free(struct ledger *ledger);
DEFINE_CLEANUP(struct ledger *, ledger_free);

/* Borrowed. */
int ledger_fd(const struct ledger *ledger);
const struct ledger_header *ledger_header(const struct ledger *ledger);
uint32_t ledger_broker_id(const struct ledger *ledger);

/* Was this id ever given out? What was and is not found has ended (STALE rather than NO_SUCH_ID). */
bool ledger_id_was_given(const struct ledger *ledger, uint64_t id);
/* A fresh one. */
uint64_t ledger_take_id(struct ledger *ledger);

/* For table.c: an extent for records of this kind. 0 or NO_MEMORY. */
int ledger_take_extent(struct ledger *ledger, enum record_kind kind, uint32_t *ret_extent, struct problem *problem);
void *ledger_extent(const struct ledger *ledger, uint32_t extent);
uint32_t ledger_extent_of(const struct ledger *ledger, const void *record);
uint32_t ledger_record_size(enum record_kind kind);
