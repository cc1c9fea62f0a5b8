/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks and slabs a heap has, and where their memory comes from: set once, by who makes it. */
#pragma once

#include "heap/heap.h"

int geometry_set(struct heap_geometry *geometry, const struct memclient_heap_options *options);

/* Of a copy of what others may have written: may it be believed? Of a reader's, there are only classes. */
int geometry_check(const struct heap_geometry *geometry);
int geometry_check_classes(const struct heap_geometry *geometry);
