/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that read and write the bytes of a buffer.
 */
#pragma once

#include "memctl/command.h"

int run_cat(struct invocation *invocation, struct memclient *ctx);
int run_fill(struct invocation *invocation, struct memclient *ctx);
