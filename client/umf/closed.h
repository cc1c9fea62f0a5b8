/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes' memory that a provider has closed, and that stays mapped for when it opens the same handle again:
 * the library keeps it, and the broker may take it at any time (memclient_cache_put()), as when its maker frees it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct area;

/*
 * What the owner had opened by these bytes is closed: it stays if it may, which others may have to go for. False: it
 * may not, and it is still the caller's.
 */
bool closed_put(const struct area *area);
/* What the owner has closed of just this handle, as if it had been opened again. False: nothing. */
bool closed_take(const void *owner, const void *handle, struct area *area);
/* All that the owner has closed is let go of. */
void closed_release_all(const void *owner);
/* What anybody has closed of this buffer is: who opens it now may have other rights, and pages have one. */
void closed_release_buffer(uint64_t id);
