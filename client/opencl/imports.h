/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of other processes of which something is imported. Each is mapped once, whole, at its home.
 */
#pragma once

#include <memclient/memclient.h>

struct import;

/* Maps the buffer, or takes a reference to its mapping at *base. */
int import_get(struct memclient_buffer *buf, struct import **import, void **base);
/* Drops the reference. The last one unmaps the buffer, with calls to the broker. */
void import_put(struct import *import);

/* Forgets all of them: they are the parent's. */
void imports_in_child(void);
