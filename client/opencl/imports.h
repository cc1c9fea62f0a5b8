/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of other processes, of which something is imported: each is mapped once, whole, where it is at home.
 */
#pragma once

#include <memclient/memclient.h>

struct import;

/* Maps the buffer if it is not, and counts it; *base is where it is. */
int import_get(struct memclient_buffer *buf, struct import **import, void **base);
/* With calls to the broker, for the last. */
void import_put(struct import *import);

/* All of them are the parent's. */
void imports_in_child(void);
