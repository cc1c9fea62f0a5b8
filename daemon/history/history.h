/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history: what was refused, what was waited for, which sessions ended and why, each with the numbers of that
 * moment, for those who ask afterwards.
 *
 * It is a fixed number of records in a memfd of its own, which the keeper holds as it holds the ledger, so that the
 * next broker goes on with it. It is no part of the ledger: nothing depends on it, so it needs no journal, and a
 * program that knows another layout begins a new one. A record counts once its serial is stored, which is done last.
 *
 * What happens again is counted in the record of the time before, if that is among the latest of its user. Users share
 * the records: while any is free, everybody may take it. Afterwards a user who has its share, the same for each, loses
 * its own oldest record for a new one; for a user who has less, the one who has most loses its oldest. So nobody can
 * wash out what is known of others.
 *
 * Everything is for the loop's thread. Adding allocates nothing, except for the first record of a user.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/problem.h"
#include "proto/limits.h"

#define HISTORY_RECORDS 2048
/* No index of a record. */
#define HISTORY_NONE UINT32_MAX

/* The numbers of HistoryEntry.Kind. */
enum history_kind {
    HISTORY_REFUSED = 1, /* a request, or items of a batch */
    HISTORY_WAITED = 2,  /* a request got its memory after waiting */
    HISTORY_ENDED = 3,   /* a session */
    HISTORY_STARTED = 4, /* a broker took over from another one */
    HISTORY_DONE = 5,    /* a request that changed what others may see */
    HISTORY_KINDS
};

/* How a session ended: the numbers of HistoryEntry.End. */
enum history_end {
    HISTORY_END_NONE = 0,
    HISTORY_END_GOODBYE = 1, /* it said so */
    HISTORY_END_DIED = 2,    /* its process; its parent has not yet asked how */
    HISTORY_END_EXITED = 3,  /* its process, with exit status `status` */
    HISTORY_END_SIGNAL = 4,  /* its process, by signal `status` */
    HISTORY_END_UNKNOWN = 5, /* its process; nobody knows how */
    HISTORY_END_SILENT = 6,  /* its connection was lost, and nothing of it was in use any more */
    HISTORY_END_OOM = 7,     /* its process, by signal `status`, SIGKILL, probably of the OOM killer */
};

struct history_record {
    _Atomic uint64_t serial; /* 0: free, or being written; a repeat gets a new one */
    uint64_t first_ms;       /* wall clock */
    uint64_t last_ms;
    uint64_t session; /* 0: it had none yet */
    uint64_t wanted;  /* what there was too little of: see struct shortage */
    uint64_t used;
    uint64_t limit;
    uint64_t mine; /* what the user itself had of that, … */
    uint64_t most; /* … and the user who had most of it, `most_uid` */
    uint64_t waited_ms;
    uint64_t began_ms; /* of a session that ended: when it began, … */
    uint64_t bytes;    /* … and what it paid for */
    uint64_t buffer;   /* that it was about; 0: none, or it is not known */
    uint32_t kind;
    uint32_t uid;
    uint32_t pid;
    uint32_t count;
    uint32_t method; /* 0: none */
    uint32_t status; /* of proto/status.h; of END_EXITED, END_SIGNAL and END_OOM what the comments there say */
    uint32_t most_uid;
    uint32_t end;
    uint32_t holds; /* of a session that ended */
    uint32_t unused;
    char resource[24];
    char pool[MEMORYD_POOL_NAME_MAX + 1];
    char program[MEMORYD_PROGRAM_MAX + 1];
    char sentence[PROBLEM_SENTENCE_MAX]; /* of what was done: the name that was bound or unbound */
};

struct history;

/* 0 or a negative errno. */
int history_new(struct history **ret);

enum {
    _HISTORY_E_SUCCESS,
    HISTORY_E_FORMAT, /* it is damaged, or of another version */
};

/* Goes on with another broker's. Takes the descriptor on success. 0, HISTORY_E_FORMAT, or a negative errno. */
int history_adopt(struct history **ret, int fd);
struct history *history_free(struct history *history);
DEFINE_CLEANUP(struct history *, history_free);

/* Borrowed. */
int history_fd(const struct history *history);

/* Enters what has happened now; serial, times and count are not looked at. The index of its record, or HISTORY_NONE:
 * there is no memory for a user's first one. */
uint32_t history_add(struct history *history, const struct history_record *entry);

/* The end of this session is in this record, if it is still there; NULL: not any more. */
const struct history_record *history_ended(const struct history *history, uint32_t index, uint64_t session);
/* More is known of it: it becomes the latest. */
void history_set_end(struct history *history, uint32_t index, enum history_end end, uint32_t status);
/* The records of sessions that died and of which nobody knows how: the first one from `index` on, or HISTORY_NONE. */
uint32_t history_next_open(const struct history *history, uint32_t index, const struct history_record **ret);

/* The one with the lowest serial from *cursor on, which moves behind it. NULL: there is none, and *cursor is 0; or the
 * budget of records to look at is used up. */
const struct history_record *history_next(const struct history *history, uint64_t *cursor, unsigned *budget);
