/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's operations, on plain structs: rpc/ calls them, and broker/op_*.c has them.
 *
 * rpc/ has decoded and validated the request already: enums, counts, string contents, bit masks and batch sizes are in
 * range. What only the broker can know (does the id exist, may this session do that, is there room) is decided here.
 * Nothing in this header knows protobuf, sockets or libevent.
 *
 * An operation is a `struct op` embedded at the head of the caller's request object, with arguments and result next to
 * it, all of which stay where they are until the operation has ended. It returns
 *     0            done; the result is filled in
 *     > 0          refused: a status of proto/status.h, and a sentence in op->problem; the result is untouched
 *     OP_PENDING   the work goes on elsewhere (a worker, or a queue for room); op->done is called once, later,
 *                  from the loop, with 0 or a status; never from inside the operation itself
 *     OP_SETTLING  as OP_PENDING, but it is done, and the result filled in: its reply is recorded now, with the same
 *                  change, and sent at op->done(), when what follows from it is done, too
 *     < 0          a negative errno that is fatal for the broker
 * The client may vanish meanwhile: a pending op still ends by its done(), and before that gives back what it has
 * acquired for a session that has ended. A pending op that is cancelled by op_cancel() ends soon, with TIMED_OUT.
 *
 * rpc/ brackets each request of a session, so that a repeat of it is recognised: op_begin() before it, and
 * reply_store() with its reply, in the same change as its effects.
 *
 * Where the items of a batch succeed or fail one by one, the operation returns 0 and op->problem tells about the first
 * item that failed, with its number; its sentence is empty if none did.
 *
 * A result has no descriptors to go with the reply: it says that there are to be some, and rpc/ has them opened by
 * op_open_fds() when the reply leaves. Descriptors in arguments stay the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/problem.h"
#include "base/range.h"
#include "mem/handle.h"
#include "mem/pool.h"
#include "proto/fdset.h"
#include "proto/limits.h"
#include "proto/rows.h"
#include "proto/status.h"

struct broker;
struct buffer_info;
struct peer; /* sys/peer.h: the client as the kernel identifies it; owns the pidfd */

enum { OP_PENDING = 0x10000, OP_SETTLING = 0x20000 };

struct op {
    struct broker *broker;
    uint64_t session;  /* 0 before HELLO; set by op_hello */
    uint64_t sequence; /* if its reply is to be kept, else 0 */
    bool replay;       /* a broker died over it, and may have done some of it or all */
    bool unasked;      /* nobody waits for its reply: it was found in a release log, and others come behind it */
    struct problem problem;
    uint64_t buffer; /* what it was about, where it was asked for by something else than its id; else 0 */
    void (*done)(struct op *op, int status);
    struct op_state *state; /* the broker's own, while pending */
};

/* The client does not want the answer any more. */
void op_cancel(struct op *op);

/* ---- the history ------------------------------------------------------------------------------------------------- */

/* Of a request, or of items of a batch. */
struct op_refusal {
    uint64_t session; /* 0 before HELLO */
    uid_t uid;
    pid_t pid;
    uint16_t method;
    uint32_t status;
    const char *sentence; /* printable */
    const struct shortage *shortage;
};

/* Enters it into the history. */
void op_refused(struct broker *broker, const struct op_refusal *refusal);
/* Counts one, be it worth an entry or not. */
void op_refusal_counted(struct broker *broker, uint32_t status);
/* Counts a reply of this method, so long after its request was received. */
void op_replied(struct broker *broker, uint16_t method, uint64_t ns);

/* A request that was done, and that others will want to know of. */
struct op_note {
    uint16_t method;
    uint64_t buffer;  /* that it was about, or 0 */
    const char *name; /* that it bound or unbound, as the client wrote it, or NULL */
};

/* Enters it into the history. */
void op_noted(struct broker *broker, uint64_t session, const struct op_note *note);

/* ---- exactly once ------------------------------------------------------------------------------------------------ */

/* A request of a session, by its header. */
struct op_request {
    uint64_t session;
    uint64_t sequence;
    uint16_t method;
    bool recorded; /* its reply is to be kept */
};

/* What to do with it, besides 0 (execute it) and a status (refuse it). */
enum {
    OP_REPLAY = OP_PENDING + 1, /* execute it, with op->replay */
    OP_RUNNING,                 /* it is being executed: that op is still pending */
    OP_ANSWERED,                /* it was executed: answer with reply_load() */
    OP_FORGOTTEN,               /* the client had acknowledged the reply: a breach of the protocol */
};

struct op_reply {
    uint32_t status;
    uint32_t size;  /* of the message, in bytes */
    unsigned n_fds; /* descriptors that went with it */
};

/*
 * No reply up to `acknowledged` is needed again, nor that to `answered` (0: no other). False: no reply is kept for this
 * session now, so that there is nothing to acknowledge until its next recorded request.
 */
bool op_acknowledge(struct broker *broker, uint64_t session, uint64_t acknowledged, uint64_t answered);

/* Before a request is executed, and after op_acknowledge(): 0, one of the above, or a status with its sentence.
 * OP_RUNNING sets *ret_running. A request that is not recorded is executed or refused. */
int op_begin(struct broker *broker, const struct op_request *request, struct op **ret_running, struct problem *problem);

/* Keeps the reply and its message. Does nothing for a request without a record. */
void reply_store(struct broker *broker, uint64_t session, uint64_t sequence, const struct op_reply *reply,
                 const void *message);

/* After OP_ANSWERED. `message` has room for MEMORYD_PAYLOAD_MAX bytes. */
void reply_load(struct broker *broker, uint64_t session, uint64_t sequence, struct op_reply *ret, void *message);

/* The loop executes this request from now on (session 0: one before HELLO), or none. If the broker dies now, the next
 * one suspects it. */
void op_executing(struct broker *broker, uint64_t session, uint64_t sequence, uint16_t method);
void op_executed(struct broker *broker);

/* ---- session ----------------------------------------------------------------------------------------------------- */

struct hello_args {
    struct peer *peer; /* on success the session steals its pidfd */
    void *connection;  /* the host's own; passed to its callbacks */
    uint64_t resume;   /* session to resume, or 0 */
    uint8_t secret[16];
    char program[64];
    bool release_log;    /* it wants one */
    bool administrator;  /* it may have one of the sessions that are kept for administrators */
    unsigned n_occupied; /* addresses that the process of a new session has of other brokers */
    uint32_t occupied_by[MEMORYD_OCCUPIED_MAX];
    struct range occupied[MEMORYD_OCCUPIED_MAX];
};

struct hello_result {
    uint64_t session;
    uint8_t secret[16];
    uint32_t broker_id;
    uint64_t arena_base;
    uint64_t arena_size;
    uint64_t base_page;
    uid_t broker_uid;
    bool simulated;
    bool release_log; /* there is one for the client */
    uint32_t n_nodes; /* those with memory */
};

int op_hello(struct op *op, const struct hello_args *args, struct hello_result *result);
int op_goodbye(struct op *op);
int op_subscribe(struct op *op, uint32_t mask);
/* To one buffer or, unless it is "", to one name; mask 0 = no more. */
int op_subscribe_to(struct op *op, uint32_t mask, uint64_t buffer, const char *name);

/* ---- several buffers --------------------------------------------------------------------------------------------- */

/* A row for each buffer, as in the message Buffers. */
struct opened_item {
    int status;
    uint32_t rights;
    uint32_t flags;
    uint64_t id;
    uint64_t size;
    uint64_t bytes;
    uint64_t granule;
    uint64_t address;
    uint8_t token[MEMORYD_TOKEN_SIZE]; /* of an allocation that asked for one, else zero */
};

struct opened {
    uint32_t n;
    struct opened_item items[MEMORYD_BATCH_MAX];
    bool with_fds;    /* a descriptor for each item that is OK, with the access of its rights */
    struct fdset fds; /* of the first of them, opened beforehand */
};

struct name_args {
    char name[MEMORYD_NAME_MAX + 1]; /* empty = none */
    uint64_t buffer;
    uint32_t policy; /* NamePolicy */
    uint64_t keep_ms;
    uint32_t group_rights;
    gid_t gid;
    uint32_t other_rights;
};

struct alloc_spec {
    struct memory_spec memory;
    uint32_t n;
    uint64_t sizes[MEMORYD_BATCH_MAX];
    uint64_t wait_ms;
    struct name_args name;
};

int op_alloc(struct op *op, const struct alloc_spec *spec, struct opened *result);

struct ids {
    uint32_t n;
    uint64_t id[MEMORYD_BATCH_MAX];
};

struct statuses {
    uint32_t n;
    int status[MEMORYD_BATCH_MAX];
};

struct export_args {
    struct ids buffers;
    uint32_t rights[MEMORYD_BATCH_MAX];
};

int op_release(struct op *op, const struct ids *buffers, struct statuses *result);
/* May descriptors of these leave? Each whose status is 0 is ready for op_open_fds(). */
int op_export(struct op *op, const struct export_args *args, struct statuses *result);

/* By n descriptors that a door has seen. */
int op_import(struct op *op, const struct handle_shown *shown, uint32_t n, struct opened *result);

/* The descriptor stays the caller's. */
int op_adopt(struct op *op, int fd, struct opened *result);

/* The descriptors that go with one reply. */
struct fd_item {
    uint64_t buffer;
    uint32_t rights; /* READ, and perhaps WRITE; others mean nothing here */
};

struct fd_list {
    uint64_t session;
    uint32_t n;
    bool release_log; /* the session's own, and nothing else: n is 1 */
    bool door;        /* a socket to it, likewise; the broker does not open it */
    struct fd_item items[MEMORYD_BATCH_MAX];
};

static inline void fd_list_init(struct fd_list *list, uint64_t session)
{
    list->session = session;
    list->n = 0;
    list->release_log = list->door = false;
}

static inline void fd_list_add(struct fd_list *list, uint64_t buffer, uint32_t rights)
{
    list->items[list->n++] = (struct fd_item){.buffer = buffer, .rights = rights};
}

/*
 * Opens them: a descriptor in `fds`, which is empty at first, for each whose status is 0 then. The others have gone
 * since the operation that promised them: a buffer was released or destroyed, or its session has ended. What was
 * published meanwhile is opened for reading. `opened` is NULL, or has the first of them already, which are taken.
 *
 * Nothing that is recorded changes, so that the caller need not commit anything, and may be anywhere: in another
 * operation, too. 0; or OP_PENDING: a slice of them is open, and the same call goes on with the others; or
 * NO_DESCRIPTORS, NO_MEMORY or NOT_SUPPORTED: the kernel did not open one that the session still
 * has; none is open then, and all may be later.
 */
int op_open_fds(struct op *op, const struct fd_list *list, struct fdset *opened, struct statuses *result,
                struct fdset *fds);

struct open_args {
    uint32_t n;
    uint8_t tokens[MEMORYD_BATCH_MAX][MEMORYD_TOKEN_SIZE];
    uint32_t rights; /* 0 = all that the token grants */
    bool want_fds;
    bool foreign; /* they may be of foreign buffers */
};

int op_open(struct op *op, const struct open_args *args, struct opened *result);

struct lookup_args {
    char name[MEMORYD_NAME_MAX + 16]; /* may begin with "uid:N/"; empty = by id */
    uint64_t id;
    uint32_t rights;
    uint32_t claim; /* Claim */
    bool want_fd;
    bool foreign;
};

int op_lookup(struct op *op, const struct lookup_args *args, struct opened *result);

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

struct share_args {
    struct ids buffers;
    uint32_t rights;
    uint32_t flags; /* ShareRequest.Flag */
    uint32_t uses;
    uint64_t expiry_ms;
    uid_t uid;
    gid_t gid;
    pid_t pid;
};

struct share_result {
    uint32_t n;
    int status[MEMORYD_BATCH_MAX];
    uint8_t tokens[MEMORYD_BATCH_MAX][MEMORYD_TOKEN_SIZE];
};

struct revoke_args {
    bool by_token;
    uint8_t token[MEMORYD_TOKEN_SIZE];
    uint64_t serial;
    uint64_t buffer;
};

int op_share(struct op *op, const struct share_args *args, struct share_result *result);
int op_revoke(struct op *op, const struct revoke_args *args, uint32_t *revoked);

int op_name_bind(struct op *op, const struct name_args *args);
int op_name_unbind(struct op *op, const char *name);

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

int op_publish(struct op *op, uint64_t buffer, bool future_only);
int op_discard(struct op *op, uint64_t buffer, uint64_t offset, uint64_t length);
int op_move(struct op *op, uint64_t buffer, uint32_t node);
int op_destroy(struct op *op, uint64_t buffer, bool force);

int op_info(struct op *op, uint64_t buffer, struct buffer_info *result);

/* ---- addresses --------------------------------------------------------------------------------------------------- */

int op_reserve(struct op *op, uint64_t size, uint64_t alignment, uint64_t address, uint64_t *ret_id,
               uint64_t *ret_address);
int op_unreserve(struct op *op, uint64_t reservation);
int op_place(struct op *op, uint64_t buffer, uint64_t reservation, uint64_t offset);

/* ---- listings ---------------------------------------------------------------------------------------------------- */

/* The fields of proto/rows.h as plain structs: struct node_info, struct pool_info and so on. */
#define ROW_MEMBER(form, ...)                      ROW_MEMBER_##form(__VA_ARGS__)
#define ROW_MEMBER_NUMBER(name, type)              type name;
#define ROW_MEMBER_RENAMED(name, type, public)     type name;
#define ROW_MEMBER_TEXT(name, size)                char name[size];
#define ROW_MEMBER_COUNT(name)                     uint32_t name;
#define ROW_MEMBER_NUMBERS(name, type, max, count) type name[max];

#define X(NAME, name, row, Row, Reply) \
    struct row##_info {                \
        MEMORYD_ROW_##row(ROW_MEMBER)  \
    };
MEMORYD_LISTINGS(X)
#undef X

/* A row of whichever listing was asked for: `node` is a struct node_info. */
union list_row {
#define X(NAME, name, row, Row, Reply) struct row##_info row;
    MEMORYD_LISTINGS(X)
#undef X
};

/*
 * A listing calls `item` for each thing that the caller may see, from the cursor on, until item() returns false (the
 * packet is full, and that item comes again next time) or a bounded number of records has been looked at. *ret_next is
 * the cursor to continue with, 0 at the end.
 */
struct list_args {
    uint64_t cursor;
    uint64_t buffer; /* 0 = everything */
    bool of_user;    /* of LIST_LIMITS: only of `uid`. NO_RIGHT */
    uid_t uid;
    void *userdata;
};

int op_list(struct op *op, enum list_kind kind, const struct list_args *args, uint64_t *ret_next,
            bool (*item)(void *userdata, const union list_row *row));

/* As SelectRequest.Order. */
enum select_order { SELECT_BYTES, SELECT_HOLDS, SELECT_OLDEST, SELECT_NEWEST };

/* Which buffers, and in which order. */
struct select_args {
    enum select_order order;
    uint32_t most; /* at most MEMORYD_SELECT_MAX; 0 = only the sums */
    bool only_uid; /* who pays is `uid` */
    bool only_detached;
    uid_t uid;
    uint32_t pid;     /* of the maker; 0 = any */
    uint64_t session; /* that holds it; 0 = any */
    char pool[MEMORYD_POOL_NAME_MAX + 1];
    uint64_t after; /* the last one of the page before, and its number in the order; 0 = from the first on */
    uint64_t after_number;
};

struct select_sums {
    uint64_t buffers;
    uint64_t bytes;
    uint64_t huge_bytes;
    uint64_t detached;
    uint64_t detached_bytes;
    uint64_t holds;
};

struct select_result {
    uint32_t n;
    bool more;
    uint64_t ids[MEMORYD_SELECT_MAX];
    struct select_sums sums; /* over all that were asked for */
};

int op_select_buffers(struct op *op, const struct select_args *args, struct select_result *result);
/* What there is to know of one of them now; if a session was asked for, its hold is among those that are told. False:
 * it has ended, or is not this session's to see any more. */
bool op_selected(struct op *op, uint64_t id, uint64_t holder, struct buffer_info *result);

/* What the pools have together. */
struct pools_sums {
    uint64_t pools;
    uint64_t capacity; /* what several of them share counts once */
    uint64_t used;
};

/* The broker's part of StatusReply. rpc/ and app/ know the rest (program version, pid, requests served). */
struct status_info {
    uint32_t broker_id;
    uid_t broker_uid;
    uint64_t uptime_ms;
    uint64_t sessions;
    uint64_t buffers;
    uint64_t buffers_detached;
    uint64_t buffers_ending;
    uint64_t bytes;
    uint64_t names;
    uint64_t tokens;
    uint64_t reservations;
    uint64_t fds;
    uint64_t fds_limit;
    bool simulated;
    uint32_t restarts;
    uint64_t quarantined;
    uint64_t arena_base;
    uint64_t arena_size;
    struct pools_sums held;
};

int op_status(struct op *op, struct status_info *result);

struct check_result {
    uint64_t buffers;
    uint64_t records;
    uint32_t faults;
    uint32_t n_sentences;
    char sentences[16][160];
};

int op_check(struct op *op, struct check_result *result);

/* The result of reloading the configuration: a line for each key and each mistake, as long as there is room. */
#define RELOAD_LINES_MAX 48

enum reload_what {
    RELOAD_APPLIED, /* a key whose new value is in force */
    RELOAD_RESTART, /* a key whose new value takes a restart */
    RELOAD_MISTAKE, /* with file and line: nothing has changed */
    RELOAD_WHATS
};

struct reload_line {
    enum reload_what what;
    char text[PROBLEM_SENTENCE_MAX];
};

struct reload_result {
    char path[PROBLEM_SENTENCE_MAX]; /* of the file whose configuration is in force; "" if there is none */
    unsigned n_of[RELOAD_WHATS];     /* all of them */
    unsigned n_lines;
    struct reload_line lines[RELOAD_LINES_MAX];
};

int op_reload(struct op *op, struct reload_result *result);

/* Asks the keeper for an upgrade. Ends when the keeper knows whether that is possible; then this broker is stopped. */
int op_upgrade(struct op *op);
