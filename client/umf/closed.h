/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other processes that a provider has closed stays mapped, in case the same handle is opened again. The
 * library holds it in its cache, and the broker may take it from there at any time (memclient_cache_put()), for
 * instance when its maker frees it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct area;

/*
 * Keeps a closed area, and lets go of others if there is no room. False: it cannot be kept, and is still the caller's.
 */
bool closed_put(const struct area *area);
/* Takes back what the owner closed of exactly this handle, as if it were opened again. False: there is nothing. */
bool closed_take(const void *owner, const void *handle, struct area *area);
/* Lets go of all that the owner closed. */
void closed_release_all(const void *owner);
/* Lets go of everybody's closed areas of this buffer. Whoever opens it now may have other rights, and pages have only
 * one. */
void closed_release_buffer(uint64_t id);
