/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device ids: which of the broker's memory is meant. This is all that the facade knows of nodes and pools.
 *
 *     ""                 the default
 *     numa:0-1,3         bound to these nodes
 *     interleave:0,1     spread over these nodes
 *     anything else      a pool's name
 */
#pragma once

#include <memclient/memclient.h>

/* Counted: the blocks of one allocation have the same. */
struct device;

/* What the id means; one that names something is looked for at the broker. NULL: it has failed, see fail(). */
struct device *device_new(struct memclient *ctx, const char *id);
struct device *device_ref(struct device *device);
/* Accepts NULL. */
void device_unref(struct device *device);

/* Do both say the same? */
bool device_is_same(const struct device *a, const struct device *b);

/* Says in the options where memory is to come from. They are valid as long as the device. */
void device_choose(const struct device *device, struct memclient_alloc_options *options);
