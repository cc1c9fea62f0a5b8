/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of proto/methods.h with their messages, for lookups at run time.
 *
 * methods.h is the table as text, for code that expands it. The broker's dispatcher, the client's receiver and the
 * fuzzers have a number from a packet and find its row here.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "proto/methods.h"

struct schema_method {
    uint16_t id;
    const char *name; /* "alloc" */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *reply;
    enum method_session session;
    unsigned fds_in;  /* the most that may come with a request */
    unsigned fds_out; /* and with a reply */
    enum method_cost cost;
    enum method_repeat repeat;
    enum method_grants grants;
};

struct schema_event {
    uint16_t id;
    const char *name;
    const ProtobufCMessageDescriptor *message;
};

/* NULL if there is no such method, or no such event. */
const struct schema_method *schema_method(uint16_t id);
const struct schema_event *schema_event(uint16_t id);

/* All of them, in the order of the table. */
const struct schema_method *schema_methods(size_t *n);
const struct schema_event *schema_events(size_t *n);

/* What the replies of all listings have in common, wherever it is in the message. */
struct schema_page {
    const ProtobufCMessageDescriptor *row;
    size_t *n_rows;
    ProtobufCMessage ***rows;
    uint64_t *next;
    protobuf_c_boolean *simulated; /* NULL: this listing has none */
};

void schema_page(ProtobufCMessage *reply, struct schema_page *ret);
