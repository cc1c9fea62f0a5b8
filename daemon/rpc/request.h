/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One request while it is served.
 *
 * It embeds the verb's `struct op` and is followed by the verb's arguments and result, which stay where they are until
 * the verb has ended. A verb may go on for long (a worker commits memory) and its client may be gone by then: the
 * request then ends without a reply, or with one that is kept for when it is asked for again, and what its result holds
 * is released.
 *
 * A family serves a message by beginning its request, filling the arguments, and giving what the verb returned to
 * request_go(), which knows the ways it can go on from there.
 */

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/list.h"
#include "broker/verbs.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "rpc/rpc.h"

/* What a serve function is told, and who waits for the answer. */
struct call {
    struct rpc *rpc;
    struct rpc_client *client; /* NULL: nobody any more */
    uint64_t session;
    uint64_t sequence;
    uint64_t acknowledged;
    uint16_t method;
    bool kept;         /* the reply is to be kept */
    bool rerun;        /* as op->rerun */
    struct fdset *fds; /* that came with it; while it is being served */
};

struct request {
    struct op op;              /* first: what the broker gives back in done() */
    struct call call;
    struct list link; /* in its client's, while it is pending */
    size_t size;      /* of its memory */
    void (*answer)(struct request *request); /* the verb succeeded: reply */
    void (*release)(struct request *request); /* what the result holds; NULL = nothing */
};

/* `size` is that of a struct that begins with a struct request; all of it is zero behind that. NULL: there is no
 * memory, and the call has been refused. */
void *request_begin(const struct call *call, size_t size, void (*answer)(struct request *request),
                    void (*release)(struct request *request));
/* One that has no more than that, and whose answer is Done. */
struct request *request_begin_plain(const struct call *call);

/* Goes on with what a verb returned. 0, or a negative errno that is fatal. The request may be gone afterwards. */
int request_go(struct request *request, int r);

/* The client waits for this one, too, on another connection than the one that it came on. */
void request_attach(struct request *request, struct rpc_client *client);

/* For serve functions that need no verb, or refuse before there is a request. */
int call_refuse(const struct call *call, int status, struct problem *problem);
int call_done(const struct call *call);

/* Replies with a message and, if given, descriptors, which are taken. */
void request_reply(struct request *request, const ProtobufCMessage *message, struct fdset *fds);
/* Replies with Done. */
void request_done(struct request *request);

/* One for each row of the method table: serve_hello(), ... 0, or a negative errno that is fatal. */
#define X(id, NAME, name, request, reply, session, fds_in, fds_out, cost, repeat, grants)                    \
    int serve_##name(const struct call *call, const Memoryd__V1__##request *message);
MEMORYD_METHODS(X)
#undef X
