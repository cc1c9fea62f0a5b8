/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving back what a reply granted that came after its caller had given up.
 *
 * Claims are released, reservations given back, tokens revoked. What a request changed for good
 * (a name, a publication, a buffer's end) stays: its caller was told that the outcome is unknown.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "proto/methods.h"

struct channel;

void undo_reply(struct channel *channel, enum method_grants grants, const ProtobufCMessage *reply);
