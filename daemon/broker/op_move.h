/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers on their way to another node.
 *
 * A move charges twice as long as it lasts: the buffer where it was, and room for it where it goes. Its record says
 * the old place until all pages are seen in the new one; then both change in one step, together with the reply. A
 * broker that dies meanwhile leaves a buffer that is charged where it was, without VERIFIED, since its pages may be
 * anywhere, and that is moved again by the request's repeat.
 */
#pragma once

#include "broker/buffer_work.h"
#include "mem/migrate.h"
#include "mem/pool.h"

struct move {
    struct buffer_work work; /* the first member */
    struct migration migration;
    struct pool_room room;
    struct list link; /* in broker->moves */
    bool was_verified;
};
