/* SPDX-License-Identifier: Apache-2.0 */
/* HELLO as message and as plain struct, for the first connection of a session and for the next ones. */
#pragma once

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

#include "proto/fdset.h"
#include "proto/memoryd.pb-c.h"

struct rpc_session;

/*
 * Fills in a request that points into its arguments. `resume`: the session to go on with, or NULL for a new one.
 * `release_log`: the broker is asked for the session's.
 */
void hello_request(Memoryd__V1__HelloRequest *request, const char *program, const struct rpc_session *resume,
                   bool release_log);

/* A channel_decode() of a struct rpc_session. */
int hello_decode(void *session, const ProtobufCMessage *reply, struct fdset *fds);
