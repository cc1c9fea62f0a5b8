/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One situation for each method of the protocol: what has to be there before, the call of the library that sends the
 * request, and how one sees that it was done, and done once.
 *
 * They run in a client of their own, which may fail by CHECK() and the like. After `verify`, all that was made is
 * given back, so that the next time everything is as it was the first time.
 */
#pragma once

#include "proto/methods.h"
#include "tests/integration/clients.h"

struct actor {
    const char *socket;
    struct memclient_context *ctx;       /* who acts */
    struct memclient_context *other;     /* another session of the same process */
    struct memclient_context *third;     /* opened by a scenario */
    struct memclient_broker_info before; /* `prepare` */
    struct memclient_buffer *buf;
    struct memclient_buffer *bufs[3];
    struct memclient_reservation *reservation;
    struct memclient_token token;
    void *address;
    int fd;
    uint64_t id;
    uint64_t counted;
};

struct scenario {
    uint16_t method;
    const char *name;
    void (*prepare)(struct actor *a);
    void (*act)(struct actor *a);
    void (*verify)(struct actor *a);
};

extern const struct scenario scenarios[];
extern const size_t n_scenarios;
