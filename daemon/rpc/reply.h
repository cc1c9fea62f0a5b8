/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Replies: a message, or a status with its sentence.
 */

#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/problem.h"
#include "proto/fdset.h"

struct rpc_client;

/* Takes the descriptors, if there are any. */
void reply_message(struct rpc_client *client, uint16_t method, uint64_t sequence, const ProtobufCMessage *message,
                   struct fdset *fds);

/* Why the first item of a batch failed, for the batch's reply: the sentence, cleaned of what is no text. */
char *reply_sentence(struct problem *problem);

/* An empty sentence becomes the status's own text. `problem` is cleaned of what is no text. */
void reply_problem(struct rpc_client *client, uint16_t method, uint64_t sequence, int status,
                   struct problem *problem);
