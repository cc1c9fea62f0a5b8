/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HSA's memory and the native API's are the same memory: what one makes, the other opens.
 */
#include "tests/unit/hsa/hsa.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct memclient_context *native; /* another session, as another process has one */

static int setup(void **state)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;

    assert_int_equal(hsa_group_setup(state), 0);
    options.socket = observed.socket;
    return memclient_context_open(&options, &native);
}

static int teardown(void **state)
{
    memclient_context_close(native);
    return hsa_group_teardown(state);
}

/* Through a token, in the other session; reads what is there, and closes it. */
static void assert_other_sees(struct memclient_buffer *buffer, const char *text)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *again;
    struct memclient_token token;
    void *p;

    assert_int_equal(memclient_share(buffer, NULL, &token), 0);
    assert_int_equal(memclient_open_token(native, &token, 0, &again), 0);
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    options.access = MEMCLIENT_READ;
    assert_int_equal(memclient_map(again, &options, &p), 0);
    assert_string_equal(p, text);
    assert_int_equal(memclient_unmap(native, p, 0), 0);
    memclient_buffer_unref(again);
}

/* memclient_hsa_buffer: SUCCESS. ptr, any address of an allocation; buf, counted up */
static void an_allocation_is_a_buffer(void **state)
{
    struct memclient_buffer *first = NULL, *second = NULL;
    char *p;

    assert_success(hsa_memory_allocate(regions[0][FINE], 10000, (void **)&p));
    memcpy(p, "allocated", sizeof("allocated"));
    assert_success(memclient_hsa_buffer(p, &first));
    assert_success(memclient_hsa_buffer(p + 9999, &second));
    assert_ptr_equal(first, second);
    assert_int_equal(memclient_buffer_size(first), 10000);
    assert_other_sees(first, "allocated");
    memclient_buffer_unref(first);
    assert_string_equal(p, "allocated");
    /* it outlives HSA's part in it */
    assert_success(hsa_memory_free(p));
    assert_int_equal(memclient_buffer_size(second), 10000);
    assert_other_sees(second, "allocated");
    memclient_buffer_unref(second);
}

static void a_mapping_is_the_buffer_of_its_handle(void **state)
{
    const hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, agents[0]};
    hsa_amd_vmem_alloc_handle_t memory;
    struct memclient_buffer *buffer;
    char *va;

    assert_success(hsa_amd_vmem_address_reserve((void **)&va, 4 * MIB, 0, 0));
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], 2 * MIB, MEMORY_TYPE_NONE, 0, &memory));
    assert_success(hsa_amd_vmem_map(va, 2 * MIB, 0, memory, 0));
    assert_success(hsa_amd_vmem_set_access(va, 2 * MIB, &rw, 1));
    memcpy(va, "mapped", sizeof("mapped"));
    assert_success(memclient_hsa_buffer(va + MIB, &buffer));
    assert_int_equal(memclient_buffer_size(buffer), 2 * MIB);
    assert_other_sees(buffer, "mapped");
    memclient_buffer_unref(buffer);
    assert_status(memclient_hsa_buffer(va + 2 * MIB, &buffer), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_unmap(va, 2 * MIB));
    assert_status(memclient_hsa_buffer(va, &buffer), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_handle_release(memory));
    assert_success(hsa_amd_vmem_address_free(va, 4 * MIB));
}

/* hsa_amd_vmem_import_shareable_handle: dmabuf_fd, of memclient_export_fd(); and the other way round */
static void descriptors_go_both_ways(void **state)
{
    struct memclient_buffer *made, *opened;
    hsa_amd_vmem_alloc_handle_t memory;
    int fd;

    assert_int_equal(memclient_alloc(native, MIB, NULL, &made), 0);
    assert_int_equal(memclient_export_fd(made, 0, &fd), 0);
    assert_success(hsa_amd_vmem_import_shareable_handle(fd, &memory));
    close(fd);
    assert_success(hsa_amd_vmem_export_shareable_handle(&fd, memory, 0));
    assert_int_equal(memclient_import_fd(native, fd, &opened), 0);
    close(fd);
    assert_ptr_equal(opened, made);
    memclient_buffer_unref(opened);
    memclient_buffer_unref(made);
    assert_success(hsa_amd_vmem_handle_release(memory));
}

/* hsa_amd_ipc_memory_attach: handle, of memclient_share(); and the other way round */
static void tokens_go_both_ways(void **state)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *made, *buffer, *opened;
    hsa_amd_ipc_memory_t handle;
    struct memclient_token token;
    char *there, *here, *p;

    assert_int_equal(memclient_alloc(native, MIB, NULL, &made), 0);
    options.flags = MEMCLIENT_MAP_NOT_HOME;
    assert_int_equal(memclient_map(made, &options, (void **)&there), 0);
    memcpy(there, "attached", sizeof("attached"));
    assert_int_equal(memclient_share(made, NULL, &token), 0);
    memcpy(&handle, &token, sizeof(handle));
    assert_success(hsa_amd_ipc_memory_attach(&handle, MIB, 0, NULL, (void **)&here));
    assert_string_equal(here, "attached");
    assert_success(memclient_hsa_buffer(here, &buffer));
    assert_int_equal(memclient_buffer_id(buffer), memclient_buffer_id(made));
    memclient_buffer_unref(buffer);
    assert_success(hsa_amd_ipc_memory_detach(here));
    assert_int_equal(memclient_unmap(native, there, 0), 0);
    memclient_buffer_unref(made);

    assert_success(hsa_amd_memory_pool_allocate(pools[1][COARSE], MIB, 0, (void **)&p));
    assert_success(hsa_amd_ipc_memory_create(p, MIB, &handle));
    memcpy(&token, &handle, sizeof(token));
    assert_int_equal(memclient_open_token(native, &token, 0, &opened), 0);
    assert_success(memclient_hsa_buffer(p, &buffer));
    assert_int_equal(memclient_buffer_id(opened), memclient_buffer_id(buffer));
    memclient_buffer_unref(buffer);
    memclient_buffer_unref(opened);
    assert_success(hsa_amd_memory_pool_free(p));
}

/* memclient_hsa_buffer: INVALID_ARGUMENT, INVALID_ALLOCATION, NOT_INITIALIZED */
static void other_memory_is_no_buffer(void **state)
{
    struct memclient_buffer *buffer = NULL;
    void *ours = malloc(4096);

    assert_status(memclient_hsa_buffer(NULL, &buffer), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(memclient_hsa_buffer(ours, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(memclient_hsa_buffer(ours, &buffer), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_register(ours, 4096));
    assert_status(memclient_hsa_buffer(ours, &buffer), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_deregister(ours, 4096));
    assert_success(hsa_shut_down());
    assert_status(memclient_hsa_buffer(ours, &buffer), HSA_STATUS_ERROR_NOT_INITIALIZED);
    assert_success(hsa_init());
    assert_null(buffer);
    free(ours);
}

/* memclient_hsa_set_profile: profile; SUCCESS, INVALID_ARGUMENT */
static void a_profile_is_one_of_two(void **state)
{
    assert_status(memclient_hsa_set_profile((enum memclient_hsa_profile)2), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(memclient_hsa_set_profile(MEMCLIENT_HSA_PROFILE_ROCR));
    assert_success(memclient_hsa_set_profile(MEMCLIENT_HSA_PROFILE_DOCUMENT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_allocation_is_a_buffer, hsa_nothing_left),
        cmocka_unit_test_teardown(a_mapping_is_the_buffer_of_its_handle, hsa_nothing_left),
        cmocka_unit_test_teardown(descriptors_go_both_ways, hsa_nothing_left),
        cmocka_unit_test_teardown(tokens_go_both_ways, hsa_nothing_left),
        cmocka_unit_test_teardown(other_memory_is_no_buffer, hsa_nothing_left),
        cmocka_unit_test(a_profile_is_one_of_two),
    };

    return test_run(tests, setup, teardown);
}
