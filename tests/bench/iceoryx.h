/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iceoryx, as far as rivals.c and heap.c need it: chunks of the shared memory that its daemon, RouDi, has set aside.
 * Its library is loaded when it is used; nothing here is built against it. Both processes end with exit(), so that it
 * takes leave of RouDi, which then puts its segments away and ends before the maker does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Is it on this machine? */
bool iceoryx_is_here(void);

/* In the process that makes chunks, which also starts RouDi, and in the one that takes them. */
void iceoryx_begin(bool maker);

void *iceoryx_loan(size_t size);
/* Whoever takes chunks gets it; it is not the maker's any more. */
void iceoryx_publish(void *chunk);
/* What was published last, to read. */
const void *iceoryx_take(void);
void iceoryx_release(const void *chunk);
