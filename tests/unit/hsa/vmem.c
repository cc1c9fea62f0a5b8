/* SPDX-License-Identifier: Apache-2.0 */
/* See vmem.h. */
#include "tests/unit/hsa/vmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

handle_t vmem_create_in(hsa_amd_memory_pool_t pool, size_t size)
{
    handle_t handle = {0};

    assert_success(hsa_amd_vmem_handle_create(pool, size, MEMORY_TYPE_NONE, 0, &handle));
    assert_int_not_equal(handle.handle, 0);
    return handle;
}

handle_t vmem_create(size_t size)
{
    return vmem_create_in(pools[0][FINE], size);
}

void vmem_release(handle_t handle)
{
    assert_success(hsa_amd_vmem_handle_release(handle));
}

char *vmem_reserve(size_t size)
{
    void *va = NULL;

    assert_success(hsa_amd_vmem_address_reserve(&va, size, 0, 0));
    assert_non_null(va);
    return va;
}

void vmem_free(void *va, size_t size)
{
    assert_success(hsa_amd_vmem_address_free(va, size));
}

void vmem_map(void *va, size_t size, handle_t handle)
{
    assert_success(hsa_amd_vmem_map(va, size, 0, handle, 0));
}

void vmem_map_rw(void *va, size_t size, handle_t handle)
{
    vmem_map(va, size, handle);
    vmem_allow(va, size);
}

void vmem_unmap(void *va, size_t size)
{
    assert_success(hsa_amd_vmem_unmap(va, size));
}

void vmem_allow(void *va, size_t size)
{
    const hsa_amd_memory_access_desc_t both[] = {
        {HSA_ACCESS_PERMISSION_RW, agents[0]},
        {HSA_ACCESS_PERMISSION_RW, agents[1]},
    };

    assert_success(hsa_amd_vmem_set_access(va, size, both, 2));
}

void vmem_allow_one(void *va, size_t size, unsigned agent, hsa_access_permission_t permissions)
{
    const hsa_amd_memory_access_desc_t one = {permissions, agents[agent]};

    assert_success(hsa_amd_vmem_set_access(va, size, &one, 1));
}

hsa_access_permission_t vmem_access(void *va, unsigned agent)
{
    hsa_access_permission_t permissions = HSA_ACCESS_PERMISSION_RW;

    assert_success(hsa_amd_vmem_get_access(va, &permissions, agents[agent]));
    return permissions;
}

/* ---- what the kernel has ----------------------------------------------------------------------------------------- */

const char *vmem_pages(const void *va)
{
    static char found[4];
    char line[512], protection[8];
    FILE *file = fopen("/proc/self/maps", "re");
    unsigned long from, to;

    assert_non_null(file);
    found[0] = '\0';
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "%lx-%lx %7s", &from, &to, protection) == 3 && from <= (uintptr_t)va && (uintptr_t)va < to)
            memcpy(found, protection, 3);
    fclose(file);
    return found;
}

bool vmem_is_readable(const void *va)
{
    return vmem_pages(va)[0] == 'r';
}

bool vmem_is_writable(const void *va)
{
    const char *pages = vmem_pages(va);

    return pages[0] && pages[1] == 'w';
}

bool vmem_is_taken(const void *va, size_t size)
{
    unsigned char *pages = malloc(size / page_size());
    int r;

    assert_non_null(pages);
    r = mincore((void *)(uintptr_t)va, size, pages);
    free(pages);
    assert_true(r == 0 || errno == ENOMEM);
    return r == 0;
}

size_t vmem_resident(const void *va, size_t size)
{
    char line[512];
    FILE *file = fopen("/proc/self/smaps", "re");
    unsigned long from, to, kib;
    bool inside = false;
    size_t bytes = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from >= (uintptr_t)va && to <= (uintptr_t)va + size;
        else if (inside && sscanf(line, "Rss: %lu kB", &kib) == 1)
            bytes += kib * 1024;
    fclose(file);
    return bytes;
}
