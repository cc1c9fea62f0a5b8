/* SPDX-License-Identifier: Apache-2.0 */
/* See fake-ze.h. For one thread. */
#include "tests/unit/umf/fake-ze.h"

#include <stdlib.h>

#define EXPORTED __attribute__((__visibility__("default")))
#define ALIVE_MAX 64

EXPORTED struct fake_ze fake_ze = {.page_size = FAKE_ZE_PAGE};

static struct {
    void *ptr;
    uint32_t type;
} alive[ALIVE_MAX];

/* Without a pointer: an entry that is free. */
static int find(const void *ptr)
{
    for (int i = 0; i < ALIVE_MAX; i++)
        if (alive[i].ptr == ptr)
            return i;
    return -1;
}

static uint32_t allocate(const char *function, uint32_t type, size_t size, size_t alignment, void **ptr)
{
    int i = find(NULL);
    void *memory;

    fake_ze.allocs++;
    fake_ze.function = function;
    fake_ze.size = size;
    fake_ze.alignment = alignment;
    if (fake_ze.alloc_result)
        return fake_ze.alloc_result;
    if (!size || size > FAKE_ZE_SIZE_MAX)
        return L0_UNSUPPORTED_SIZE;
    if (alignment & (alignment - 1) || alignment > FAKE_ZE_ALIGN_MAX)
        return L0_UNSUPPORTED_ALIGNMENT;
    if (i < 0 || posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, size))
        return L0_OUT_OF_HOST_MEMORY;
    alive[i].ptr = memory;
    alive[i].type = type;
    fake_ze.alive++;
    *ptr = memory;
    return L0_SUCCESS;
}

EXPORTED uint32_t zeInit(uint32_t flags);
EXPORTED uint32_t zeMemAllocHost(void *context, const struct l0_host_desc *host, size_t size, size_t alignment,
                                 void **ptr);
EXPORTED uint32_t zeMemAllocDevice(void *context, const struct l0_device_desc *desc, size_t size, size_t alignment,
                                   void *device, void **ptr);
EXPORTED uint32_t zeMemAllocShared(void *context, const struct l0_device_desc *desc, const struct l0_host_desc *host,
                                   size_t size, size_t alignment, void *device, void **ptr);
EXPORTED uint32_t zeMemFree(void *context, void *ptr);
EXPORTED uint32_t zeMemGetAllocProperties(void *context, const void *ptr, struct l0_properties *properties,
                                          void **device);

uint32_t zeInit(uint32_t flags)
{
    fake_ze.inits++;
    return flags ? L0_INVALID_ARGUMENT : fake_ze.init_result;
}

uint32_t zeMemAllocHost(void *context, const struct l0_host_desc *host, size_t size, size_t alignment, void **ptr)
{
    fake_ze.context = context;
    fake_ze.device = NULL;
    fake_ze.host = *host;
    return allocate("zeMemAllocHost", L0_MEMORY_HOST, size, alignment, ptr);
}

uint32_t zeMemAllocDevice(void *context, const struct l0_device_desc *desc, size_t size, size_t alignment,
                          void *device, void **ptr)
{
    fake_ze.context = context;
    fake_ze.device = device;
    fake_ze.desc = *desc;
    return allocate("zeMemAllocDevice", L0_MEMORY_DEVICE, size, alignment, ptr);
}

uint32_t zeMemAllocShared(void *context, const struct l0_device_desc *desc, const struct l0_host_desc *host,
                          size_t size, size_t alignment, void *device, void **ptr)
{
    fake_ze.context = context;
    fake_ze.device = device;
    fake_ze.desc = *desc;
    fake_ze.host = *host;
    return allocate("zeMemAllocShared", L0_MEMORY_SHARED, size, alignment, ptr);
}

uint32_t zeMemFree(void *context, void *ptr)
{
    int i = ptr ? find(ptr) : -1;

    fake_ze.context = context;
    fake_ze.frees++;
    if (fake_ze.free_result)
        return fake_ze.free_result;
    if (i < 0)
        return L0_INVALID_ARGUMENT;
    free(ptr);
    alive[i].ptr = NULL;
    fake_ze.alive--;
    return L0_SUCCESS;
}

/* Of what is not its own it says so, and succeeds, as drivers do. */
uint32_t zeMemGetAllocProperties(void *context, const void *ptr, struct l0_properties *properties, void **device)
{
    int i = ptr ? find(ptr) : -1;

    fake_ze.context = context;
    if (fake_ze.properties_result)
        return fake_ze.properties_result;
    if (properties->structure != L0_STRUCTURE_PROPERTIES || properties->next)
        return L0_INVALID_ARGUMENT;
    properties->type = i < 0 ? L0_MEMORY_UNKNOWN : alive[i].type;
    properties->page_size = i < 0 ? 0 : fake_ze.page_size;
    if (device)
        *device = fake_ze.device;
    return L0_SUCCESS;
}
