/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From packets to operations and back, for a host that has the sockets.
 *
 * The host gives each sound packet of a client to rpc_client_packet() and offers a few functions by which replies and
 * events leave. A message that breaks the protocol is answered with PROTOCOL, and its connection finishes. A request
 * that is refused gets its status and a sentence, and the client goes on. Neither has any other effect (I8).
 *
 * A request that the table calls recorded is done once, however often it arrives: its reply is kept before it leaves,
 * and a lost connection does not end it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "log/log.h"
#include "proto/arena.h"
#include "proto/fdset.h"
#include "proto/frame.h"
#include "proto/outgoing.h"

struct broker;
struct broker_event;
struct handle_shown;
struct peer;
struct problem;

/* What the host does; `connection` is that of rpc_client_init(). */
struct rpc_transport {
    /* Sends the one reply to each packet, now or a copy of it later, and calls rpc_client_open_fds() when it does. */
    void (*reply)(void *connection, const struct outgoing *reply);
    /* Sends an event, which replaces an unread one of the same key. False: too many wait. */
    bool (*event)(void *connection, const struct frame_header *header, const void *payload, size_t size, uint64_t key);
    void (*drop_events)(void *connection);
    /* The client has a session now. */
    void (*established)(void *connection);
    /* A request is at work that the next one has to wait for, or is not any more. */
    void (*hold)(void *connection, bool held);
    /* Sends what waits, then closes. */
    void (*finish)(void *connection);
    /* A new socket to the door of the client's user. 0 or a status. */
    int (*door)(void *connection, int *ret_fd, struct problem *problem);
    /* What was shown there for this ticket, which is of no use afterwards: a buffer, or `memory` with a descriptor that
     * is the caller's. 0 or a status. */
    int (*redeem)(void *connection, uint64_t ticket, bool memory, struct handle_shown *ret, struct problem *problem);
    /* Takes such a descriptor, whose last close may take long. */
    void (*end)(void *connection, int fd);
    /* The broker cannot go on after this negative errno. */
    void (*fail)(void *connection, int error);
};

struct rpc {
    struct broker *broker;
    const struct rpc_transport *transport;
    const char *version; /* of the program */
    const char *config;  /* path of the configuration, or ""; set anew when another one is read */
    bool config_stale;   /* as in StatusReply */
    pid_t keeper_pid;    /* set where there is a keeper; else 0 */
    uint64_t requests;
    uint64_t refused;
    struct arena arena;   /* the message being served */
    struct arena scratch; /* the rows of the listing being answered */
    uint8_t *out;         /* the payload being made */
    struct fdset *opened; /* descriptors that were opened beforehand for it, or NULL */
};

struct rpc_client {
    struct rpc *rpc;
    void *connection;
    struct peer *peer; /* borrowed */
    struct log_client who;
    uint64_t session;     /* 0 before HELLO and after its end */
    uint32_t minor;       /* the version that both speak; version 0 keeps no replies */
    bool keeps;           /* the broker may keep replies of the session */
    struct list requests; /* those without an answer yet */
    uint64_t n_requests;  /* that have come */
    bool serving;         /* a packet is being served: finishing waits for its reply */
    bool finishing;
};

/* Arguments are borrowed. 0 or -ENOMEM. */
int rpc_init(struct rpc *rpc, struct broker *broker, const struct rpc_transport *transport, const char *version,
             const char *config);
void rpc_deinit(struct rpc *rpc);

void rpc_client_init(struct rpc_client *client, struct rpc *rpc, void *connection, struct peer *peer,
                     struct log_client who);

/* Serves one packet. Descriptors that are not stolen stay the caller's. 0, or a negative errno that is fatal. */
int rpc_client_packet(struct rpc_client *client, const struct frame_header *header, const uint8_t *payload,
                      struct fdset *fds);

/* A reply leaves: opens its descriptors into `fds`, a slice of them in each call, and has it say which there are no
 * more. */
enum outgoing_fds rpc_client_open_fds(struct rpc_client *client, struct outgoing *reply, struct fdset *fds);

/*
 * Before the first packet: serves the requests in the clients' release logs, which the broker before may not have read.
 * The replies are not sent, but kept like any other. 0, or a negative errno that is fatal.
 */
int rpc_replay_releases(struct rpc *rpc);

/* Answers a packet that is not sound (an enum frame_error), as far as possible. */
void rpc_client_refused(struct rpc_client *client, int error, const uint8_t *packet, size_t size);

/* The broker asks for it: the session has ended or was resumed on another connection. */
void rpc_client_disconnect(struct rpc_client *client);

/* Sends an event to a client that subscribed. */
void rpc_client_event(struct rpc_client *client, const struct broker_event *event);

/* The connection is gone: pending requests are cancelled; recorded ones go on, and their replies are kept. 0, or a
 * negative errno. */
int rpc_client_lost(struct rpc_client *client);
