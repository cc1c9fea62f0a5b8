/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request while it is served.
 *
 * It embeds the operation's `struct op`, and the operation's arguments and result, which stay where they are until the
 * operation has ended. An operation may take long (a worker commits memory), and its client may be gone by then: the
 * request then ends without a reply, or with one that is kept for a repeat, and what its result holds is released.
 *
 * A method needs a serve function, which turns the message into arguments and calls the operation, and an answer
 * function, which turns the result into the reply; methods that reply with the same message share that one. All else is
 * done once, in dispatch.c, request.c and reply.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/list.h"
#include "base/problem.h"
#include "broker/operations.h"
#include "proto/fdset.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/schema.h"
#include "rpc/rpc.h"

/* What is asked, and who waits for the answer. */
struct call {
    struct rpc *rpc;
    struct rpc_client *client; /* NULL: it has gone */
    uint64_t session;
    uint64_t sequence;
    uint64_t acknowledged;
    uint64_t began; /* when it was received */
    uint16_t method;
    bool kept;         /* the reply is kept for a repeat */
    bool recorded;     /* … and that was done before it is sent */
    bool replay;       /* as op->replay */
    bool noted;        /* the history gets it when it is done: it changes what others may see */
    uint64_t buffer;   /* … that it is about; 0: none, or the operation finds it (op->buffer) */
    const char *name;  /* … that it binds or unbinds, in its arguments, or NULL */
    struct fdset *fds; /* that came with it; only while it is being served */
};

/*
 * Rows of a page, of those that the protocol allows. A page is served at a stretch, and whoever comes meanwhile waits
 * for it. So it takes as long as a few small requests; who wants all asks more often, for little more altogether.
 */
#define LISTING_ROWS 16

/* A page of a listing. */
struct listing {
    enum list_kind kind;
    union {
        ProtobufCMessage base;
#define X(NAME, name, row, Row, Reply) Memoryd__V1__##Reply name;
        MEMORYD_LISTINGS(X)
#undef X
    } reply;
    struct schema_page page; /* of the reply */
    Memoryd__V1__BufferSums sums;
    size_t used;
    uint32_t most;
    struct select_result *selected; /* of SELECT_BUFFERS: its rows are made in answering; or NULL */
    uint64_t holder;                /* … the session whose buffers were asked for, or 0 */
    ProtobufCMessage *rows[LISTING_ROWS];
};

struct request {
    struct op op; /* what the broker gives to done() */
    struct call call;
    struct list link; /* in its client's list, while it is pending */
    /* releases what the result holds, and wipes secrets; NULL: there is nothing */
    void (*release)(struct request *request);
    union {
        struct {
            struct hello_args args;
            uint32_t version; /* the minor one that both speak */
        } hello;
        struct alloc_spec alloc;
        struct ids release;
        struct export_args export;
        struct open_args open;
        struct lookup_args lookup;
        struct share_args share;
        struct revoke_args revoke;
        struct name_args name_bind;
        struct select_result selected;
        char name_unbind[sizeof(((struct lookup_args *)NULL)->name)];
    } args; /* undefined until the serve function sets it */
    /* Named after the reply; zero before the operation. It is last, so that a request has memory for its own result
     * only. */
    union {
        uint8_t Done; /* nothing more */
        struct opened Buffers;
        struct statuses Statuses;
        int DoorReply; /* the socket */
        struct hello_result HelloReply;
        struct share_result ShareReply;
        uint32_t RevokeReply; /* how many */
        struct buffer_info BufferInfo;
        struct {
            uint64_t id;
            uint64_t address;
        } ReserveReply;
        struct status_info StatusReply;
        struct check_result CheckReply;
        struct reload_result ReloadReply;
#define X(NAME, name, row, Row, Reply) struct listing Reply;
        MEMORYD_LISTINGS(X)
#undef X
    } result;
};

/* The history gets the request when it is done; `buffer` is what it is about, or 0, and `name` what it binds or
 * unbinds, a part of its arguments, or NULL. */
static inline void request_note(struct request *request, uint64_t buffer, const char *name)
{
    request->call.noted = true;
    request->call.buffer = buffer;
    request->call.name = name;
}

/* NULL: there is no memory, and the call is refused. */
struct request *request_begin(const struct call *call);

/* Goes on with what an operation returned. 0, or a negative errno that is fatal. The request may be gone afterwards. */
int request_go(struct request *request, int r);

/* Its reply goes to this client: a repeat of it came on another connection. */
void request_attach(struct request *request, struct rpc_client *client);

/* One for each row of the method table: serve_hello(), ... Returns what the operation returned, or a status. */
#define X(id, NAME, name, Request, Reply, session, fds_in, fds_out, cost, repeat, grants) \
    int serve_##name(struct request *request, const Memoryd__V1__##Request *message);
MEMORYD_METHODS(X)
#undef X

/* One for each message that is a reply: sends it. */
void answer_Done(struct request *request);
void answer_Buffers(struct request *request);
void answer_Statuses(struct request *request);
void answer_DoorReply(struct request *request);
void answer_HelloReply(struct request *request);
void answer_ShareReply(struct request *request);
void answer_RevokeReply(struct request *request);
void answer_BufferInfo(struct request *request);
void answer_ReserveReply(struct request *request);
void answer_StatusReply(struct request *request);
void answer_CheckReply(struct request *request);
void answer_ReloadReply(struct request *request);
#define X(NAME, name, row, Row, Reply) void answer_##Reply(struct request *request);
MEMORYD_LISTINGS(X)
#undef X

/* ---- replies ----------------------------------------------------------------------------------------------------- */

/* Sends a message. Replies to recorded requests are kept first, even if their client has gone. */
void reply_message(const struct call *call, const ProtobufCMessage *message);
/* With the descriptors of a list, which are opened when it leaves. `opened`: the first of them, beforehand; or NULL. */
void reply_with_fds(const struct call *call, const ProtobufCMessage *message, const struct fd_list *list,
                    struct fdset *opened);

/* Sends a status and its sentence, and logs them. An empty sentence becomes the status's own text; `problem` is made
 * printable. Returns 0. */
int reply_problem(const struct call *call, int status, struct problem *problem);

/* Sends the kept reply of an earlier request, with its descriptors. 0, or a negative errno that is fatal. */
int reply_again(const struct call *call);

/* The sentence, made printable, that says why the first item of a batch failed, for the batch's reply. Failed items are
 * logged. */
char *reply_sentence(const struct call *call, struct problem *problem, size_t n, const uint32_t *statuses);

/* An item whose buffer is no longer available has this status, and zero in its other columns. */
void reply_item_failed(Memoryd__V1__Buffers *buffers, size_t i, int status);
/* Packs a message into rpc->out, and returns its size. */
size_t reply_pack(struct rpc *rpc, const ProtobufCMessage *message);

/* ---- what several serve functions share -------------------------------------------------------------------------- */

/* WRITE implies READ (memoryd.proto, enum Right). */
uint32_t complete_rights(uint32_t rights);

/* The message was validated. */
void name_args_from(struct name_args *args, const Memoryd__V1__NameBindRequest *message);
