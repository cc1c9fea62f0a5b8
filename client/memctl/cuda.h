/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's driver, which is loaded if it is there. */
#pragma once

#include <stddef.h>

#include "memctl/measure.h"

enum cuda_outcome {
    CUDA_REGISTERED,
    CUDA_NO_LIBRARY,
    CUDA_NOT_READY, /* the driver says so when it begins */
    CUDA_REFUSED,   /* to register it */
};

/*
 * Registers the memory with the first GPU and measures that, and what the driver takes to allocate as much of its own
 * that is registered; `copied`: to copy registered memory to the GPU, and unregistered. `why`: the driver's words for
 * an outcome other than CUDA_REGISTERED.
 */
enum cuda_outcome cuda_register(void *memory, size_t bytes, struct measured_ways *registered,
                                struct measured_ways *copied, char *why, size_t size);
