/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this machine set up for what memoryd can do? Huge pages, descriptors, what tells the broker of last users, the
 * memory that the service may have, the nodes, what newer kernels have, and the versions of both sides.
 */
#pragma once

#include <memclient/memclient.h>

#include "memctl/findings.h"

/* `ctx` may be NULL: then only what needs no broker is looked at. */
void machine_check(struct findings *findings, struct memclient_context *ctx);
