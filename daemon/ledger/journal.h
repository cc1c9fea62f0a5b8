/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: old images of what the change in progress has written over, one behind the other.
 *
 *      offset into the ledger   8
 *      size                     8
 *      old image                size, and up to the next multiple of 8
 *      size again               8     so that it can be read from its end
 *
 * A word of the ledger's header says how many bytes of it count. It is raised when an entry is complete and before its
 * record is written, so every entry that it counts is complete.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct journal {
    int fd;               /* of the ledger, borrowed */
    char *ledger;         /* where that begins */
    uint64_t ledger_size; /* what may be logged of it */
    uint64_t offset;      /* of the journal in the file, and behind `ledger` */
    uint64_t capacity;    /* bytes that have memory */
    _Atomic uint64_t *used;
};

/* Memory for the first changes. 0 or a negative errno. */
int journal_init(struct journal *journal);

/* 0, or a negative errno: then nothing is logged. */
int journal_log(struct journal *journal, const void *at, size_t size);

/* Puts all old images back, the last one first. False: an entry makes no sense, and those before it stay. */
bool journal_take_back(struct journal *journal);
