/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Level Zero loader of our own, libze_loader.so.1, found by LD_LIBRARY_PATH. It has one driver whose devices' memory
 * is the host's. It records its calls, and fails when it is told to. Its `fake_ze` is found with dlsym().
 *
 * Each allocation is a memfd, mapped. As with drivers on Linux, a handle for other processes begins with a descriptor
 * of the process that asked, which the driver owns until the handle is put. The rest must arrive unchanged.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "umf/level_zero_api.h"

#define FAKE_ZE_PAGE      ((uint64_t)64 << 10) /* of its devices, in bytes */
#define FAKE_ZE_SIZE_MAX  ((size_t)1 << 30)    /* more is UNSUPPORTED_SIZE */
#define FAKE_ZE_ALIGN_MAX ((size_t)2 << 20)    /* more is UNSUPPORTED_ALIGNMENT, and so is what is no power of 2 */

struct fake_ze {
    /* results to return; 0: it works */
    uint32_t init_result;
    uint32_t alloc_result;
    uint32_t free_result;
    uint32_t properties_result;
    uint32_t get_ipc_result;
    uint32_t open_ipc_result;
    uint32_t close_ipc_result;
    uint64_t page_size; /* of all memory; 0: unknown */

    /* calls so far */
    unsigned inits;
    unsigned allocs;
    unsigned frees;
    unsigned alive;
    unsigned ipc_gets;    /* minus puts: the descriptors that the driver owns; atomic where it goes up */
    unsigned ipc_opens;   /* minus closes */
    const char *function; /* the last that allocated */
    void *context;
    void *device;
    size_t size;
    size_t alignment;
    struct l0_host_desc host;
    struct l0_device_desc desc;
};
