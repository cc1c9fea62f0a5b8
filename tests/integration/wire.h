/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session in raw packets: its sequences, acknowledgements and connections are the test's to choose, so that it can
 * lose a connection at any moment, come back, and repeat what it likes.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "tests/integration/broker.h"

struct wire {
    const struct broker_process *broker;
    int fd;
    uint64_t session;
    uint8_t secret[MEMORYD_SECRET_SIZE];
    uint64_t sequence;     /* the last one that was used */
    uint64_t acknowledged; /* for the headers of all requests */
    uint64_t answered;
};

/* Whatever a request or a reply says. */
struct wire_packet {
    uint16_t method;
    uint64_t sequence;
    uint32_t status;
    size_t size;
    uint8_t payload[MEMORYD_PAYLOAD_MAX];
    unsigned n_fds;
    int fds[MEMORYD_FDS_MAX];
};

/* Connects and begins a session. */
void wire_open(struct wire *wire, const struct broker_process *broker);
/* ... as another user, as root only. */
void wire_open_as(struct wire *wire, const struct broker_process *broker, uid_t uid);
void wire_lose(struct wire *wire);
/* Connects again, as long as it takes, and goes on with the session. */
void wire_resume(struct wire *wire);
/* Ends the session. */
void wire_close(struct wire *wire);

/* A request with a fresh sequence; its descriptors stay the caller's. */
void wire_request(struct wire *wire, struct wire_packet *packet, uint16_t method, const ProtobufCMessage *message);
/* Sends it, as often as one likes. */
void wire_send(const struct wire *wire, const struct wire_packet *packet);
/* The next packet, whose descriptors are the caller's. False: the connection has ended. */
bool wire_receive(const struct wire *wire, struct wire_packet *reply);
void wire_close_fds(struct wire_packet *packet);

/* Sends it and receives the reply, which stays until the next call. */
struct wire_packet *wire_call(const struct wire *wire, const struct wire_packet *packet);
/* Makes it, sends it, and the reply must have this status. The message is decoded, and stays until the next call. */
const void *wire_do(struct wire *wire, uint16_t method, const ProtobufCMessage *message, uint32_t status);
/* What the reply says; stays until the next call. */
const void *wire_message(const struct wire_packet *reply);
