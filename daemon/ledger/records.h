/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's whole state, as it lies in the ledger.
 *
 * The broker forgets what is not in these structs when it dies: connections, lists and indexes are made anew from them,
 * and descriptors come back from the keeper by the records' ids. So they have fixed sizes and fixed layouts, refer to
 * each other by id, and hold neither pointers nor descriptors. A change of layout is a new version of the ledger
 * (ledger.h).
 *
 * Times are milliseconds of the wall clock where a name ends in _ms, deadlines of base/clock.h where it ends in
 * _at. Numbers that also travel on the wire are those of memoryd.proto.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum record_kind {
    RECORD_NONE, /* an extent that no table has yet */
    RECORD_SESSION,
    RECORD_BUFFER,
    RECORD_PLAN,
    RECORD_HOLD,
    RECORD_TOKEN,
    RECORD_NAME,
    RECORD_RESERVATION,
    RECORD_POOL,
    RECORD_KEPT,
    RECORD_KEPT_MORE,
    RECORD_ENDED_TOKEN,
    RECORD_KINDS
};

/* The commit word: a reader that sees LIVE sees everything that was written before. */
enum record_state {
    RECORD_FREE,
    RECORD_INTENT, /* being made; dropped if the broker dies */
    RECORD_LIVE,
    RECORD_QUARANTINED, /* found damaged by a later broker: left as it is, and used by nobody */
};

struct record {
    _Atomic uint32_t state;
    uint32_t kind;
    uint64_t id; /* never used again, not even by another kind */
};

struct session_record {
    struct record head;
    uint32_t uid;
    uint32_t gid;
    uint32_t pid;
    uint32_t subscribed; /* EventKind bits */
    uint64_t identity;   /* of the process */
    uint64_t created_ms;
    /* when its connection was lost, or when it began, until its client knows of it; 0 = it has a connection, or lost it
     * with a broker */
    uint64_t lost_at;
    uint64_t acknowledged; /* no reply up to this sequence is needed again */
    uint32_t ended;        /* being taken apart */
    uint32_t unused;
    uint8_t secret[16];
    char program[64];
};

struct buffer_record {
    struct record head;
    uint64_t charged_session; /* whose account pays, as a part of its user's; 0 or ended = the user's alone */
    uint64_t size;            /* as asked for */
    uint64_t bytes;           /* as committed and charged */
    uint64_t plan;            /* a plan record, or 0: all on `node` */
    uint64_t inode;           /* 0 until there is memory */
    uint64_t reservation;     /* that the home address is in, or 0: it is the buffer's own */
    uint64_t address;         /* home, or 0 */
    uint64_t created_ms;
    uint64_t detached_ms; /* since when only others may have it, who must find its pages as they were; else 0 */
    uint64_t huge_bytes;
    uint32_t device;
    uint32_t flags; /* BUFFER_* of mem/buffer.h */
    uint32_t uid;
    uint32_t charged_uid; /* -1: nobody's, it is of the stock */
    uint32_t pid;
    int32_t watch; /* -1: not watched */
    uint16_t pool; /* number of a pool record */
    uint8_t node;  /* the first one */
    uint8_t n_nodes;
    uint8_t placement;
    uint8_t state; /* enum buffer_state */
    uint8_t pages;
    uint8_t granule_shift;
};

/* Of buffers on several nodes: the tables that placement.h wants beside the buffer's own fields. */
struct plan_record {
    struct record head;
    uint64_t part_size;
    uint64_t bytes[64];
    uint8_t node[64];
};

struct hold_record {
    struct record head;
    uint64_t session;
    uint64_t buffer;
    uint16_t rights;
    uint16_t kind; /* 0, or that of an exclusive or a shared claim */
    uint32_t refs;
};

struct token_record {
    struct record head;
    uint64_t buffer;
    uint64_t session; /* of the maker; it may have ended */
    uint64_t expires_at;
    uint64_t identity; /* of the process `pid` */
    uint8_t secret[16];
    uint32_t rights;
    uint32_t flags; /* ShareRequest.Flag */
    uint32_t uses;  /* as asked for; 0 = any number of times */
    uint32_t uses_left;
    uint32_t uid;
    uint32_t gid;
    uint32_t pid;
    uint32_t maker_uid;
};

struct name_record {
    struct record head;
    uint64_t buffer;
    uint64_t session; /* of the binder; 0 once it has ended */
    uint64_t keep_ms;
    uint64_t ends_at; /* with NAME_KEEP_FOR, once its binder has ended */
    uint32_t uid;
    uint32_t gid;
    uint32_t group_rights;
    uint32_t other_rights;
    uint32_t policy; /* NamePolicy */
    uint32_t length;
    char path[256]; /* with a NUL at its end */
};

struct reservation_record {
    struct record head;
    uint64_t session; /* 0: only the buffers placed in it keep it */
    uint64_t address;
    uint64_t size;
    uint32_t uid;
    union {
        uint32_t use;
        struct {
            uint32_t buffers : 25; /* placed in it */
            uint32_t waste : 6;    /* waste_note() of what it wasted of the arena when it was taken */
            uint32_t occupied : 1; /* by what another broker gave the session's process; none is */
        };
    };
};

/* Buffers refer to their pool by number, and configurations change. */
struct pool_record {
    struct record head;
    uint64_t page_size;
    uint64_t granule;
    uint64_t part_size;
    uint32_t number;
    uint32_t n_nodes;
    uint8_t pages;
    uint8_t placement;
    uint8_t committer; /* before LEDGER_CLIENT_CHARGED: is it lazy? */
    uint8_t unused[5];
    char name[64];
    uint8_t node[64];
};

/* The reply to a request of a session, by its sequence, for repeats of the request. INTENT while it is at work. */
struct kept_record {
    struct record head;
    uint64_t session;
    uint64_t sequence;
    uint64_t more; /* a kept_more record with the rest of the reply, or 0 */
    uint32_t status;
    uint32_t size; /* of the reply's message */
    uint16_t method;
    uint8_t n_fds;      /* that went with it */
    uint8_t deaths;     /* of brokers that were at work on it, and on no other user's */
    uint8_t working;    /* on its memory, and not only waiting for room */
    uint8_t suspicions; /* deaths of brokers that were at work on other users' requests, too */
    uint8_t unused[2];
    uint8_t bytes[64];
};

struct kept_more_record {
    struct record head;
    uint64_t next; /* as kept_record.more */
    uint8_t bytes[488];
};

/* A token that ended for a reason that its bearer is told. */
struct ended_token_record {
    struct record head;
    uint64_t serial;
    uint32_t status;
    uint32_t unused;
    uint8_t secret[16];
};

static_assert(sizeof(struct record) == 16, "layout");
static_assert(sizeof(struct session_record) == 152, "layout");
static_assert(sizeof(struct buffer_record) == 128, "layout");
static_assert(sizeof(struct plan_record) == 600, "layout");
static_assert(sizeof(struct hold_record) == 40, "layout");
static_assert(sizeof(struct token_record) == 96, "layout");
static_assert(sizeof(struct name_record) == 328, "layout");
static_assert(sizeof(struct reservation_record) == 48, "layout");
static_assert(sizeof(struct pool_record) == 184, "layout");
static_assert(sizeof(struct kept_record) == 120, "layout");
static_assert(sizeof(struct kept_more_record) == 512, "layout");
static_assert(sizeof(struct ended_token_record) == 48, "layout");
