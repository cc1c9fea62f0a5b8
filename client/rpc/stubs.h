/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's methods as functions on plain structs: what core sees of the wire.
 *
 * Each sends one request and waits until the deadline (base/clock.h). They return as channel_call() does, and write
 * results on success only. Replies are validated here: counts match the request, and numbers by which memory will be
 * mapped are sane. Descriptors in a result are the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

#include "proto/hold_cache.h"
#include "proto/limits.h"
#include "proto/rows.h"

struct channel;

/* Where a request goes: connect() gives it a channel. All of it ends by the deadline. */
struct rpc_route {
    int (*connect)(void *of, uint64_t deadline, struct channel **channel);
    void *of;
    uint64_t deadline;
};

/* The route of a channel that is there. */
struct rpc_route rpc_route_of(struct channel *channel, uint64_t deadline);

/* ---- the session ------------------------------------------------------------------------------------------------- */
struct rpc_session {
    uint32_t version; /* the minor version that both speak */
    uint64_t session;
    uint8_t secret[MEMORYD_SECRET_SIZE];
    uint32_t broker;
    uint64_t arena_base;
    uint64_t arena_size;
    uint64_t base_page;
    uint32_t broker_uid;
    bool simulated;
    int release_log;  /* a descriptor, until a channel takes it; -1: none came */
    uint32_t n_nodes; /* with memory; 0 = an older broker, which does not tell */
};

/* The ranges where the process still has something of brokers that are gone. */
struct rpc_occupied {
    unsigned n;
    uint32_t brokers[MEMORYD_OCCUPIED_MAX];
    uint64_t addresses[MEMORYD_OCCUPIED_MAX];
    uint64_t sizes[MEMORYD_OCCUPIED_MAX];
};

/* Opens a new session. */
int rpc_hello(struct rpc_route route, const char *program, bool administrator, struct rpc_occupied *occupied,
              struct rpc_session *session);
int rpc_goodbye(struct rpc_route route);
int rpc_ping(struct rpc_route route);
int rpc_subscribe(struct rpc_route route, uint32_t mask);
/* `name` is NULL for a buffer. */
int rpc_subscribe_to(struct rpc_route route, uint32_t mask, uint64_t buffer, const char *name);
/* The same without waiting for an answer. */
void rpc_subscribe_again(struct channel *channel, uint32_t mask, uint64_t buffer, const char *name);

/* ---- several buffers --------------------------------------------------------------------------------------------- */
struct rpc_opened_item {
    unsigned status; /* STATUS_OK, or why not; the rest is meaningless then */
    uint32_t rights;
    uint32_t flags;
    int fd; /* or -1 */
    uint64_t id;
    uint64_t size;
    uint64_t bytes;
    uint64_t granule;
    uint64_t address;
    struct memclient_token token; /* zero unless an allocation brought it */
};

struct rpc_opened {
    struct channel *channel;              /* a reference to that of their session; NULL without a reply */
    uint32_t changes[HOLD_CACHE_CHANGES]; /* of the session's cache, before the request */
    unsigned n;                           /* as many as were asked for; 0 without a reply */
    struct rpc_opened_item items[MEMORYD_BATCH_MAX];
    char sentence[MEMORYD_SENTENCE_MAX + 1]; /* of the first that was refused, or "" */
};

/* Closes the descriptors that nobody took, and drops the channel. */
void rpc_opened_deinit(struct rpc_opened *opened);
/* Writes the ids of those that were opened, MEMORYD_BATCH_MAX at most, and returns their number. */
unsigned rpc_opened_ids(const struct rpc_opened *opened, uint64_t *ids);
#define RPC_OPENED_NULL ((struct rpc_opened){.n = 0})

/* An allocation: the one form between the caller's options and the message. */
struct alloc_spec {
    unsigned n;
    const uint64_t *sizes;
    struct memclient_alloc_options options; /* checked, except for what only the broker knows */
    struct memclient_name_options name;     /* if options.name is set */
    bool want_token;                        /* if the broker can send one along */
};

int rpc_alloc(struct rpc_route route, const struct alloc_spec *spec, struct rpc_opened *opened);
int rpc_import(struct rpc_route route, int fd, struct rpc_opened *opened);
/* -EOPNOTSUPP for a socket, which the protocol does not allow to be sent */
int rpc_adopt(struct rpc_route route, int fd, struct rpc_opened *opened);
/* rights may have MEMCLIENT_ACCEPT_FOREIGN here and below */
int rpc_open(struct rpc_route route, unsigned n, const struct memclient_token *tokens, uint32_t rights,
             struct rpc_opened *opened);

struct lookup_spec {
    const char *name; /* or NULL and the id */
    uint64_t id;
    uint32_t rights;
    unsigned claim; /* enum memclient_claim */
};

int rpc_lookup(struct rpc_route route, const struct lookup_spec *spec, struct rpc_opened *opened);
/*
 * Releases a hold on each of n buffers, which may be the same several times. A failure is ignored: errno and the last
 * sentence stay. `wait`: until it is done, if there is a broker; else it is only sent.
 */
void rpc_release(struct rpc_route route, unsigned n, const uint64_t *ids, bool wait);

struct rpc_exported {
    unsigned n; /* as many as were asked for */
    unsigned statuses[MEMORYD_BATCH_MAX];
    int fds[MEMORYD_BATCH_MAX];              /* the caller's; -1 where it was refused */
    char sentence[MEMORYD_SENTENCE_MAX + 1]; /* of the first that was refused, or "" */
};

/* the rights of each: READ, or READ and WRITE */
int rpc_export(struct rpc_route route, unsigned n, const uint64_t *ids, const uint32_t *rights,
               struct rpc_exported *exported);

/* ---- one buffer -------------------------------------------------------------------------------------------------- */
int rpc_info(struct rpc_route route, uint64_t id, struct memclient_buffer_info *info);
int rpc_publish(struct rpc_route route, uint64_t id, bool future_only);
int rpc_move(struct rpc_route route, uint64_t id, uint32_t node);
int rpc_discard(struct rpc_route route, uint64_t id, uint64_t offset, uint64_t length);
int rpc_destroy(struct rpc_route route, uint64_t id, bool force);

/* ---- tokens ------------------------------------------------------------------------------------------------------ */
struct rpc_shared {
    unsigned n;
    unsigned statuses[MEMORYD_BATCH_MAX];
    struct memclient_token tokens[MEMORYD_BATCH_MAX];
    char sentence[MEMORYD_SENTENCE_MAX + 1]; /* of the first that was refused, or "" */
};

int rpc_share(struct rpc_route route, unsigned n, const uint64_t *ids, const struct memclient_share_options *options,
              struct rpc_shared *shared);
/* exactly one of the three */
int rpc_revoke(struct rpc_route route, const struct memclient_token *token, uint64_t serial, uint64_t buffer);

/* ---- names ------------------------------------------------------------------------------------------------------- */
int rpc_name_bind(struct rpc_route route, uint64_t id, const char *name, const struct memclient_name_options *options);
int rpc_name_unbind(struct rpc_route route, const char *name);

/* ---- the arena --------------------------------------------------------------------------------------------------- */
struct rpc_reserved {
    unsigned generation; /* of the session that has it */
    uint64_t reservation;
    uint64_t address;
};

int rpc_reserve(struct rpc_route route, uint64_t size, uint64_t alignment, uint64_t address,
                struct rpc_reserved *reserved);
int rpc_unreserve(struct rpc_route route, uint64_t reservation);
int rpc_place(struct rpc_route route, uint64_t id, uint64_t reservation, uint64_t offset);

/* ---- status and listings ----------------------------------------------------------------------------------------- */
int rpc_status(struct rpc_route route, struct memclient_broker_info *status);
int rpc_check(struct rpc_route route, struct memclient_check_result *result);
int rpc_upgrade(struct rpc_route route);
int rpc_reload(struct rpc_route route, struct memclient_reload_result *result);

/* A listing, and how far it is. fn() gets each item as its public type, and is called without a lock. */
struct rpc_listing {
    enum list_kind kind;
    int (*fn)(const void *item, void *data);
    void *data;
    uint64_t cursor; /* of the next page; 0: at the beginning, and again after the last one */
    bool of_user;    /* of LIST_LIMITS: only what applies to `uid` */
    uid_t uid;
    int stopped; /* what fn() returned other than 0: it wants no more */
};

/* The next page. */
int rpc_list(struct rpc_route route, struct rpc_listing *listing);

struct rpc_selection {
    struct memclient_select_options options;
    int (*fn)(const struct memclient_buffer_info *info, void *data);
    void *data;
    struct memclient_buffer_sums sums; /* of the first page */
    uint32_t n;                        /* rows so far */
    uint64_t after, after_number;      /* where the next page begins; after is 0 at the beginning, and at the end */
    int stopped;                       /* what fn() returned other than 0: it wants no more */
};

/* The next page. */
int rpc_select(struct rpc_route route, struct rpc_selection *selection);

/* ---- events ------------------------------------------------------------------------------------------------------ */
/* Makes the public type of an event's message; false if it is none that is known. */
struct ProtobufCMessage;
bool rpc_event(unsigned id, const struct ProtobufCMessage *message, struct memclient_event *event);
