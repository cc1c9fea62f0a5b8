/* SPDX-License-Identifier: Apache-2.0 */
/* See fake-ze.h. For one thread. */
#include "tests/unit/umf/fake-ze.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED  __attribute__((__visibility__("default")))
#define ALIVE_MAX 64
#define MAGIC     UINT64_C(0x5a5a15dead15f00d) /* behind the descriptor in handles */

EXPORTED struct fake_ze fake_ze = {.page_size = FAKE_ZE_PAGE};

/* Allocations, and what was opened. */
static struct {
    char *ptr; /* NULL: free */
    size_t size;
    uint32_t type;
    int fd; /* -1: it was opened */
} alive[ALIVE_MAX];

/* Finds what is around ptr, or a free entry if ptr is NULL. */
static int find_around(const void *ptr)
{
    const char *p = ptr;

    for (int i = 0; i < ALIVE_MAX; i++)
        if (p ? alive[i].ptr && p >= alive[i].ptr && p < alive[i].ptr + alive[i].size : !alive[i].ptr)
            return i;
    return -1;
}

static int find(const void *ptr)
{
    int i = find_around(ptr);

    return i >= 0 && alive[i].ptr == ptr ? i : -1;
}

static char *map_aligned(int fd, size_t size, size_t alignment)
{
    char *whole = mmap(NULL, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *start, *end;

    if (whole == MAP_FAILED)
        return NULL;
    start = whole + (alignment ? -(uintptr_t)whole & (alignment - 1) : 0);
    end = start + ((size + 4095) & ~(size_t)4095);
    if (mmap(start, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        (void)munmap(whole, size + alignment);
        return NULL;
    }
    if (start > whole)
        (void)munmap(whole, (size_t)(start - whole));
    if (whole + size + alignment > end)
        (void)munmap(end, (size_t)(whole + size + alignment - end));
    return start;
}

static uint32_t enter(uint32_t type, size_t size, size_t alignment, int fd, void **ptr)
{
    int i = find_around(NULL);
    char *start = i < 0 ? NULL : map_aligned(fd, size, alignment);

    if (!start)
        return L0_OUT_OF_HOST_MEMORY;
    alive[i].ptr = start;
    alive[i].size = size;
    alive[i].type = type;
    alive[i].fd = -1;
    *ptr = start;
    return L0_SUCCESS;
}

static uint32_t allocate(const char *function, uint32_t type, size_t size, size_t alignment, void **ptr)
{
    uint32_t result;
    int fd;

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
    fd = memfd_create("fake-ze", MFD_CLOEXEC);
    if (fd < 0)
        return L0_OUT_OF_HOST_MEMORY;
    result = ftruncate(fd, (off_t)size) ? L0_OUT_OF_HOST_MEMORY : enter(type, size, alignment, fd, ptr);
    if (result) {
        (void)close(fd);
        return result;
    }
    alive[find(*ptr)].fd = fd;
    fake_ze.alive++;
    return L0_SUCCESS;
}

static void leave(int i)
{
    (void)munmap(alive[i].ptr, alive[i].size);
    if (alive[i].fd >= 0)
        (void)close(alive[i].fd);
    alive[i].ptr = NULL;
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

EXPORTED uint32_t zeMemGetAddressRange(void *context, const void *ptr, void **base, size_t *size);
EXPORTED uint32_t zeMemGetIpcHandle(void *context, const void *ptr, struct l0_ipc_handle *handle);
EXPORTED uint32_t zeMemPutIpcHandle(void *context, struct l0_ipc_handle handle);
EXPORTED uint32_t zeMemOpenIpcHandle(void *context, void *device, struct l0_ipc_handle handle, uint32_t flags,
                                     void **ptr);
EXPORTED uint32_t zeMemCloseIpcHandle(void *context, const void *ptr);

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

uint32_t zeMemAllocDevice(void *context, const struct l0_device_desc *desc, size_t size, size_t alignment, void *device,
                          void **ptr)
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
    if (i < 0 || alive[i].fd < 0)
        return L0_INVALID_ARGUMENT;
    leave(i);
    fake_ze.alive--;
    return L0_SUCCESS;
}

/* For unknown memory it says so and succeeds, as drivers do. */
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

/* ---- for other processes ----------------------------------------------------------------------------------------- */

uint32_t zeMemGetAddressRange(void *context, const void *ptr, void **base, size_t *size)
{
    int i = ptr ? find_around(ptr) : -1;

    fake_ze.context = context;
    if (i < 0)
        return L0_INVALID_ARGUMENT;
    *base = alive[i].ptr;
    *size = alive[i].size;
    return L0_SUCCESS;
}

uint32_t zeMemGetIpcHandle(void *context, const void *ptr, struct l0_ipc_handle *handle)
{
    const uint64_t magic = MAGIC;
    int i = ptr ? find_around(ptr) : -1, fd;

    fake_ze.context = context;
    if (fake_ze.get_ipc_result)
        return fake_ze.get_ipc_result;
    if (i < 0)
        return L0_INVALID_ARGUMENT;
    fd = fcntl(alive[i].fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return L0_OUT_OF_HOST_MEMORY;
    memset(handle, 0x77, sizeof(*handle));
    memcpy(handle->data, &fd, sizeof(fd));
    memcpy(handle->data + 8, &magic, sizeof(magic));
    memcpy(handle->data + 16, &alive[i].size, sizeof(alive[i].size));
    __atomic_add_fetch(&fake_ze.ipc_gets, 1, __ATOMIC_SEQ_CST);
    return L0_SUCCESS;
}

uint32_t zeMemPutIpcHandle(void *context, struct l0_ipc_handle handle)
{
    int fd;

    fake_ze.context = context;
    memcpy(&fd, handle.data, sizeof(fd));
    if (close(fd))
        return L0_INVALID_ARGUMENT;
    fake_ze.ipc_gets--;
    return L0_SUCCESS;
}

uint32_t zeMemOpenIpcHandle(void *context, void *device, struct l0_ipc_handle handle, uint32_t flags, void **ptr)
{
    uint64_t magic;
    uint32_t result;
    size_t size;
    int fd;

    fake_ze.context = context;
    fake_ze.device = device;
    memcpy(&fd, handle.data, sizeof(fd));
    memcpy(&magic, handle.data + 8, sizeof(magic));
    memcpy(&size, handle.data + 16, sizeof(size));
    if (fake_ze.open_ipc_result)
        return fake_ze.open_ipc_result;
    if (!device)
        return L0_INVALID_NULL_HANDLE;
    if (magic != MAGIC || handle.data[4] != 0x77 || handle.data[63] != 0x77 || flags)
        return L0_INVALID_ARGUMENT;
    result = enter(L0_MEMORY_DEVICE, size, 0, fd, ptr);
    if (!result)
        fake_ze.ipc_opens++;
    return result;
}

uint32_t zeMemCloseIpcHandle(void *context, const void *ptr)
{
    int i = ptr ? find(ptr) : -1;

    fake_ze.context = context;
    if (i < 0 || alive[i].fd >= 0)
        return L0_INVALID_ARGUMENT;
    leave(i);
    fake_ze.ipc_opens--;
    return fake_ze.close_ipc_result;
}
