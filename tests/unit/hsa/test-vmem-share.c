/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing handles: hsa_amd_vmem_export_shareable_handle() and hsa_amd_vmem_import_shareable_handle(), within a process
 * and between two. Sentences in quotation marks are the document's.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/hsa/vmem.h"

#define SIZE               ((size_t)2 << 20)
#define MANY               2000
#define INVALID_ARGUMENT   HSA_STATUS_ERROR_INVALID_ARGUMENT
#define INVALID_ALLOCATION HSA_STATUS_ERROR_INVALID_ALLOCATION

static int export(handle_t handle)
{
    int fd = -1;

    assert_success(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0));
    assert_true(fd >= 0);
    return fd;
}

static handle_t import(int fd)
{
    handle_t handle = {0};

    assert_success(hsa_amd_vmem_import_shareable_handle(fd, &handle));
    assert_int_not_equal(handle.handle, 0);
    return handle;
}

/* ---- export ------------------------------------------------------------------------------------------------------ */

/* hsa_amd_vmem_export_shareable_handle, dmabuf_fd, SUCCESS: "Get an exportable shareable handle": a new one each time,
 * the caller's, and closed by exec. */
static void export_dmabuf_fd_is_a_new_one_each_time(void **state)
{
    handle_t handle = vmem_create(SIZE);
    struct stat of[3];
    int fds[3];

    for (unsigned i = 0; i < 3; i++) {
        fds[i] = export(handle);
        assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
        assert_ok(fstat(fds[i], &of[i]));
        assert_true(of[i].st_ino == of[0].st_ino && of[i].st_dev == of[0].st_dev);
        assert_int_equal(of[i].st_size, SIZE);
    }
    /* not one open file that they share */
    assert_ok(lseek(fds[0], 5, SEEK_SET));
    assert_int_equal(lseek(fds[1], 0, SEEK_CUR), 0);
    assert_true(fds[0] != fds[1] && fds[1] != fds[2]);
    for (unsigned i = 0; i < 3; i++)
        assert_ok(close(fds[i]));
    vmem_release(handle);
}

/* "HSA_STATUS_ERROR_INVALID_ALLOCATION - Invalid memory handle" */
static void export_handle_that_is_none_is_invalid_allocation(void **state)
{
    handle_t gone = vmem_create(SIZE);
    int fd = 7;

    vmem_release(gone);
    assert_status(hsa_amd_vmem_export_shareable_handle(&fd, gone, 0), INVALID_ALLOCATION);
    assert_int_equal(fd, -1);
    assert_status(hsa_amd_vmem_export_shareable_handle(&fd, (handle_t){0}, 0), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_export_shareable_handle(&fd, (handle_t){UINT64_MAX}, 0), INVALID_ALLOCATION);
}

static void export_dmabuf_fd_null_is_invalid_argument(void **state)
{
    handle_t handle = vmem_create(SIZE);

    assert_status(hsa_amd_vmem_export_shareable_handle(NULL, handle, 0), INVALID_ARGUMENT);
    vmem_release(handle);
}

/* flags "currently unsupported" */
static void export_flags_are_ignored(void **state)
{
    handle_t handle = vmem_create(SIZE);
    int fd;

    assert_success(hsa_amd_vmem_export_shareable_handle(&fd, handle, UINT64_MAX));
    close(fd);
    vmem_release(handle);
}

/* "HSA_STATUS_ERROR_OUT_OF_RESOURCES - Out of resources": the process has no descriptor left. */
static void export_without_descriptors_is_out_of_resources(void **state)
{
    handle_t handle = vmem_create(SIZE);
    struct rlimit limit, none;
    hsa_status_t status;
    int fd = 7, last;

    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    last = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_ok(last);
    none = (struct rlimit){.rlim_cur = (rlim_t)last + 1, .rlim_max = limit.rlim_max};
    assert_ok(setrlimit(RLIMIT_NOFILE, &none));
    status = hsa_amd_vmem_export_shareable_handle(&fd, handle, 0);
    assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
    assert_status(status, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_int_equal(fd, -1);
    close(last);
    close(export(handle));
    vmem_release(handle);
}

/* hsa_amd_vmem_export_shareable_handle: "Once all shareable handles are closed, the memory_handle is released": each of
 * both keeps the memory. */
static void export_dmabuf_fd_keeps_the_memory_alive(void **state)
{
    char *va = vmem_reserve(SIZE);
    handle_t handle = vmem_create(SIZE), again;
    int fd = export(handle);

    vmem_map_rw(va, SIZE, handle);
    write_text(va, "kept by a descriptor");
    vmem_unmap(va, SIZE);
    vmem_release(handle);
    again = import(fd);
    close(fd);
    vmem_map_rw(va, SIZE, again);
    assert_string_equal(va, "kept by a descriptor");
    vmem_unmap(va, SIZE);
    vmem_release(again);
    assert_status(hsa_amd_vmem_handle_release(again), INVALID_ALLOCATION);
    vmem_free(va, SIZE);
}

/* ---- import ------------------------------------------------------------------------------------------------------ */

/* hsa_amd_vmem_export_shareable_handle; hsa_amd_vmem_import_shareable_handle, dmabuf_fd: "re-create a virtual memory
 * handle": of what this process has, it is the same one, and a reference more. */
static void import_dmabuf_fd_of_ones_own_is_the_same_handle(void **state)
{
    handle_t handle = vmem_create_in(pools[1][COARSE], SIZE);
    hsa_amd_memory_pool_t pool;
    hsa_amd_memory_type_t type;
    int fd = export(handle);

    assert_int_equal(import(fd).handle, handle.handle);
    assert_int_equal(import(fd).handle, handle.handle);
    /* the descriptor is still the caller's */
    assert_ok(fcntl(fd, F_GETFD));
    close(fd);
    assert_success(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, &type));
    assert_int_equal(pool.handle, pools[1][COARSE].handle);
    for (unsigned i = 0; i < 3; i++)
        vmem_release(handle);
    assert_status(hsa_amd_vmem_handle_release(handle), INVALID_ALLOCATION);
}

/* Released, but mapped: it lives again, as by retain. */
static void import_dmabuf_fd_of_what_is_only_mapped_is_the_same_handle(void **state)
{
    char *va = vmem_reserve(SIZE);
    handle_t handle = vmem_create(SIZE);
    int fd = export(handle);

    vmem_map(va, SIZE, handle);
    vmem_release(handle);
    assert_int_equal(import(fd).handle, handle.handle);
    close(fd);
    vmem_unmap(va, SIZE);
    vmem_release(handle);
    vmem_free(va, SIZE);
}

/* "HSA_STATUS_ERROR_INVALID_ALLOCATION - Invalid memory handle": no memory of the broker's. */
static void import_dmabuf_fd_that_is_foreign_is_invalid_allocation(void **state)
{
    int fds[] = {
        open("/dev/null", O_RDWR | O_CLOEXEC),
        memfd_create("foreign", MFD_CLOEXEC),
        open("/proc/self/maps", O_RDONLY | O_CLOEXEC),
        open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        open("/", O_PATH | O_CLOEXEC),
    };
    handle_t handle = {7};

    for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        assert_ok(fds[i]);
        assert_status(hsa_amd_vmem_import_shareable_handle(fds[i], &handle), INVALID_ALLOCATION);
        assert_ok(fcntl(fds[i], F_GETFD));
        close(fds[i]);
    }
    assert_int_equal(handle.handle, 7);
}

/* "Importing a shareable handle that has been closed and released results in undefined behavior": it is an error. */
static void import_dmabuf_fd_that_is_closed_is_invalid_allocation(void **state)
{
    handle_t handle = vmem_create(SIZE), again = {7};
    int fd = export(handle);

    close(fd);
    vmem_release(handle);
    assert_status(hsa_amd_vmem_import_shareable_handle(fd, &again), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_import_shareable_handle(INT32_MAX, &again), INVALID_ALLOCATION);
    assert_int_equal(again.handle, 7);
}

static void import_dmabuf_fd_negative_or_handle_null_is_invalid_argument(void **state)
{
    handle_t handle = vmem_create(SIZE), again = {7};
    int fd = export(handle);

    assert_status(hsa_amd_vmem_import_shareable_handle(-1, &again), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_import_shareable_handle(INT32_MIN, &again), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_import_shareable_handle(fd, NULL), INVALID_ARGUMENT);
    assert_int_equal(again.handle, 7);
    close(fd);
    vmem_release(handle);
}

static void import_without_memory(int channel, void *data)
{
    handle_t handle;
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
    handle_t handle = vmem_create(SIZE);
    struct child child;
    int fd = export(handle);

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
    handle_t handle;
    int fd;

    for (int i = -3; i < 300; i++)
        assert_int_not_equal(hsa_amd_vmem_import_shareable_handle(i, &handle), HSA_STATUS_ERROR);
    for (unsigned i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        handle.handle = handles[i];
        assert_int_not_equal(hsa_amd_vmem_export_shareable_handle(&fd, handle, i), HSA_STATUS_ERROR);
    }
}

/* Nothing piles up: neither descriptors, nor references, nor memory. */
static void import_after_export_and_close_64_times(void **state)
{
    handle_t handle = vmem_create(SIZE);
    unsigned fds = fd_count();

    for (unsigned i = 0; i < 64; i++) {
        int fd = export(handle);
        handle_t again = import(fd);

        close(fd);
        assert_int_equal(again.handle, handle.handle);
        vmem_release(again);
    }
    assert_int_equal(fd_count(), fds);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    vmem_release(handle);
    for (unsigned i = 0; i < 64; i++) {
        handle_t once = vmem_create(SIZE), again;
        int fd = export(once);

        vmem_release(once);
        again = import(fd);
        close(fd);
        vmem_release(again);
        assert_true(fd_count() <= fds);
    }
}

/* No descriptor is kept for as long as a handle lives. */
static void handles_are_2000_with_256_descriptors(void **state)
{
    static handle_t many[MANY];
    size_t page = page_size();
    char *va = vmem_reserve(MANY * page);
    struct rlimit limit, few;

    assert_ok(getrlimit(RLIMIT_NOFILE, &limit));
    few = (struct rlimit){.rlim_cur = 256, .rlim_max = limit.rlim_max};
    assert_ok(setrlimit(RLIMIT_NOFILE, &few));
    for (unsigned i = 0; i < MANY; i++) {
        many[i] = vmem_create_in(pools[i % AGENTS][i % POOLS], page);
        vmem_map(va + i * page, page, many[i]);
    }
    vmem_allow(va, MANY * page);
    for (unsigned i = 0; i < MANY; i++)
        memcpy(va + i * page, &i, sizeof(i));
    vmem_unmap(va, MANY * page);
    for (unsigned i = 0; i < MANY; i += 7) {
        int fd = export(many[i]);
        handle_t again = import(fd);

        close(fd);
        assert_int_equal(again.handle, many[i].handle);
        vmem_release(again);
        vmem_map_rw(va + i * page, page, many[i]);
        assert_memory_equal(va + i * page, &i, sizeof(i));
        vmem_unmap(va + i * page, page);
    }
    assert_ok(setrlimit(RLIMIT_NOFILE, &limit));
    for (unsigned i = 0; i < MANY; i++)
        vmem_release(many[i]);
    vmem_free(va, MANY * page);
}

/* ---- another process --------------------------------------------------------------------------------------------- */

#define DONE(call) CHECK(!(call))

/* What the importer does with what it gets; it writes back how it finds the handle. */
struct found {
    hsa_amd_memory_pool_t pool;
    hsa_amd_memory_type_t type;
};

static void be_the_importer(int channel, void *context)
{
    const hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, agents[1]};
    struct found *found = context;
    handle_t handle, again;
    void *va;
    int fd;

    CHECK(hsa_amd_vmem_import_shareable_handle(0, &handle) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    DONE(hsa_init());
    fd = fd_receive_one(channel);
    DONE(hsa_amd_vmem_import_shareable_handle(fd, &handle));
    DONE(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &found->pool, &found->type));
    DONE(hsa_amd_vmem_address_reserve(&va, 2 * SIZE, 0, 0));
    DONE(hsa_amd_vmem_map(va, 2 * SIZE, 0, handle, 0));
    DONE(hsa_amd_vmem_set_access(va, 2 * SIZE, &rw, 1));
    CHECK(!strcmp(va, "from the exporter"));
    write_text((char *)va + 2 * SIZE - 32, "from the importer");
    tell(channel);
    hear(channel);
    /* the exporter has let go; it is exported once more, by whom it does not belong to */
    CHECK(!strcmp((char *)va + 64, "and once more"));
    close(fd);
    DONE(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0));
    DONE(hsa_amd_vmem_import_shareable_handle(fd, &again));
    CHECK(again.handle == handle.handle);
    CHECK(fd_send_one(channel, fd) == 1);
    hear(channel);
    DONE(hsa_shut_down());
}

/* "The shareable handle can be transferred using mechanisms that support posix file descriptors" */
static void share_by_descriptor_between_two_processes(hsa_amd_memory_pool_t pool, hsa_amd_memory_type_t type)
{
    struct found *found = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *va = vmem_reserve(2 * SIZE);
    struct child importer;
    handle_t handle;
    int fd;

    assert_mapped(found);
    child_start(&importer, be_the_importer, found);
    assert_success(hsa_amd_vmem_handle_create(pool, 2 * SIZE, type, 0, &handle));
    vmem_map_rw(va, 2 * SIZE, handle);
    write_text(va, "from the exporter");
    fd = export(handle);
    assert_int_equal(fd_send_one(importer.channel, fd), 1);
    close(fd);
    child_hear(&importer);
    assert_string_equal(va + 2 * SIZE - 32, "from the importer");
    write_text(va + 64, "and once more");
    vmem_unmap(va, 2 * SIZE);
    vmem_release(handle);
    child_tell(&importer);
    fd = fd_receive_one(importer.channel);
    assert_ok(fd);
    handle = import(fd);
    close(fd);
    child_tell(&importer);
    child_finish(&importer);
    /* true of the importer too */
    assert_int_equal(found->type, type);
    assert_int_equal(found->pool.handle, pools[pool.handle == pools[1][COARSE].handle][FINE].handle);
    vmem_map_rw(va, 2 * SIZE, handle);
    assert_string_equal(va + 64, "and once more");
    vmem_unmap(va, 2 * SIZE);
    vmem_release(handle);
    vmem_free(va, 2 * SIZE);
    assert_ok(munmap(found, page_size()));
}

/* hsa_amd_vmem_export_shareable_handle */
static void import_in_another_process_shares_the_memory(void **state)
{
    share_by_descriptor_between_two_processes(pools[0][FINE], MEMORY_TYPE_NONE);
    hsa_nothing_left(state);
    share_by_descriptor_between_two_processes(pools[1][COARSE], MEMORY_TYPE_PINNED);
}

/* By a descriptor for reading only: nobody there may write. */
static void import_for_reading(int channel, void *context)
{
    const hsa_amd_memory_access_desc_t ro = {HSA_ACCESS_PERMISSION_RO, agents[0]};
    const hsa_amd_memory_access_desc_t both[] = {
        {HSA_ACCESS_PERMISSION_RO, agents[0]},
        {HSA_ACCESS_PERMISSION_RW, agents[1]},
    };
    hsa_access_permission_t permissions;
    handle_t handle;
    void *va;
    int fd;

    (void)context;
    DONE(hsa_init());
    fd = fd_receive_one(channel);
    DONE(hsa_amd_vmem_import_shareable_handle(fd, &handle));
    close(fd);
    DONE(hsa_amd_vmem_address_reserve(&va, 2 * SIZE, 0, 0));
    DONE(hsa_amd_vmem_map(va, SIZE, 0, handle, 0));
    DONE(hsa_amd_vmem_map((char *)va + SIZE, SIZE, 0, handle, 0));
    DONE(hsa_amd_vmem_set_access(va, SIZE, &ro, 1));
    CHECK(!strcmp(va, "to be read"));
    CHECK(hsa_amd_vmem_set_access(va, 2 * SIZE, both, 2) == INVALID_ARGUMENT);
    DONE(hsa_amd_vmem_get_access(va, &permissions, agents[0]));
    CHECK(permissions == HSA_ACCESS_PERMISSION_RO);
    CHECK(hsa_amd_vmem_get_access(va, &permissions, agents[1]) == INVALID_ALLOCATION);
    CHECK(!strcmp(vmem_pages(va), "r--") && !strcmp(vmem_pages((char *)va + SIZE), "---"));
    DONE(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0));
    CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    close(fd);
    DONE(hsa_amd_vmem_unmap(va, 2 * SIZE));
    DONE(hsa_amd_vmem_handle_release(handle));
    DONE(hsa_shut_down());
}

static void import_for_reading_only_never_writes(void **state)
{
    char *va = vmem_reserve(SIZE);
    handle_t handle = vmem_create(SIZE);
    struct child reader;
    int fd, read_only;

    vmem_map_rw(va, SIZE, handle);
    write_text(va, "to be read");
    child_start(&reader, import_for_reading, NULL);
    fd = export(handle);
    read_only = fd_reopen(fd, O_RDONLY);
    assert_ok(read_only);
    assert_int_equal(fd_send_one(reader.channel, read_only), 1);
    close(fd);
    close(read_only);
    child_finish(&reader);
    vmem_unmap(va, SIZE);
    vmem_release(handle);
    vmem_free(va, SIZE);
}

#define test(function) cmocka_unit_test_teardown(function, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(export_dmabuf_fd_is_a_new_one_each_time),
        test(export_handle_that_is_none_is_invalid_allocation),
        test(export_dmabuf_fd_null_is_invalid_argument),
        test(export_flags_are_ignored),
        test(export_without_descriptors_is_out_of_resources),
        test(export_dmabuf_fd_keeps_the_memory_alive),
        test(import_dmabuf_fd_of_ones_own_is_the_same_handle),
        test(import_dmabuf_fd_of_what_is_only_mapped_is_the_same_handle),
        test(import_dmabuf_fd_that_is_foreign_is_invalid_allocation),
        test(import_dmabuf_fd_that_is_closed_is_invalid_allocation),
        test(import_dmabuf_fd_negative_or_handle_null_is_invalid_argument),
        test(import_out_of_resources),
        test(nothing_is_unexpected),
        test(import_after_export_and_close_64_times),
        test(handles_are_2000_with_256_descriptors),
        test(import_in_another_process_shares_the_memory),
        test(import_for_reading_only_never_writes),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
