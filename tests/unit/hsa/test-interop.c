/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsa_amd_interop_map_buffer, hsa_amd_interop_unmap_buffer, hsa_amd_memory_pool_can_migrate, hsa_amd_memory_migrate.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/unit/hsa/hsa.h"

#define SIZE (4 * MIB)

static int make_descriptor(char **ptr)
{
    uint64_t offset;
    int fd;

    assert_success(hsa_amd_memory_pool_allocate(pools[1][FINE], SIZE, 0, (void **)ptr));
    assert_success(hsa_amd_portable_export_dmabuf(*ptr, SIZE, &fd, &offset));
    return fd;
}

#define refuses(n, list, fd, flags, status) refuses_at(n, list, fd, flags, status, __LINE__)

/* Outputs are untouched. */
static void refuses_at(uint32_t n, hsa_agent_t *list, int fd, uint32_t flags, hsa_status_t status, int line)
{
    size_t size = 7, metadata_size = 8;
    const void *metadata = &size;
    void *ptr = &ptr;

    hsa_assert_status(hsa_amd_interop_map_buffer(n, list, fd, flags, &size, &ptr, &metadata_size, &metadata), status,
                      "hsa_amd_interop_map_buffer", __FILE__, line);
    assert_int_equal(size, 7);
    assert_int_equal(metadata_size, 8);
    assert_ptr_equal(ptr, &ptr);
    assert_ptr_equal(metadata, &size);
}

/* hsa_amd_interop_map_buffer: num_agents, agents, interop_handle, flags, size, ptr: INVALID_ARGUMENT, INVALID_AGENT,
 * INVALID_ALLOCATION */
static void map_checks_its_arguments(void **state)
{
    hsa_agent_t bad[] = {agents[0], {1}};
    int foreign = memfd_create("foreign", MFD_CLOEXEC), fd;
    size_t size = 7;
    void *ptr = NULL;
    char *memory;

    assert_ok(foreign);
    assert_ok(ftruncate(foreign, SIZE));
    fd = make_descriptor(&memory);
    refuses(0, agents, fd, 0, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses(1, NULL, fd, 0, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses(1, agents, fd, 1, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses(1, agents, -1, 0, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses(1, agents, 1000000, 0, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses(2, bad, fd, 0, HSA_STATUS_ERROR_INVALID_AGENT);
    refuses(1, agents, foreign, 0, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_interop_map_buffer(1, agents, fd, 0, NULL, &ptr, NULL, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_interop_map_buffer(1, agents, fd, 0, &size, NULL, NULL, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_null(ptr);
    assert_int_equal(size, 7);
    assert_ok(close(foreign));
    assert_ok(close(fd));
    assert_success(hsa_memory_free(memory));
}

/* hsa_amd_interop_map_buffer(num_agents, agents, interop_handle, flags, size, ptr, metadata_size, metadata): SUCCESS.
 * All of the memory, which it keeps; each call maps it once more; metadata_size, metadata: 0 and NULL */
static void maps_descriptors(void **state)
{
    size_t size, metadata_size = 8;
    const void *metadata = &size;
    char *memory, *first, *second;
    int fd = make_descriptor(&memory);

    memcpy(memory, "interop", sizeof("interop"));
    assert_success(
        hsa_amd_interop_map_buffer(AGENTS, agents, fd, 0, &size, (void **)&first, &metadata_size, &metadata));
    assert_int_equal(size, SIZE);
    assert_int_equal(metadata_size, 0);
    assert_null(metadata);
    assert_success(hsa_amd_interop_map_buffer(1, agents, fd, 0, &size, (void **)&second, NULL, NULL));
    assert_ok(close(fd));
    assert_success(hsa_memory_free(memory));
    assert_ptr_not_equal(first, second);
    assert_string_equal(first, "interop");
    second[SIZE - 1] = 'x';
    assert_int_equal(first[SIZE - 1], 'x');
    assert_status(hsa_memory_free(first), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_ipc_memory_detach(first), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_interop_unmap_buffer(first));
    assert_int_equal(second[SIZE - 1], 'x');
    assert_success(hsa_amd_interop_unmap_buffer(second));
}

static void see(const void *ptr, hsa_amd_pointer_type_t type)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};

    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    assert_int_equal(info.type, type);
}

/* hsa_amd_pointer_info: HSA_EXT_POINTER_TYPE_GRAPHICS */
static void is_known_as_graphics(void **state)
{
    char *memory, *mapped;
    int fd = make_descriptor(&memory);
    size_t size;

    assert_success(hsa_amd_interop_map_buffer(1, agents, fd, 0, &size, (void **)&mapped, NULL, NULL));
    see(mapped + 100, HSA_EXT_POINTER_TYPE_GRAPHICS);
    assert_success(hsa_amd_interop_unmap_buffer(mapped));
    see(mapped + 100, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_ok(close(fd));
    assert_success(hsa_memory_free(memory));
}

/* hsa_amd_interop_unmap_buffer(ptr): SUCCESS, what is none is ignored, and stays as it is */
static void unmap_ignores_others(void **state)
{
    hsa_amd_ipc_memory_t handle;
    char *memory, *mapped, *attached;
    int fd = make_descriptor(&memory);
    size_t size;

    assert_success(hsa_amd_interop_map_buffer(1, agents, fd, 0, &size, (void **)&mapped, NULL, NULL));
    assert_success(hsa_amd_ipc_memory_create(memory, SIZE, &handle));
    assert_success(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, (void **)&attached));
    assert_success(hsa_amd_interop_unmap_buffer(NULL));
    assert_success(hsa_amd_interop_unmap_buffer(&size));
    assert_success(hsa_amd_interop_unmap_buffer(memory));
    assert_success(hsa_amd_interop_unmap_buffer(attached));
    assert_success(hsa_amd_interop_unmap_buffer(mapped + 4096));
    memory[0] = mapped[0] = attached[0] = 1;
    assert_success(hsa_amd_ipc_memory_detach(attached));
    assert_success(hsa_amd_interop_unmap_buffer(mapped));
    assert_success(hsa_amd_interop_unmap_buffer(mapped));
    assert_ok(close(fd));
    assert_success(hsa_memory_free(memory));
}

/* hsa_amd_memory_pool_can_migrate: src_memory_pool, dst_memory_pool, result: INVALID_ARGUMENT, INVALID_MEMORY_POOL,
 * OUT_OF_RESOURCES */
static void nothing_can_migrate(void **state)
{
    const hsa_status_t invalid = (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
    hsa_amd_memory_pool_t bad = {agents[0].handle};
    bool result = true;

    assert_status(hsa_amd_memory_pool_can_migrate(pools[0][0], pools[1][0], NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_pool_can_migrate(bad, pools[1][0], &result), invalid);
    assert_status(hsa_amd_memory_pool_can_migrate(pools[0][0], bad, &result), invalid);
    assert_true(result);
    assert_status(hsa_amd_memory_pool_can_migrate(pools[0][0], pools[1][0], &result),
                  HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_false(result);
}

/* hsa_amd_memory_migrate: ptr, memory_pool, flags: INVALID_ARGUMENT, INVALID_MEMORY_POOL, OUT_OF_RESOURCES */
static void nothing_migrates(void **state)
{
    void *ptr;

    assert_success(hsa_amd_memory_pool_allocate(pools[0][COARSE], SIZE, 0, &ptr));
    assert_status(hsa_amd_memory_migrate(NULL, pools[1][0], 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_migrate(ptr, pools[1][0], 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_migrate(ptr, (hsa_amd_memory_pool_t){0}, 0),
                  (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL);
    assert_status(hsa_amd_memory_migrate(ptr, pools[1][0], 0), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_success(hsa_memory_free(ptr));
}

static void call_all(int channel, void *context)
{
    size_t size;
    bool result;

    (void)channel;
    (void)context;
    CHECK(hsa_amd_interop_map_buffer(1, agents, 0, 0, &size, &context, NULL, NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_interop_unmap_buffer(NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_memory_pool_can_migrate(pools[0][0], pools[1][0], &result) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_memory_migrate(&size, pools[0][0], 0) == HSA_STATUS_ERROR_NOT_INITIALIZED);
}

static void not_initialized(void **state)
{
    child_run(call_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(map_checks_its_arguments, hsa_nothing_left),
        cmocka_unit_test_teardown(maps_descriptors, hsa_nothing_left),
        cmocka_unit_test_teardown(is_known_as_graphics, hsa_nothing_left),
        cmocka_unit_test_teardown(unmap_ignores_others, hsa_nothing_left),
        cmocka_unit_test_teardown(nothing_can_migrate, hsa_nothing_left),
        cmocka_unit_test_teardown(nothing_migrates, hsa_nothing_left),
        cmocka_unit_test_teardown(not_initialized, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
