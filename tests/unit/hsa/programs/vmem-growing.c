/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory as frameworks use it: segments that expand in a huge range, a pool that grows at its end, memory that
 * is let go while its addresses are kept, and a ring buffer that is mapped three times in a row.
 */
#include "program.h"

static hsa_amd_vmem_alloc_handle_t create(size_t size)
{
    hsa_amd_vmem_alloc_handle_t handle;

    NEED(hsa_amd_vmem_handle_create(pools[0][0], size, MEMORY_TYPE_PINNED, 0, &handle));
    return handle;
}

/* Once for each device, as multi-device programs do; only the last call's list holds. */
static void allow(void *address, size_t size)
{
    hsa_amd_memory_access_desc_t all[AGENTS_MAX];

    for (unsigned i = 0; i < n_agents; i++) {
        all[i].permissions = HSA_ACCESS_PERMISSION_RW;
        all[i].agent_handle = agents[i];
    }
    NEED(hsa_amd_vmem_set_access(address, size, all, n_agents));
}

/* Segments that expand: much is reserved, pieces are mapped as they are needed and their handles released at once. */
static void expandable_segments(void)
{
    const size_t reserved = 32 * GIB, piece = 2 * MIB;
    const unsigned pieces = 40;
    void *first = NULL;

    for (unsigned round = 0; round < 3; round++) {
        char *base;

        NEED(hsa_amd_vmem_address_reserve((void **)&base, reserved, (uintptr_t)first, 0));
        NEED_TRUE(!first || base == first);
        first = base;
        for (unsigned i = 0; i < pieces; i++) {
            hsa_amd_vmem_alloc_handle_t handle = create(piece);

            NEED(hsa_amd_vmem_map(base + i * piece, piece, 0, handle, 0));
            NEED(hsa_amd_vmem_handle_release(handle));
            allow(base + i * piece, piece);
            NEED_TRUE(base[i * piece] == 0);
            memset(base + i * piece, (int)i + 1, piece);
        }
        for (unsigned i = 0; i < pieces; i++)
            NEED_TRUE(base[i * piece] == (char)(i + 1));
        NEED(hsa_amd_vmem_unmap(base, pieces * piece));
        NEED(hsa_amd_vmem_address_free(base, reserved));
    }
}

/* A pool that grows at its end, and sets access of all that it has each time. */
static void growing_pool(void)
{
    const size_t reserved = 4 * GIB, growth[] = {2 * MIB, 6 * MIB, 2 * MIB, 32 * MIB, 64 * KIB};
    size_t used = 0;
    char *base;

    NEED(hsa_amd_vmem_address_reserve((void **)&base, reserved, 0, 0));
    for (unsigned i = 0; i < sizeof(growth) / sizeof(growth[0]); i++) {
        hsa_amd_vmem_alloc_handle_t handle = create(growth[i]);

        NEED(hsa_amd_vmem_map(base + used, growth[i], 0, handle, 0));
        NEED(hsa_amd_vmem_handle_release(handle));
        used += growth[i];
        if (i % 2)
            allow(base, used);
        else
            allow(base + used - growth[i], growth[i]);
        base[used - 1] = (char)i;
        base[used - growth[i]] = (char)i;
    }
    for (unsigned i = 0, at = 0; i < sizeof(growth) / sizeof(growth[0]); i++) {
        NEED_TRUE(base[at] == (char)i);
        at += (unsigned)growth[i];
        NEED_TRUE(base[at - 1] == (char)i);
    }
    NEED(hsa_amd_vmem_unmap(base, used));
    NEED(hsa_amd_vmem_address_free(base, reserved));
}

/* Asleep: the memory is given to others, the addresses stay. Awake: other memory at the same addresses. */
static void sleep_and_wake(void)
{
    const size_t size = 64 * MIB;
    const uint64_t before = memory_avail(agents[0]);
    char *base, *pointer_inside;

    NEED(hsa_amd_vmem_address_reserve_align((void **)&base, size, 0, 2 * MIB, 0));
    pointer_inside = base + 12345;
    for (unsigned round = 0; round < rounds(4); round++) {
        hsa_amd_vmem_alloc_handle_t handle = create(size);

        NEED(hsa_amd_vmem_map(base, size, 0, handle, 0));
        allow(base, size);
        NEED_TRUE(*pointer_inside == 0);
        *pointer_inside = 1;
        NEED_TRUE(memory_avail(agents[0]) == before - size);
        NEED(hsa_amd_vmem_unmap(base, size));
        NEED(hsa_amd_vmem_handle_release(handle));
        if (memory_avail(agents[0]) != before)
            give_up("asleep, and %llu bytes are not there again",
                    (unsigned long long)(before - memory_avail(agents[0])));
    }
    NEED(hsa_amd_vmem_address_free(base, size));
}

/* A ring buffer, three times in a row, so that what begins in it ends in it too: the producer writes into the middle
 * one, and the consumers only read what is before and behind. */
static void ring_buffer(void)
{
    const size_t capacity = granule(pools[0][0]);
    const hsa_amd_vmem_alloc_handle_t handle = create(capacity);
    hsa_amd_memory_access_desc_t desc[AGENTS_MAX];
    hsa_access_permission_t permission;
    char *base;

    NEED(hsa_amd_vmem_address_reserve_align((void **)&base, 3 * capacity, 0, capacity, 0));
    NEED_TRUE((uintptr_t)base % capacity == 0);
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < n_agents; k++) {
            desc[k].permissions = i == 1 && k == 0 ? HSA_ACCESS_PERMISSION_WO : HSA_ACCESS_PERMISSION_RO;
            desc[k].agent_handle = agents[k];
        }
        NEED(hsa_amd_vmem_map(base + i * capacity, capacity, 0, handle, 0));
        NEED(hsa_amd_vmem_set_access(base + i * capacity, capacity, desc, n_agents));
    }
    NEED(hsa_amd_vmem_get_access(base + capacity, &permission, agents[0]));
    NEED_TRUE(permission == HSA_ACCESS_PERMISSION_WO);
    NEED(hsa_amd_vmem_get_access(base + 2 * capacity, &permission, agents[0]));
    NEED_TRUE(permission == HSA_ACCESS_PERMISSION_RO);
    for (size_t i = 0; i < capacity; i += 509)
        base[capacity + i] = (char)i;
    for (size_t i = 0; i < capacity; i += 509)
        NEED_TRUE(base[i] == (char)i && base[2 * capacity + i] == (char)i);
    NEED_TRUE(memcmp(base + capacity / 2, base + capacity + capacity / 2, capacity) == 0);
    for (unsigned i = 0; i < 3; i++)
        NEED(hsa_amd_vmem_unmap(base + i * capacity, capacity));
    NEED(hsa_amd_vmem_handle_release(handle));
    NEED(hsa_amd_vmem_address_free(base, 3 * capacity));
}

int main(void)
{
    begin();
    expandable_segments();
    growing_pool();
    sleep_and_wake();
    ring_buffer();
    end();
    return 0;
}
