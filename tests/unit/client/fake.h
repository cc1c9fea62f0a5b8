/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of a client's connection, played by the test: it reads requests as they are and answers
 * with whatever the test wants, right or wrong.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "proto/fdset.h"
#include "proto/frame.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"

struct fake_request {
    struct frame_header header;
    ProtobufCMessage *message; /* freed by fake_request_deinit() */
    struct fdset fds;
};

/* The next request; waits with patience. False if the client has closed or nothing came. */
bool fake_receive(int socket, struct fake_request *request);
void fake_request_deinit(struct fake_request *request);

/* A reply; `message` NULL is an empty one. With status not 0 it is a Problem with that sentence. */
void fake_reply(int socket, enum method method, uint64_t sequence, const ProtobufCMessage *message, const int *fds,
                unsigned n_fds);
void fake_refuse(int socket, enum method method, uint64_t sequence, unsigned status, const char *sentence);

/* Answers HELLO with a session of this number. */
void fake_welcome(int socket, const struct fake_request *request, uint64_t session);

/* Of the broker that answers; 0 = it does not tell. */
extern unsigned fake_nodes;

/* The same by a broker that speaks this minor version. */
void fake_greet(int socket, uint64_t sequence, uint64_t session, unsigned version);
/* And with this descriptor. */
void fake_greet_with(int socket, uint64_t sequence, uint64_t session, unsigned version, int release_log);

/* A reply of one or more buffers of a page each, with ids from `id` on; a memfd for each if `fds` says so. */
void fake_buffers(int socket, enum method method, uint64_t sequence, uint64_t id, unsigned n, const int *fds);

/* Any bytes. */
void fake_send(int socket, const void *bytes, size_t n, const int *fds, unsigned n_fds);
