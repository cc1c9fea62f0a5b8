/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of memory: hsa_amd_vmem_handle_create(), _handle_release(), _retain_alloc_handle() and
 * _get_alloc_properties_from_handle(). Sentences in quotation marks are the document's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/wait.h"
#include "tests/unit/hsa/vmem.h"

#define SIZE ((size_t)2 << 20)

static void get(handle_t handle, hsa_amd_memory_pool_t *pool, hsa_amd_memory_type_t *type)
{
    assert_success(hsa_amd_vmem_get_alloc_properties_from_handle(handle, pool, type));
}

static void assert_is_dead(handle_t handle)
{
    hsa_amd_memory_pool_t pool;
    hsa_amd_memory_type_t type;

    assert_status(hsa_amd_vmem_handle_release(handle), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, &type),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* ---- handle_create ----------------------------------------------------------------------------------------------- */

/* hsa_amd_vmem_handle_create: "Create a virtual memory handle within this pool", of every pool of every agent; it reads
 * as zeros. */
static void create_pool_of_every_agent_gives_memory_of_its_node(void **state)
{
    char *va = vmem_reserve(SIZE);

    for (unsigned a = 0; a < AGENTS; a++)
        for (unsigned p = 0; p < POOLS; p++) {
            handle_t handle = vmem_create_in(pools[a][p], SIZE);
            struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
            struct memclient_buffer *buffer;

            vmem_map_rw(va, SIZE, handle);
            for (size_t i = 0; i < SIZE; i += 1009)
                assert_int_equal(va[i], 0);
            memset(va, 0x55, SIZE);
            assert_success(memclient_hsa_buffer(va, &buffer));
            assert_int_equal(memclient_buffer_query(buffer, &info), 0);
            assert_int_equal(info.n_nodes, 1);
            assert_int_equal(info.nodes[0], a);
            assert_int_equal(info.bytes, SIZE);
            memclient_buffer_unref(buffer);
            vmem_unmap(va, SIZE);
            vmem_release(handle);
        }
    vmem_free(va, SIZE);
}

/* "HSA_STATUS_ERROR_INVALID_ARGUMENT - Invalid arguments" */
static void create_pool_that_is_none_is_invalid_argument(void **state)
{
    const uint64_t values[] = {0, 1, agents[0].handle, UINT64_MAX, (uintptr_t)&values};
    handle_t handle = {7};

    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        hsa_amd_memory_pool_t pool = {values[i]};

        assert_status(hsa_amd_vmem_handle_create(pool, SIZE, MEMORY_TYPE_NONE, 0, &handle),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
    assert_int_equal(handle.handle, 7);
}

static hsa_status_t note_group_region(hsa_region_t region, void *data)
{
    hsa_region_segment_t segment;

    assert_success(hsa_region_get_info(region, HSA_REGION_INFO_SEGMENT, &segment));
    if (segment != HSA_REGION_SEGMENT_GROUP)
        return HSA_STATUS_SUCCESS;
    *(hsa_region_t *)data = region;
    return HSA_STATUS_INFO_BREAK;
}

/* "HSA_STATUS_ERROR_INVALID_ALLOCATION - This memory pool does not support allocations" */
static void create_pool_without_allocations_is_invalid_allocation(void **state)
{
    handle_t handle = {7};
    hsa_region_t group;

    assert_status(hsa_agent_iterate_regions(agents[0], note_group_region, &group), HSA_STATUS_INFO_BREAK);
    for (unsigned type = MEMORY_TYPE_NONE; type <= MEMORY_TYPE_PINNED; type++)
        assert_status(hsa_amd_vmem_handle_create((hsa_amd_memory_pool_t){group.handle}, SIZE,
                                                 (hsa_amd_memory_type_t)type, 0, &handle),
                      HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_int_equal(handle.handle, 7);
}

/* "size must be a aligned to allocation granule size for this memory pool, see
 * HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE" */
static void create_size_is_a_multiple_of_the_granule(void **state)
{
    size_t granule = 0;
    handle_t handle = {7};

    assert_success(
        hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, &granule));
    for (size_t i = 1; i < 8; i++) {
        const size_t sizes[] = {granule / 8 * i, granule + granule / 8 * i, SIZE + i};

        for (unsigned k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
            assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], sizes[k], MEMORY_TYPE_NONE, 0, &handle),
                          HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], 0, MEMORY_TYPE_NONE, 0, &handle),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(handle.handle, 7);
    for (size_t i = 1; i < 8; i++)
        vmem_release(vmem_create(granule * i));
}

/* hsa_amd_vmem_handle_create: "To minimize internal memory fragmentation, align the size to the recommended allocation
 * granule size, see HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE" */
static void create_size_of_the_recommended_granule(void **state)
{
    size_t granule = 0, recommended = 0;

    assert_success(
        hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, &granule));
    assert_success(
        hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE, &recommended));
    assert_true(recommended >= granule && !(recommended % granule));
    vmem_release(vmem_create(recommended));
}

/* "HSA_STATUS_ERROR_OUT_OF_RESOURCES - Insufficient resources to allocate this memory": the pool promised it, and
 * others have taken it since. */
static void create_size_that_is_no_longer_there_is_out_of_resources(void **state)
{
    size_t most = 0;
    handle_t first = {0}, second = {7};

    assert_success(hsa_amd_memory_pool_get_info(pools[1][FINE], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, &most));
    assert_true(most > 8 * SIZE);
    first = vmem_create_in(pools[1][FINE], 4 * SIZE);
    assert_status(hsa_amd_vmem_handle_create(pools[1][FINE], most, MEMORY_TYPE_PINNED, 0, &second),
                  HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_int_equal(second.handle, 7);
    vmem_release(first);
    vmem_release(vmem_create_in(pools[1][FINE], most));
}

/* What the pool has never promised is the caller's mistake. */
static void create_size_beyond_the_pool_is_invalid_allocation(void **state)
{
    handle_t handle = {7};
    size_t most = 0;

    for (unsigned type = MEMORY_TYPE_NONE; type <= MEMORY_TYPE_PINNED; type++) {
        hsa_amd_memory_type_t t = (hsa_amd_memory_type_t)type;
        const size_t huge = SIZE_MAX - SIZE + 1;

        assert_success(hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, &most));
        assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], align_up(most + 1, SIZE), t, 0, &handle),
                      HSA_STATUS_ERROR_INVALID_ALLOCATION);
        assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], huge, t, 0, &handle),
                      HSA_STATUS_ERROR_INVALID_ALLOCATION);
    }
    assert_int_equal(handle.handle, 7);
}

/* hsa_amd_vmem_handle_create, type */
static void create_type_that_is_none_is_invalid_argument(void **state)
{
    const unsigned types[] = {2, 3, 1000, UINT32_MAX};
    handle_t handle = {7};

    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], SIZE, (hsa_amd_memory_type_t)types[i], 0, &handle),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(handle.handle, 7);
}

/* flags "currently unsupported" */
static void create_flags_are_ignored(void **state)
{
    handle_t handle;

    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], SIZE, MEMORY_TYPE_NONE, UINT64_MAX, &handle));
    vmem_release(handle);
}

static void create_memory_handle_null_is_invalid_argument(void **state)
{
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], SIZE, MEMORY_TYPE_NONE, 0, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_amd_vmem_handle_create, memory_handle: A number is never used again. */
static void create_memory_handle_is_a_new_one(void **state)
{
    handle_t last = {0};

    for (unsigned i = 0; i < 20; i++) {
        handle_t handle = vmem_create(page_size());

        assert_true(handle.handle > last.handle);
        last = handle;
        vmem_release(handle);
    }
}

/* ---- handle_release ---------------------------------------------------------------------------------------------- */

/* hsa_amd_vmem_handle_release: "HSA_STATUS_ERROR_INVALID_ALLOCATION - Invalid memory handle" */
static void release_memory_handle_that_is_none_is_invalid_allocation(void **state)
{
    const uint64_t values[] = {0, 1, UINT64_MAX, (uintptr_t)&values, pools[0][FINE].handle, agents[0].handle};
    handle_t handle = vmem_create(SIZE);

    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (values[i] != handle.handle)
            assert_is_dead((handle_t){values[i]});
    vmem_release(handle);
    assert_is_dead(handle);
}

/* hsa_amd_vmem_handle_release, memory_handle, SUCCESS */
static void release_of_the_last_reference_frees_the_memory(void **state)
{
    handle_t handle = vmem_create(SIZE);

    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    vmem_release(handle);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
}

/* Memory stays as it is while it is mapped, and the handle is not to be used any more. */
static void release_while_it_is_mapped_keeps_the_mapping(void **state)
{
    char *va = vmem_reserve(2 * SIZE);
    handle_t handle = vmem_create(SIZE);
    int fd = 7;

    vmem_map_rw(va, SIZE, handle);
    write_text(va, "still there");
    vmem_release(handle);
    assert_is_dead(handle);
    assert_status(hsa_amd_vmem_map(va + SIZE, SIZE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_string_equal(va, "still there");
    vmem_allow_one(va, SIZE, 1, HSA_ACCESS_PERMISSION_RO);
    assert_string_equal(vmem_pages(va), "r--");
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    vmem_unmap(va, SIZE);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    vmem_free(va, 2 * SIZE);
}

/* ---- retain_alloc_handle ----------------------------------------------------------------------------------------- */

/* hsa_amd_vmem_retain_alloc_handle, memory_handle, addr: "Return a memory handle for previously mapped memory. The
 * handle will be the same value of handle used to map the memory. The returned handle must be released with
 * corresponding number of calls" */
static void retain_memory_handle_is_the_one_that_was_mapped(void **state)
{
    char *va = vmem_reserve(2 * SIZE);
    handle_t handle = vmem_create(SIZE), again;

    vmem_map(va + SIZE, SIZE, handle);
    for (unsigned i = 0; i < 3; i++) {
        again.handle = 0;
        /* "mapped address": any inside */
        assert_success(hsa_amd_vmem_retain_alloc_handle(&again, va + SIZE + i * (SIZE / 2 - 1)));
        assert_int_equal(again.handle, handle.handle);
    }
    vmem_unmap(va + SIZE, SIZE);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(WAIT_UNTIL(observer_buffers() == 1));
        vmem_release(handle);
    }
    assert_is_dead(handle);
    vmem_free(va, 2 * SIZE);
}

/* Also when all references were released: it lives again. */
static void retain_after_the_last_release_revives_the_handle(void **state)
{
    char *va = vmem_reserve(2 * SIZE);
    handle_t handle = vmem_create(SIZE), again = {0};

    vmem_map_rw(va, SIZE, handle);
    write_text(va, "still there");
    vmem_release(handle);
    assert_is_dead(handle);
    assert_success(hsa_amd_vmem_retain_alloc_handle(&again, va));
    assert_int_equal(again.handle, handle.handle);
    vmem_unmap(va, SIZE);
    vmem_map_rw(va + SIZE, SIZE, again);
    assert_string_equal(va + SIZE, "still there");
    vmem_unmap(va + SIZE, SIZE);
    vmem_release(again);
    assert_is_dead(again);
    vmem_free(va, 2 * SIZE);
}

/* "HSA_STATUS_ERROR_INVALID_ALLOCATION - Invalid address" */
static void retain_addr_that_is_not_mapped_is_invalid_allocation(void **state)
{
    char *va = vmem_reserve(3 * SIZE);
    handle_t handle = vmem_create(SIZE), again = {7};
    void *allocated;

    vmem_map(va + SIZE, SIZE, handle);
    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], SIZE, 0, &allocated));
    {
        void *const addresses[] = {va, va + SIZE - 1, va + 2 * SIZE, &again, allocated, (void *)1, (void *)-1};

        for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
            assert_status(hsa_amd_vmem_retain_alloc_handle(&again, addresses[i]), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    }
    assert_status(hsa_amd_vmem_retain_alloc_handle(&again, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_retain_alloc_handle(NULL, va + SIZE), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(again.handle, 7);
    assert_success(hsa_amd_memory_pool_free(allocated));
    vmem_unmap(va + SIZE, SIZE);
    assert_status(hsa_amd_vmem_retain_alloc_handle(&again, va + SIZE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    vmem_release(handle);
    vmem_free(va, 3 * SIZE);
}

/* ---- get_alloc_properties_from_handle ---------------------------------------------------------------------------- */

/* hsa_amd_vmem_get_alloc_properties_from_handle, memory_handle: "Returns the allocation properties of an existing
 * handle" */
static void properties_pool_and_type_are_those_of_its_creation(void **state)
{
    for (unsigned a = 0; a < AGENTS; a++)
        for (unsigned p = 0; p < POOLS; p++)
            for (unsigned t = MEMORY_TYPE_NONE; t <= MEMORY_TYPE_PINNED; t++) {
                hsa_amd_memory_type_t type = MEMORY_TYPE_NONE;
                hsa_amd_memory_pool_t pool = {0};
                handle_t handle;

                assert_success(hsa_amd_vmem_handle_create(pools[a][p], SIZE, (hsa_amd_memory_type_t)t, 0, &handle));
                get(handle, &pool, &type);
                assert_int_equal(pool.handle, pools[a][p].handle);
                assert_int_equal(type, t);
                vmem_release(handle);
            }
}

/* "HSA_STATUS_ERROR_INVALID_ALLOCATION - Invalid memory_handle" */
static void properties_memory_handle_that_is_none_is_invalid_allocation(void **state)
{
    hsa_amd_memory_type_t type = MEMORY_TYPE_PINNED;
    hsa_amd_memory_pool_t pool = {7};

    assert_status(hsa_amd_vmem_get_alloc_properties_from_handle((handle_t){0}, &pool, &type),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_get_alloc_properties_from_handle((handle_t){UINT64_MAX}, &pool, &type),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_int_equal(pool.handle, 7);
    assert_int_equal(type, MEMORY_TYPE_PINNED);
}

static void properties_pool_or_type_null_is_invalid_argument(void **state)
{
    handle_t handle = vmem_create(SIZE);
    hsa_amd_memory_type_t type;
    hsa_amd_memory_pool_t pool;

    assert_status(hsa_amd_vmem_get_alloc_properties_from_handle(handle, NULL, &type),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    vmem_release(handle);
}

#define test(function) cmocka_unit_test_teardown(function, hsa_nothing_left)

/* A broker that has lost everything gives numbers of buffers once more, but no handle means another memory by that. */
static void handles_of_a_broker_that_is_lost(void **state)
{
    static struct broker_process lost, anew;
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    handle_t before[8], after[8];
    char link[220];

    assert_success(hsa_shut_down());
    assert_true(snprintf(link, sizeof(link), "%s/%d.link", folder, getpid()) < (int)sizeof(link));
    broker_start(&lost, "[topology]\nsimulate_nodes = 2\n", 0);
    assert_ok(symlink(lost.socket, link));
    setenv("MEMORYD_SOCKET", link, 1);
    assert_success(hsa_init());
    for (unsigned i = 0; i < 8; i++)
        before[i] = vmem_create(SIZE);
    broker_crash(&lost);
    broker_start(&anew, "[topology]\nsimulate_nodes = 2\n", 0);
    assert_ok(unlink(link));
    assert_ok(symlink(anew.socket, link));
    for (unsigned i = 0; i < 8; i++) {
        after[i] = vmem_create(SIZE);
        for (unsigned k = 0; k < 8; k++)
            assert_int_not_equal(after[i].handle, before[k].handle);
    }
    for (unsigned i = 0; i < 8; i++) {
        vmem_release(before[i]);
        vmem_release(after[i]);
        assert_is_dead(before[i]);
    }
    assert_success(hsa_shut_down());
    assert_ok(unlink(link));
    broker_stop(&anew);
    unlink(lost.socket);
    unlink(lost.config);
    unlink(lost.log);
    setenv("MEMORYD_SOCKET", observed.socket, 1);
    assert_success(hsa_init());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(create_pool_of_every_agent_gives_memory_of_its_node),
        test(create_pool_that_is_none_is_invalid_argument),
        test(create_pool_without_allocations_is_invalid_allocation),
        test(create_size_is_a_multiple_of_the_granule),
        test(create_size_of_the_recommended_granule),
        test(create_size_that_is_no_longer_there_is_out_of_resources),
        test(create_size_beyond_the_pool_is_invalid_allocation),
        test(create_type_that_is_none_is_invalid_argument),
        test(create_flags_are_ignored),
        test(create_memory_handle_null_is_invalid_argument),
        test(create_memory_handle_is_a_new_one),
        test(release_memory_handle_that_is_none_is_invalid_allocation),
        test(release_of_the_last_reference_frees_the_memory),
        test(release_while_it_is_mapped_keeps_the_mapping),
        test(retain_memory_handle_is_the_one_that_was_mapped),
        test(retain_after_the_last_release_revives_the_handle),
        test(retain_addr_that_is_not_mapped_is_invalid_allocation),
        test(properties_pool_and_type_are_those_of_its_creation),
        test(properties_memory_handle_that_is_none_is_invalid_allocation),
        test(properties_pool_or_type_null_is_invalid_argument),
        test(handles_of_a_broker_that_is_lost),
    };

    hsa_config = "[pools]\ncapacity = 64M\n";
    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
