/* SPDX-License-Identifier: Apache-2.0 */
/* All heaps that this process has open, and what a fork does with them. */
#pragma once

#include "heap/heap.h"

void heap_register(struct memclient_heap *heap);
void heap_unregister(struct memclient_heap *heap);
