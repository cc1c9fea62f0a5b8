/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of type normal: a part of a segment, shared with the blocks that it was divided from. */
#pragma once

#include <memclient/nbla.h>

#include "nbla/segment.h"

/* A block with memory: the first `bytes` from `pointer`, in a segment that it takes over on success. */
nbla_memory *normal_new(struct segment *segment, void *pointer, size_t bytes, const char *device_id);
