/* SPDX-License-Identifier: Apache-2.0 */
/* What operations of HSA cost in requests to the broker. */
#include <string.h>
#include <unistd.h>

#include "tests/unit/hsa/vmem.h"

#define SIZE ((size_t)1 << 20)

static char *settled; /* memory of HSA's own context */

static struct memclient_context *context(void)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    assert_int_equal(memclient_address_query(settled, &info), 0);
    return info.context;
}

#define assert_costs(wanted, statement) observer_assert_costs(context(), wanted, statement)

static void allocations(void **state)
{
    hsa_amd_ipc_memory_t handle;
    void *ptr;

    assert_costs(1, assert_success(hsa_memory_allocate(regions[0][FINE], SIZE, &ptr)));
    assert_costs(1, assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle)));
    assert_costs(0, assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle)));
    assert_costs(0, assert_success(hsa_amd_agents_allow_access(1, agents, NULL, ptr)));
    assert_costs(1, assert_success(hsa_memory_free(ptr)));
}

static void virtual_memory(void **state)
{
    hsa_amd_vmem_alloc_handle_t again;
    handle_t handle;
    char *va;
    int fd;

    assert_costs(1, va = vmem_reserve(2 * SIZE));
    assert_costs(1, handle = vmem_create(SIZE));
    assert_costs(0, {
        vmem_map_rw(va, SIZE, handle);
        vmem_map_rw(va + SIZE, SIZE, handle);
        vmem_unmap(va + SIZE, SIZE);
        assert_success(hsa_amd_vmem_retain_alloc_handle(&again, va));
        vmem_release(again);
    });
    /* its home is where it is mapped, from now on; and the descriptor */
    assert_costs(2, assert_success(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0)));
    assert_costs(2, {
        assert_success(hsa_amd_vmem_import_shareable_handle(fd, &again));
        vmem_release(again);
    });
    close(fd);
    vmem_unmap(va, SIZE);
    assert_costs(1, vmem_release(handle));
    assert_costs(1, vmem_free(va, 2 * SIZE));
}

/* What somebody else has made, on node 1: his session, its buffer. */
static struct memclient_buffer *make(struct memclient_context **ctx)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_alloc_options there = MEMCLIENT_ALLOC_OPTIONS_INIT;
    const uint32_t node = 1;
    struct memclient_buffer *buffer;

    options.socket = observed.socket;
    assert_int_equal(memclient_context_open(&options, ctx), 0);
    there.nodes = &node;
    there.n_nodes = 1;
    assert_int_equal(memclient_alloc(*ctx, SIZE, &there, &buffer), 0);
    return buffer;
}

/* Only who wants to know whose it is has that asked, and once. */
static void of_others(void **state)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    hsa_amd_memory_pool_t pool;
    hsa_amd_memory_type_t type;
    hsa_amd_ipc_memory_t handle;
    struct memclient_context *ctx;
    struct memclient_buffer *buffer = make(&ctx);
    struct memclient_token token;
    handle_t imported;
    size_t size;
    char *va;
    void *ptr;
    int fd;

    assert_int_equal(memclient_share(buffer, NULL, &token), 0);
    assert_int_equal(memclient_export_fd(buffer, 0, &fd), 0);
    memcpy(&handle, &token, sizeof(handle));
    assert_costs(1, assert_success(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, &ptr)));
    assert_costs(1, {
        assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
        assert_success(hsa_amd_pointer_info((char *)ptr + 1, &info, NULL, NULL, NULL));
    });
    assert_int_equal(info.agentOwner.handle, agents[1].handle);
    assert_costs(1, assert_success(hsa_amd_ipc_memory_detach(ptr)));

    assert_costs(1, assert_success(hsa_amd_interop_map_buffer(1, agents, fd, 0, &size, &ptr, NULL, NULL)));
    assert_costs(1, assert_success(hsa_amd_interop_unmap_buffer(ptr)));

    va = vmem_reserve(SIZE);
    assert_costs(1, {
        assert_success(hsa_amd_vmem_import_shareable_handle(fd, &imported));
        vmem_map_rw(va, SIZE, imported);
    });
    assert_costs(1, {
        assert_success(hsa_amd_pointer_info(va, &info, NULL, NULL, NULL));
        assert_success(hsa_amd_vmem_get_alloc_properties_from_handle(imported, &pool, &type));
        assert_success(hsa_amd_vmem_get_alloc_properties_from_handle(imported, &pool, &type));
    });
    assert_int_equal(info.agentOwner.handle, agents[1].handle);
    assert_int_equal(pool.handle, pools[1][FINE].handle);
    vmem_unmap(va, SIZE);
    assert_costs(1, vmem_release(imported));
    vmem_free(va, SIZE);
    close(fd);
    memclient_buffer_unref(buffer);
    memclient_context_close(ctx);
}

static int setup(void **state)
{
    if (hsa_group_setup(state))
        return -1;
    assert_success(hsa_memory_allocate(regions[0][FINE], SIZE, (void **)&settled));
    return 0;
}

static int teardown(void **state)
{
    assert_success(hsa_memory_free(settled));
    return hsa_group_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations),
        cmocka_unit_test(virtual_memory),
        cmocka_unit_test(of_others),
    };

    return test_run(tests, setup, teardown);
}
