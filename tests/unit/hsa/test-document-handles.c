/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's document on virtual memory, its second part: handles of memory, and shareable handles. Each test quotes the
 * function and what of it is checked, as COVERAGE lists them.
 */
#include "tests/unit/hsa/hsa.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/fd.h"

#define PAGE     ((size_t)sysconf(_SC_PAGESIZE))
#define CAPACITY (64 * MIB) /* of a node, as configured below */

static hsa_amd_vmem_alloc_handle_t create(size_t size)
{
    hsa_amd_vmem_alloc_handle_t handle = {0};

    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], size, MEMORY_TYPE_NONE, 0, &handle));
    assert_int_not_equal(handle.handle, 0);
    return handle;
}

static char *map(hsa_amd_vmem_alloc_handle_t handle, size_t size)
{
    hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, agents[0]};
    void *va = NULL;

    assert_success(hsa_amd_vmem_address_reserve(&va, size, 0, 0));
    assert_success(hsa_amd_vmem_map(va, size, 0, handle, 0));
    assert_success(hsa_amd_vmem_set_access(va, size, &rw, 1));
    return va;
}

static void unmap(char *va, size_t size)
{
    assert_success(hsa_amd_vmem_unmap(va, size));
    assert_success(hsa_amd_vmem_address_free(va, size));
}

static int export(hsa_amd_vmem_alloc_handle_t handle)
{
    int fd = -1;

    assert_success(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0));
    assert_true(fd >= 0);
    return fd;
}

static hsa_status_t release(uint64_t handle)
{
    return hsa_amd_vmem_handle_release((hsa_amd_vmem_alloc_handle_t){handle});
}

static struct rlimit limit_descriptors(void)
{
    struct rlimit old, none = {0};

    assert_ok(getrlimit(RLIMIT_NOFILE, &old));
    none.rlim_max = old.rlim_max;
    assert_ok(setrlimit(RLIMIT_NOFILE, &none));
    return old;
}

/* ---- hsa_amd_vmem_handle_create(), hsa_amd_vmem_handle_release() ----------------------------------------- */

/* hsa_amd_vmem_handle_create(pool, size, type, flags, memory_handle): pool "memory to use", "Create a virtual
 * memory handle within this pool": HSA_STATUS_SUCCESS: the memory is there, of the pool's node and zeroed; for what
 * is no pool HSA_STATUS_ERROR_INVALID_ARGUMENT: "Invalid arguments". */
static void create_pool(void **state)
{
    const uint64_t none[] = {0, 1, agents[0].handle, UINT64_MAX};
    hsa_amd_vmem_alloc_handle_t handle;

    (void)state;
    for (unsigned a = 0; a < AGENTS; a++)
        for (unsigned k = 0; k < POOLS; k++) {
            struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
            struct memclient_buffer *buffer;
            char *va;

            assert_status(hsa_amd_vmem_handle_create(pools[a][k], PAGE, MEMORY_TYPE_PINNED, 0, &handle),
                          HSA_STATUS_SUCCESS);
            va = map(handle, PAGE);
            assert_int_equal(va[PAGE - 1], 0);
            assert_success(memclient_hsa_buffer(va, &buffer));
            assert_int_equal(memclient_buffer_info(buffer, &info), 0);
            memclient_buffer_unref(buffer);
            assert_int_equal(info.n_nodes, 1);
            assert_int_equal(info.nodes[0], a);
            unmap(va, PAGE);
            assert_success(hsa_amd_vmem_handle_release(handle));
        }
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_status(
            hsa_amd_vmem_handle_create((hsa_amd_memory_pool_t){none[i]}, PAGE, MEMORY_TYPE_NONE, 0, &handle),
            HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

static hsa_status_t create_if_not_allowed(hsa_region_t region, void *data)
{
    bool allowed = true;

    assert_success(hsa_region_get_info(region, HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
    if (allowed)
        return HSA_STATUS_SUCCESS;
    assert_status(hsa_amd_vmem_handle_create((hsa_amd_memory_pool_t){region.handle}, PAGE, MEMORY_TYPE_NONE, 0, data),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
    return HSA_STATUS_INFO_BREAK;
}

/* hsa_amd_vmem_handle_create(): HSA_STATUS_ERROR_INVALID_ALLOCATION: "This memory pool does not support
 * allocations", or none of this size ever. */
static void create_not_allowed(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = {77};

    (void)state;
    assert_status(hsa_agent_iterate_regions(agents[0], create_if_not_allowed, &handle), HSA_STATUS_INFO_BREAK);
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], CAPACITY + 2 * MIB, MEMORY_TYPE_NONE, 0, &handle),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_int_equal(handle.handle, 77);
}

/* hsa_amd_vmem_handle_create(): size "must be a aligned to allocation granule size for this memory pool, see
 * HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE"; "To minimize internal memory fragmentation, align the size to the
 * recommended allocation granule size, see HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE". */
static void create_size(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle;
    size_t granule = 0, recommended = 0;

    (void)state;
    assert_success(
        hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, &granule));
    assert_success(
        hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE, &recommended));
    assert_true(granule > 0 && recommended >= granule && recommended % granule == 0);
    for (unsigned i = 1; i < 4; i++)
        assert_success(hsa_amd_vmem_handle_release(create(i * granule)));
    assert_success(hsa_amd_vmem_handle_release(create(recommended)));
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], 0, MEMORY_TYPE_NONE, 0, &handle),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], 1, MEMORY_TYPE_NONE, 0, &handle),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], granule + 8, MEMORY_TYPE_NONE, 0, &handle),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_amd_vmem_handle_create(): type "of memory": MEMORY_TYPE_NONE or MEMORY_TYPE_PINNED, nothing else. */
static void create_type(void **state)
{
    const hsa_amd_memory_type_t types[] = {MEMORY_TYPE_NONE, MEMORY_TYPE_PINNED};
    hsa_amd_vmem_alloc_handle_t handle;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_success(hsa_amd_vmem_handle_create(pools[1][FINE], PAGE, types[i], 0, &handle));
        assert_success(hsa_amd_vmem_handle_release(handle));
    }
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], PAGE, (hsa_amd_memory_type_t)2, 0, &handle),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_amd_vmem_handle_create(): flags "currently unsupported": they make no difference. */
static void create_flags(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle;

    (void)state;
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], PAGE, MEMORY_TYPE_NONE, UINT64_MAX, &handle));
    assert_success(hsa_amd_vmem_handle_release(handle));
}

/* hsa_amd_vmem_handle_create(): memory_handle "handle for the allocation": each its own, NULL is an error. */
static void create_memory_handle(void **state)
{
    hsa_amd_vmem_alloc_handle_t a = create(PAGE), b = create(PAGE);

    (void)state;
    assert_int_not_equal(a.handle, b.handle);
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], PAGE, MEMORY_TYPE_NONE, 0, NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_handle_release(a));
    assert_success(hsa_amd_vmem_handle_release(b));
}

/* hsa_amd_vmem_handle_create(): HSA_STATUS_ERROR_OUT_OF_RESOURCES: "Insufficient resources to allocate this
 * memory". */
static void create_out_of_resources(void **state)
{
    hsa_amd_vmem_alloc_handle_t most, handle;
    size_t max = 0;

    (void)state;
    assert_success(hsa_amd_memory_pool_get_info(pools[0][FINE], HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, &max));
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], max - MIB, MEMORY_TYPE_PINNED, 0, &most));
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], 4 * MIB, MEMORY_TYPE_PINNED, 0, &handle),
                  HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_success(hsa_amd_vmem_handle_release(most));
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], 4 * MIB, MEMORY_TYPE_PINNED, 0, &handle));
    assert_success(hsa_amd_vmem_handle_release(handle));
}

/* hsa_amd_vmem_handle_release(memory_handle): memory_handle "that was previously allocated": HSA_STATUS_SUCCESS,
 * and the memory is given back; HSA_STATUS_ERROR_INVALID_ALLOCATION: "Invalid memory handle". What is mapped stays.
 * */
static void release_memory_handle(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE);
    char *va;

    (void)state;
    assert_status(release(0), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(release(UINT64_MAX), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_handle_release(handle), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_vmem_handle_release(handle), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    hsa_nothing_left(state);
    handle = create(PAGE);
    va = map(handle, PAGE);
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_status(hsa_amd_vmem_handle_release(handle), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    memcpy(va, "still there", sizeof("still there"));
    assert_string_equal(va, "still there");
    unmap(va, PAGE);
}

/* ---- hsa_amd_vmem_retain_alloc_handle(), hsa_amd_vmem_get_alloc_properties_from_handle() ----------------- */

/* hsa_amd_vmem_retain_alloc_handle(memory_handle, addr): addr "mapped address", any of it: HSA_STATUS_SUCCESS; "The
 * handle will be the same value of handle used to map the memory", also if that was released.
 * HSA_STATUS_ERROR_INVALID_ALLOCATION: "Invalid address". */
static void retain_addr(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(2 * PAGE), got = {0};
    char *va = map(handle, 2 * PAGE);

    (void)state;
    assert_status(hsa_amd_vmem_retain_alloc_handle(&got, va), HSA_STATUS_SUCCESS);
    assert_int_equal(got.handle, handle.handle);
    assert_success(hsa_amd_vmem_retain_alloc_handle(&got, va + 2 * PAGE - 1));
    assert_int_equal(got.handle, handle.handle);
    for (unsigned i = 0; i < 3; i++)
        assert_success(hsa_amd_vmem_handle_release(handle));
    assert_status(hsa_amd_vmem_handle_release(handle), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_retain_alloc_handle(&got, va));
    assert_int_equal(got.handle, handle.handle);
    assert_success(hsa_amd_vmem_handle_release(got));
    assert_status(hsa_amd_vmem_retain_alloc_handle(&got, va + 2 * PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_retain_alloc_handle(&got, &va), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_retain_alloc_handle(&got, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    unmap(va, 2 * PAGE);
}

/* hsa_amd_vmem_retain_alloc_handle(): memory_handle "must be released with corresponding number of calls to
 * hsa_amd_vmem_handle_release": until then the memory is there. */
static void retain_memory_handle(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE), got;
    char *va = map(handle, PAGE);

    (void)state;
    *va = 42;
    assert_status(hsa_amd_vmem_retain_alloc_handle(NULL, va), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_retain_alloc_handle(&got, va));
    unmap(va, PAGE);
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    va = map(got, PAGE);
    assert_int_equal(*va, 42);
    unmap(va, PAGE);
    assert_success(hsa_amd_vmem_handle_release(got));
    hsa_nothing_left(state);
    assert_status(hsa_amd_vmem_handle_release(got), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_amd_vmem_get_alloc_properties_from_handle(memory_handle, pool, type): pool "that owns this handle", type "of
 * memory": HSA_STATUS_SUCCESS and what it was created with; memory_handle "to be queried":
 * HSA_STATUS_ERROR_INVALID_ALLOCATION: "Invalid memory_handle". */
static void get_alloc_properties(void **state)
{
    const hsa_amd_memory_type_t types[] = {MEMORY_TYPE_NONE, MEMORY_TYPE_PINNED};
    hsa_amd_vmem_alloc_handle_t handle = {0};
    hsa_amd_memory_pool_t pool;
    hsa_amd_memory_type_t type;

    (void)state;
    for (unsigned i = 0; i < AGENTS * POOLS * 2; i++) {
        hsa_amd_memory_pool_t wanted = pools[i / 2 % AGENTS][i / 2 / AGENTS];

        assert_success(hsa_amd_vmem_handle_create(wanted, PAGE, types[i % 2], 0, &handle));
        assert_status(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, &type), HSA_STATUS_SUCCESS);
        assert_int_equal(pool.handle, wanted.handle);
        assert_int_equal(type, types[i % 2]);
        assert_status(hsa_amd_vmem_get_alloc_properties_from_handle(handle, NULL, &type),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
        assert_status(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, NULL),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
        assert_success(hsa_amd_vmem_handle_release(handle));
    }
    assert_status(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, &type),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
    handle.handle = 0;
    assert_status(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, &type),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* ---- hsa_amd_vmem_export_shareable_handle(), hsa_amd_vmem_import_shareable_handle() ---------------------- */

/* hsa_amd_vmem_export_shareable_handle(dmabuf_fd, handle, flags): dmabuf_fd "shareable handle": HSA_STATUS_SUCCESS
 * and a descriptor, a new one each time, "re-create a virtual memory handle using
 * hsa_amd_vmem_import_shareable_handle". */
static void export_dmabuf_fd(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE), again = {0};
    int a = export(handle), b = export(handle);

    (void)state;
    assert_int_not_equal(a, b);
    assert_int_equal(fcntl(a, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_success(hsa_amd_vmem_import_shareable_handle(a, &again));
    assert_success(hsa_amd_vmem_handle_release(again));
    assert_int_equal(close(a), 0);
    assert_int_equal(close(b), 0);
    assert_status(hsa_amd_vmem_export_shareable_handle(NULL, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_handle_release(handle));
}

/* hsa_amd_vmem_export_shareable_handle(): handle "previously allocated": HSA_STATUS_ERROR_INVALID_ALLOCATION:
 * "Invalid memory handle". */
static void export_handle(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE);
    int fd = 5;

    (void)state;
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_status(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_int_equal(fd, -1);
    handle.handle = 0;
    assert_status(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_amd_vmem_export_shareable_handle(): flags "Currently unsupported": they make no difference. */
static void export_flags(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE);
    int fd = -1;

    (void)state;
    assert_success(hsa_amd_vmem_export_shareable_handle(&fd, handle, UINT64_MAX));
    assert_int_equal(close(fd), 0);
    assert_success(hsa_amd_vmem_handle_release(handle));
}

/* hsa_amd_vmem_export_shareable_handle(): HSA_STATUS_ERROR_OUT_OF_RESOURCES: "Out of resources": no descriptor is
 * left to this process. */
static void export_out_of_resources(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle;
    struct rlimit old;
    hsa_status_t status;
    int fd = 5;

    (void)state;
    if (test_under_valgrind())
        test_skip("valgrind lets a process receive more descriptors than its limit");
    handle = create(PAGE);
    old = limit_descriptors();
    status = hsa_amd_vmem_export_shareable_handle(&fd, handle, 0);
    assert_ok(setrlimit(RLIMIT_NOFILE, &old));
    assert_status(status, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_int_equal(fd, -1);
    close(export(handle));
    assert_success(hsa_amd_vmem_handle_release(handle));
}

/* hsa_amd_vmem_export_shareable_handle(): "Once all shareable handles are closed, the memory_handle is released": a
 * shareable handle and a handle each hold the memory, and when the last of them is gone it is free. */
static void export_keeps(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE), again = {0};
    char *va = map(handle, PAGE);
    int fd = export(handle);

    (void)state;
    *va = 42;
    unmap(va, PAGE);
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_import_shareable_handle(fd, &again));
    va = map(again, PAGE);
    assert_int_equal(*va, 42);
    unmap(va, PAGE);
    assert_success(hsa_amd_vmem_handle_release(again));
    assert_int_equal(close(fd), 0);
    hsa_nothing_left(state);
}

static void importer(int channel, void *data)
{
    hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, {0}};
    hsa_amd_vmem_alloc_handle_t handle;
    int fd = fd_receive_one(channel);
    char *va;

    (void)data;
    CHECK(fd >= 0);
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_vmem_import_shareable_handle(fd, &handle) == HSA_STATUS_SUCCESS);
    CHECK(close(fd) == 0);
    rw.agent_handle = agents[1];
    CHECK(hsa_amd_vmem_address_reserve((void **)&va, PAGE, 0, 0) == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_vmem_map(va, PAGE, 0, handle, 0) == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_vmem_set_access(va, PAGE, &rw, 1) == HSA_STATUS_SUCCESS);
    CHECK(strcmp(va, "from the parent") == 0);
    memcpy(va, "from the child", sizeof("from the child"));
    CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
}

/* hsa_amd_vmem_export_shareable_handle(): "The shareable handle can be transferred using mechanisms that support
 * posix file descriptors": another process imports it (hsa_amd_vmem_import_shareable_handle), and both see the same
 * memory. */
static void export_to_another_process(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE);
    char *va = map(handle, PAGE);
    struct child child;
    int fd = export(handle);

    (void)state;
    memcpy(va, "from the parent", sizeof("from the parent"));
    child_start(&child, importer, NULL);
    assert_int_equal(fd_send_one(child.channel, fd), 1);
    assert_int_equal(close(fd), 0);
    child_finish(&child);
    assert_string_equal(va, "from the child");
    unmap(va, PAGE);
    assert_success(hsa_amd_vmem_handle_release(handle));
}

/* hsa_amd_vmem_import_shareable_handle(dmabuf_fd, handle): dmabuf_fd "exported with
 * hsa_amd_vmem_export_shareable_handle": HSA_STATUS_SUCCESS, and it stays the caller's;
 * HSA_STATUS_ERROR_INVALID_ALLOCATION for any other descriptor, HSA_STATUS_ERROR_INVALID_ARGUMENT for a negative
 * one. */
static void import_dmabuf_fd(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE), again = {77};
    int foreign = memfd_create("foreign", MFD_CLOEXEC), file = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fd = export(handle);

    (void)state;
    assert_ok(ftruncate(foreign, (off_t)PAGE));
    assert_status(hsa_amd_vmem_import_shareable_handle(foreign, &again), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_import_shareable_handle(file, &again), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_import_shareable_handle(-1, &again), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_int_equal(again.handle, 77);
    assert_status(hsa_amd_vmem_import_shareable_handle(fd, &again), HSA_STATUS_SUCCESS);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    assert_success(hsa_amd_vmem_handle_release(again));
    assert_success(hsa_amd_vmem_handle_release(handle));
    close(fd);
    close(foreign);
    close(file);
}

/* hsa_amd_vmem_import_shareable_handle(): handle "virtual memory handle": of the same memory, the same value here,
 * to be released once for each import; NULL is an error. "Importing a shareable handle that has been closed and
 * released results in undefined behavior": here the number is that of no memory,
 * HSA_STATUS_ERROR_INVALID_ALLOCATION. */
static void import_handle(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE), again = {0};
    int fd = export(handle);

    (void)state;
    assert_status(hsa_amd_vmem_import_shareable_handle(fd, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < 64; i++) {
        assert_success(hsa_amd_vmem_import_shareable_handle(fd, &again));
        assert_int_equal(again.handle, handle.handle);
    }
    for (unsigned i = 0; i < 65; i++)
        assert_success(hsa_amd_vmem_handle_release(handle));
    assert_status(hsa_amd_vmem_handle_release(handle), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    close(fd);
    assert_status(hsa_amd_vmem_import_shareable_handle(fd, &again), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

static void import_without_memory(int channel, void *data)
{
    hsa_amd_vmem_alloc_handle_t handle;
    int fd = fd_receive_one(channel);

    (void)data;
    CHECK(fd >= 0);
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    child_use_up_memory();
    CHECK(hsa_amd_vmem_import_shareable_handle(fd, &handle) == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
}

/* hsa_amd_vmem_import_shareable_handle(): HSA_STATUS_ERROR_OUT_OF_RESOURCES: "Out of resources". */
static void import_out_of_resources(void **state)
{
    hsa_amd_vmem_alloc_handle_t handle = create(PAGE);
    struct child child;
    int fd = export(handle);

    (void)state;
    child_start(&child, import_without_memory, NULL);
    assert_int_equal(fd_send_one(child.channel, fd), 1);
    assert_int_equal(close(fd), 0);
    assert_success(hsa_amd_vmem_handle_release(handle));
    child_finish(&child);
}

/* HSA_STATUS_ERROR "Unexpected internal error" of hsa_amd_vmem_export_shareable_handle() and
 * hsa_amd_vmem_import_shareable_handle(): nothing that a program passes gives it. */
static void nothing_is_unexpected(void **state)
{
    const uint64_t handles[] = {0, 1, 2, 1000, UINT64_MAX, INT64_MAX};
    hsa_amd_vmem_alloc_handle_t handle;
    int fd;

    (void)state;
    for (int i = -3; i < 300; i++)
        assert_int_not_equal(hsa_amd_vmem_import_shareable_handle(i, &handle), HSA_STATUS_ERROR);
    for (unsigned i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        handle.handle = handles[i];
        assert_int_not_equal(hsa_amd_vmem_export_shareable_handle(&fd, handle, i), HSA_STATUS_ERROR);
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(create_pool),
        TEST(create_not_allowed),
        TEST(create_size),
        TEST(create_type),
        TEST(create_flags),
        TEST(create_memory_handle),
        TEST(create_out_of_resources),
        TEST(release_memory_handle),
        TEST(retain_addr),
        TEST(retain_memory_handle),
        TEST(get_alloc_properties),
        TEST(export_dmabuf_fd),
        TEST(export_handle),
        TEST(export_flags),
        TEST(export_out_of_resources),
        TEST(export_keeps),
        TEST(export_to_another_process),
        TEST(import_dmabuf_fd),
        TEST(import_handle),
        TEST(import_out_of_resources),
        TEST(nothing_is_unexpected),
    };

    hsa_config = "[pools]\ncapacity = 64M\n";
    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
