/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I5 as the kernel sees it: what the broker lists is what the kernel has allocated, buffer by buffer and to the page.
 *
 * Each buffer that is listed, but for foreign ones, has its memory file, for which the kernel has allocated no more
 * than is listed; less only where pages are yet to come: after memclient_discard(), or of a pool that commits lazily.
 * What else the keeper and the broker have open is the stock, to the byte; and pools use what their buffers have.
 */
#pragma once

#include "tests/integration/clients.h"

struct truth {
    uint64_t listed;    /* bytes of the buffers */
    uint64_t stock;     /* ... and of those in stock */
    uint64_t allocated; /* by the kernel, for all of these */
    char fault[200];    /* what does not agree, "" if all does */
};

/* As it is now, and in the middle of work there may be a difference. False: this user may not look. */
bool truth_look(struct memclient_context *ctx, pid_t keeper, struct truth *truth);
/* Waits until all agrees, so many bytes are listed and so many of them yet to come; false: that never happens. */
bool truth_comes(struct memclient_context *ctx, pid_t keeper, uint64_t listed, uint64_t to_come, struct truth *truth);
