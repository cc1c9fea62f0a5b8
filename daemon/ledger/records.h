/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's whole state, as it lies in the ledger.
 *
 * What is not in these structs the broker forgets when it dies: descriptors, connections, lists and indexes are
 * made anew from them. So they have fixed sizes and fixed layouts, refer to each other by id, and hold neither
 * pointers nor descriptors. A change of layout here is a new version of the ledger (ledger.h).
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
    RECORD_KINDS
};

/* The commit word: whoever reads LIVE reads everything that was written before. */
enum record_state {
    RECORD_FREE,
    RECORD_INTENT, /* being made; dropped if the broker dies */
    RECORD_LIVE,
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
    uint64_t start_time; /* of the process */
    uint64_t created_ms;
    uint64_t lost_at; /* when its connection was lost; 0 = it has one */
    uint8_t secret[16];
    char program[64];
};

struct buffer_record {
    struct record head;
    uint64_t size;  /* as asked for */
    uint64_t bytes; /* as committed and charged */
    uint64_t plan;  /* a plan record, or 0: all on `node` */
    uint64_t session; /* of the maker; it may have ended */
    uint64_t inode;   /* 0 until there is memory */
    uint64_t reservation; /* that the home address is in, or 0: it is the buffer's own */
    uint64_t address;     /* home, or 0 */
    uint64_t created_ms;
    uint64_t detached_ms; /* 0 unless detached */
    uint64_t huge_bytes;
    uint32_t device;
    uint32_t flags; /* BUFFER_* of mem/buffer.h */
    uint32_t uid;
    uint32_t charged_uid;
    uint32_t pid;
    int32_t watch; /* -1: not watched */
    uint16_t pool;
    uint8_t node; /* the first one */
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
    uint32_t rights;
    uint32_t claims;
};

struct token_record {
    struct record head;
    uint64_t buffer;
    uint64_t session; /* of the maker; it may have ended */
    uint64_t expires_at;
    uint64_t start_time; /* of the process `pid` */
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
    uint32_t buffers;
};

static_assert(sizeof(struct record) == 16, "layout");
static_assert(sizeof(struct session_record) == 136, "layout");
static_assert(sizeof(struct buffer_record) == 128, "layout");
static_assert(sizeof(struct plan_record) == 600, "layout");
static_assert(sizeof(struct hold_record) == 40, "layout");
static_assert(sizeof(struct token_record) == 96, "layout");
static_assert(sizeof(struct name_record) == 320, "layout");
static_assert(sizeof(struct reservation_record) == 48, "layout");
