/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is what a message says possible at all? Every enumeration, string, count, mask and range of every request is
 * checked here and nowhere else, before anything is made of it. What only the broker can know (does it exist, may
 * this session do it, is there room) is not checked here.
 */
#pragma once

#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/problem.h"

/* `message` is the request of the method. 0, or a status with its sentence. */
int validate(uint16_t method, const ProtobufCMessage *message, struct problem *problem);
