/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How memory gets to devices and from them: by /dev/udmabuf, which makes a dma-buf of a buffer, and by a GPU's driver,
 * with which a program registers a buffer. Both are tried with a buffer of the broker.
 */
#pragma once

#include <memclient/memclient.h>

#include "memctl/findings.h"

/* `ctx` may be NULL: then the memory is memctl's own. */
void devices_check(struct findings *findings, struct memclient_context *ctx);
