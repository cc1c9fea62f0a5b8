/* SPDX-License-Identifier: Apache-2.0 */
/* hsa_amd_portable_export_dmabuf, hsa_amd_portable_export_dmabuf_v2, hsa_amd_portable_close_dmabuf. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/unit/hsa/hsa.h"

#define SIZE (4 * MIB)

static void *allocate(size_t size)
{
    void *ptr;

    assert_success(hsa_amd_memory_pool_allocate(pools[1][COARSE], size, 0, &ptr));
    return ptr;
}

#define refuses(ptr, size, status) refuses_at(ptr, size, status, __LINE__)

/* Outputs are untouched. */
static void refuses_at(const void *ptr, size_t size, hsa_status_t status, int line)
{
    uint64_t offset = 77;
    int fd = -7;

    hsa_assert_status(hsa_amd_portable_export_dmabuf(ptr, size, &fd, &offset), status, "hsa_amd_portable_export_dmabuf",
                      __FILE__, line);
    hsa_assert_status(hsa_amd_portable_export_dmabuf_v2(ptr, size, &fd, &offset, HSA_AMD_DMABUF_MAPPING_TYPE_PCIE),
                      status, "hsa_amd_portable_export_dmabuf_v2", __FILE__, line);
    assert_int_equal(fd, -7);
    assert_int_equal(offset, 77);
}

/* hsa_amd_portable_export_dmabuf(ptr, size, dmabuf, offset), hsa_amd_portable_export_dmabuf_v2: INVALID_ARGUMENT,
 * INVALID_ALLOCATION */
static void export_checks_its_arguments(void **state)
{
    unsigned before = fd_count();
    char *ptr = allocate(SIZE), *ordinary = malloc(SIZE);
    uint64_t offset = 77;
    int fd = -7;

    refuses(NULL, SIZE, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses(ptr, 0, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_portable_export_dmabuf(ptr, SIZE, NULL, &offset), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_portable_export_dmabuf(ptr, SIZE, &fd, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_portable_export_dmabuf_v2(ptr, SIZE, NULL, &offset, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_portable_export_dmabuf_v2(ptr, SIZE, &fd, NULL, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    refuses(ptr, SIZE + 1, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    refuses(ptr, SIZE_MAX, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    refuses(ptr + 1, SIZE, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    refuses(ptr + SIZE, 1, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    refuses(ptr - 1, 2, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    refuses(ordinary, SIZE, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_register(ordinary, SIZE));
    refuses(ordinary, SIZE, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_deregister(ordinary, SIZE));
    assert_success(hsa_memory_free(ptr));
    refuses(ptr, SIZE, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_int_equal(fd, -7);
    assert_int_equal(offset, 77);
    assert_int_equal(fd_count(), before);
    free(ordinary);
}

/* hsa_amd_portable_export_dmabuf(ptr, size, dmabuf, offset), hsa_amd_portable_export_dmabuf_v2(ptr, size, dmabuf,
 * offset, flags): SUCCESS. The descriptor is of the whole memory, *offset where in it ptr is; it keeps the contents,
 * and is the caller's. */
static void exports_allocations(void **state)
{
    struct memclient_buffer *buf;
    struct memclient_context *native;
    char *ptr = allocate(SIZE), *there;
    struct stat properties;
    uint64_t offset;
    int fd, other;

    assert_success(hsa_amd_portable_export_dmabuf(ptr + 5000, 100, &fd, &offset));
    assert_int_equal(offset, 5000);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_ok(fstat(fd, &properties));
    assert_int_equal(properties.st_size, SIZE);
    assert_success(hsa_amd_portable_export_dmabuf_v2(ptr, SIZE, &other, &offset, HSA_AMD_DMABUF_MAPPING_TYPE_NONE));
    assert_int_equal(offset, 0);
    assert_int_not_equal(fd, other);
    there = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_mapped(there);
    memcpy(there + 5000, "exported", sizeof("exported"));
    assert_string_equal(ptr + 5000, "exported");
    assert_success(hsa_memory_free(ptr));
    assert_string_equal(there + 5000, "exported");
    assert_ok(munmap(there, SIZE));
    assert_success(hsa_amd_portable_close_dmabuf(fd));
    /* the native API imports it */
    assert_ok(memclient_context_open(NULL, &native));
    assert_ok(memclient_import_fd(native, other, &buf));
    assert_int_equal(memclient_buffer_size(buf), SIZE);
    assert_ok(memclient_map(buf, NULL, (void **)&there));
    assert_string_equal(there + 5000, "exported");
    memclient_context_close(native);
    memclient_buffer_unref(buf);
    assert_ok(close(other));
}

/* hsa_amd_portable_export_dmabuf: ptr, size: to the end of the last page, of which all is there */
static void exports_whole_pages(void **state)
{
    char *ptr = allocate(5000);
    uint64_t offset;
    int fd;

    assert_success(hsa_amd_portable_export_dmabuf(ptr, 8192, &fd, &offset));
    assert_success(hsa_amd_portable_close_dmabuf(fd));
    refuses(ptr, 8193, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_free(ptr));
}

static void exports_attached_memory(void **state)
{
    char *ptr = allocate(SIZE), *mapped;
    hsa_amd_ipc_memory_t handle;
    uint64_t offset;
    int fd;
    char c;

    assert_success(hsa_amd_ipc_memory_create(ptr, SIZE, &handle));
    assert_success(hsa_amd_ipc_memory_attach(&handle, SIZE, 0, NULL, (void **)&mapped));
    assert_success(hsa_amd_portable_export_dmabuf(mapped + MIB, MIB, &fd, &offset));
    assert_int_equal(offset, MIB);
    ptr[MIB] = 'x';
    assert_int_equal(pread(fd, &c, 1, MIB), 1);
    assert_int_equal(c, 'x');
    assert_success(hsa_amd_portable_close_dmabuf(fd));
    assert_success(hsa_amd_ipc_memory_detach(mapped));
    assert_success(hsa_memory_free(ptr));
}

/* Of virtual memory: the mapping's part of its handle's memory. A range over two mappings is in none. */
static void exports_virtual_memory(void **state)
{
    hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, agents[0]};
    hsa_amd_vmem_alloc_handle_t memory;
    uint64_t offset;
    char *va, c;
    int fd;

    assert_success(hsa_amd_vmem_address_reserve((void **)&va, 2 * SIZE, 0, 0));
    refuses(va, SIZE, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_handle_create(pools[0][FINE], SIZE, MEMORY_TYPE_NONE, 0, &memory));
    assert_success(hsa_amd_vmem_map(va, MIB, MIB, memory, 0));
    assert_success(hsa_amd_vmem_map(va + MIB, MIB, 0, memory, 0));
    assert_success(hsa_amd_vmem_set_access(va, 2 * MIB, &rw, 1));
    va[4096] = 'v';
    assert_success(hsa_amd_portable_export_dmabuf(va + 4096, 4096, &fd, &offset));
    assert_int_equal(offset, MIB + 4096);
    assert_int_equal(pread(fd, &c, 1, (off_t)offset), 1);
    assert_int_equal(c, 'v');
    assert_success(hsa_amd_portable_close_dmabuf(fd));
    refuses(va, 2 * MIB, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_unmap(va, 2 * MIB));
    refuses(va, MIB, HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_handle_release(memory));
    assert_success(hsa_amd_vmem_address_free(va, 2 * SIZE));
}

/* hsa_amd_portable_close_dmabuf(dmabuf): SUCCESS, then RESOURCE_FREE */
static void close_refuses_what_is_not_open(void **state)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_ok(fd);
    assert_success(hsa_amd_portable_close_dmabuf(fd));
    assert_status(hsa_amd_portable_close_dmabuf(fd), HSA_STATUS_ERROR_RESOURCE_FREE);
    assert_status(hsa_amd_portable_close_dmabuf(-1), HSA_STATUS_ERROR_RESOURCE_FREE);
}

/* "64 export-close-import cycles on one allocation" and many more: nothing is left */
static void many_exports(void **state)
{
    char *ptr = allocate(SIZE);
    unsigned before = fd_count();
    uint64_t offset;
    int fd;

    for (unsigned i = 0; i < 500; i++) {
        assert_success(hsa_amd_portable_export_dmabuf(ptr, SIZE, &fd, &offset));
        assert_success(hsa_amd_portable_close_dmabuf(fd));
    }
    assert_true(fd_count() <= before + 1);
    assert_success(hsa_memory_free(ptr));
}

static void call_all(int channel, void *context)
{
    uint64_t offset;
    int fd;

    (void)channel;
    CHECK(hsa_amd_portable_export_dmabuf(context, SIZE, &fd, &offset) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_portable_export_dmabuf(NULL, 0, NULL, NULL) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_portable_export_dmabuf_v2(context, SIZE, &fd, &offset, 0) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_portable_close_dmabuf(-1) == HSA_STATUS_ERROR_NOT_INITIALIZED);
}

static void not_initialized(void **state)
{
    char *ptr = allocate(SIZE);

    child_run(call_all, ptr);
    assert_success(hsa_memory_free(ptr));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(export_checks_its_arguments, hsa_nothing_left),
        cmocka_unit_test_teardown(exports_allocations, hsa_nothing_left),
        cmocka_unit_test_teardown(exports_whole_pages, hsa_nothing_left),
        cmocka_unit_test_teardown(exports_attached_memory, hsa_nothing_left),
        cmocka_unit_test_teardown(exports_virtual_memory, hsa_nothing_left),
        cmocka_unit_test_teardown(close_refuses_what_is_not_open, hsa_nothing_left),
        cmocka_unit_test_teardown(many_exports, hsa_nothing_left),
        cmocka_unit_test_teardown(not_initialized, hsa_nothing_left),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
