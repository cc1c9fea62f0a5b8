/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Replies: a message, or a status with its sentence. Those of recorded requests are kept before they leave, also if
 * nobody waits for them any more.
 */

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/problem.h"
#include "proto/fdset.h"

struct call;

/* Takes the descriptors, if there are any and somebody waits for them. */
void reply_message(const struct call *call, const ProtobufCMessage *message, struct fdset *fds);

/* Once more the reply to a request that was done before: that of the first time, with descriptors anew. 0, or a
 * negative errno that is fatal. */
int reply_again(const struct call *call);

/* The same text, cleaned of what a client would not take for text. */
char *reply_text(char *text);

/* Why the first item of a batch failed, for the batch's reply: the sentence, cleaned of what is no text. That any did
 * is logged. */
char *reply_sentence(const struct call *call, struct problem *problem, size_t n, const uint32_t *statuses);

/* It is logged. An empty sentence becomes the status's own text. `problem` is cleaned of what is no text. */
void reply_problem(const struct call *call, int status, struct problem *problem);
