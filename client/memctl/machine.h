/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this machine set up for what memoryd can do? The versions of both sides, descriptors, what tells the broker of
 * last users, the memory that the service may have, the nodes, huge pages, ways to devices (devices.h), and what newer
 * kernels have (kernel.h). Each row says what follows from it, measured where that can be (measure.h). memctl(1),
 * DOCTOR, explains them.
 */
#pragma once

#include <memclient/memclient.h>

#include "memctl/findings.h"

/* `ctx` may be NULL: then only what needs no broker is looked at. */
void machine_check(struct findings *findings, struct memclient_context *ctx);
