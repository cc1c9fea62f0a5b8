/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory of the OS provider within one process: when the broker is called, where memory is, what freeing a part
 * and purging give back, protections, names, and errors. test-ipc-shared and test-ipc-processes have the sharing.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/unit/umf/umf.h"

static umf_memory_provider_handle_t provider;
static size_t page;

static umf_memory_provider_handle_t make(unsigned protection, const char *name)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t made;

    params.visibility = UMF_MEM_MAP_SHARED;
    params.protection = protection;
    params.shm_name = (char *)(uintptr_t)name;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &made));
    return made;
}

static int setup(void **state)
{
    provider = make(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, NULL);
    return 0;
}

static int teardown(void **state)
{
    umfMemoryProviderDestroy(provider);
    return umf_nothing_left(state);
}

static char *alloc(size_t size, size_t alignment)
{
    void *ptr = NULL;

    assert_success(umfMemoryProviderAlloc(provider, size, alignment, &ptr));
    assert_non_null(ptr);
    return ptr;
}

static struct memclient_buffer *buffer_of(const void *ptr)
{
    struct memclient_buffer *buffer = NULL;

    assert_success(umfMemorydGetBuffer(ptr, &buffer));
    return buffer;
}

/* Bytes of the buffer at ptr that have pages. */
static size_t pages_at(const void *ptr)
{
    struct memclient_buffer *buffer = buffer_of(ptr);
    struct stat st;
    int fd;

    assert_int_equal(memclient_export_fd(buffer, 0, &fd), 0);
    assert_ok(fstat(fd, &st));
    assert_ok(close(fd));
    memclient_buffer_unref(buffer);
    return (size_t)st.st_blocks * 512;
}

static bool is_mapped(const void *ptr)
{
    unsigned char resident;

    return !mincore((void *)((uintptr_t)ptr / page * page), 1, &resident);
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

static void test_no_call_before_memory(void **state)
{
    umf_memory_provider_handle_t idle;
    uint64_t before;
    size_t size;

    observer_settle();
    before = observer_requests();
    idle = make(UMF_PROTECTION_READ, "name");
    assert_success(umfMemoryProviderGetMinPageSize(idle, NULL, &size));
    assert_int_equal(size, page);
    assert_success(umfMemoryProviderGetRecommendedPageSize(idle, 64 * MIB, &size));
    assert_true(size >= page);
    assert_success(umfMemoryProviderGetIPCHandleSize(idle, &size));
    assert_int_equal(size, 64);
    assert_string_equal(umfMemoryProviderGetName(idle), "OS");
    /* one of 256 stacks has a variable at the beginning of a page, where something else is the mistake */
    assert_result(umfMemoryProviderFree(idle, (char *)&size + 1, size), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    umfMemoryProviderDestroy(idle);
    assert_int_equal(observer_requests(), before);
}

static void test_home(void **state)
{
    char *ptr = alloc(3 * page + 64, 0);
    struct memclient_buffer *buffer = buffer_of(ptr), *none = NULL;

    assert_ptr_equal(memclient_buffer_home(buffer), ptr);
    assert_int_equal(memclient_buffer_bytes(buffer), 4 * page);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_int_equal(pages_at(ptr), 4 * page);
    memclient_buffer_unref(buffer);
    assert_result(umfMemorydGetBuffer(&buffer, &none), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydGetBuffer(NULL, &none), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemorydGetBuffer(ptr, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(none);
    assert_success(umfMemoryProviderFree(provider, ptr, 3 * page + 64));
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_false(is_mapped(ptr));
}

static void test_alignments(void **state)
{
    const size_t good[] = {0, 1, page / 2, page, 2 * page, 3 * page, 7 * page, 512 * page, 768 * page};
    const size_t sizes[] = {1, page, page + 64, 10 * page};
    void *ptr = &ptr;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
            char *at = alloc(sizes[k], good[i]);
            struct memclient_buffer *buffer = buffer_of(at);

            assert_int_equal((uintptr_t)at % (good[i] ? good[i] : 1), 0);
            assert_ptr_equal(memclient_buffer_home(buffer), at);
            memclient_buffer_unref(buffer);
            for (size_t n = 0; n < sizes[k]; n += page)
                assert_int_equal(at[n], 0);
            memset(at, 1, sizes[k]);
            assert_success(umfMemoryProviderFree(provider, at, sizes[k]));
            assert_false(is_mapped(at));
        }
    assert_result(umfMemoryProviderAlloc(provider, page, page + 1, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAlloc(provider, page, 3, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAlloc(provider, page, 0, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(ptr, &ptr);
}

/* If a buffer's home is occupied, it is mapped elsewhere, with the same alignment. */
static void test_home_is_taken(void **state)
{
    char *first = alloc(16 * page, 16 * page), *block, *next;
    size_t room = 256 * page;

    assert_success(umfMemoryProviderFree(provider, first, 16 * page));
    block = mmap(first, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(block, first);
    next = alloc(16 * page, 16 * page);
    assert_int_equal((uintptr_t)next % (16 * page), 0);
    memset(next, 1, 16 * page);
    assert_success(umfMemoryProviderFree(provider, next, 16 * page));
    assert_int_equal(munmap(block, room), 0);
}

/* umf_os_memory_provider_native_error_t */
static void test_impossible(void **state)
{
    void *ptr = &ptr;

    assert_native(provider, umfMemoryProviderAlloc(provider, SIZE_MAX, 0, &ptr), UMF_OS_RESULT_ERROR_ALLOC_FAILED,
                  "memory allocation failed: ");
    assert_native(provider, umfMemoryProviderAlloc(provider, 0, 0, &ptr), 1001, "memory allocation failed: ");
    assert_native(provider, umfMemoryProviderAlloc(provider, TIB * 512, 0, &ptr), 1001, "memory allocation failed: ");
    assert_ptr_equal(ptr, &ptr);
    /* the provider still works */
    assert_success(umfMemoryProviderFree(provider, alloc(100, 0), 100));
}

/* ---- giving back ------------------------------------------------------------------------------------------------- */

static void test_parts(void **state)
{
    char *ptr = alloc(8 * page, 0);

    memset(ptr, 7, 8 * page);
    assert_success(umfMemoryProviderAllocationSplit(provider, ptr, 8 * page, 2 * page));
    assert_success(umfMemoryProviderAllocationSplit(provider, ptr + 2 * page, 6 * page, page));
    assert_success(umfMemoryProviderAllocationMerge(provider, ptr, ptr + 2 * page, 3 * page));
    assert_success(umfMemoryProviderAllocationSplit(provider, ptr, 3 * page, 2 * page));
    /* the middle one: its pages go, the others do not change */
    assert_success(umfMemoryProviderFree(provider, ptr + 2 * page, page));
    assert_false(is_mapped(ptr + 2 * page));
    assert_int_equal(pages_at(ptr), 7 * page);
    assert_true(ptr[2 * page - 1] == 7 && ptr[3 * page] == 7);
    assert_result(umfMemoryProviderFree(provider, ptr + 2 * page, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAllocationMerge(provider, ptr, ptr + 2 * page, 4 * page),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, ptr, 2 * page));
    assert_int_equal(pages_at(ptr + 3 * page), 5 * page);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_success(umfMemoryProviderFree(provider, ptr + 3 * page, 5 * page));
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
}

/* Allocations that were never one cannot be merged, even if they are adjacent. */
static void test_no_merging_of_strangers(void **state)
{
    char *a = alloc(page, 0), *b = alloc(page, 0);
    char *low = a < b ? a : b, *high = a < b ? b : a;

    assert_result(umfMemoryProviderAllocationMerge(provider, low, high, (size_t)(high - low) + page),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, a, page));
    assert_success(umfMemoryProviderFree(provider, b, page));
}

static void test_freeing(void **state)
{
    umf_memory_provider_handle_t other = make(UMF_PROTECTION_READ, NULL);
    char *ptr = alloc(4 * page, 0);

    assert_success(umfMemoryProviderFree(provider, NULL, 0));
    assert_native(provider, umfMemoryProviderFree(provider, (void *)1, page), UMF_OS_RESULT_ERROR_FREE_FAILED,
                  "memory deallocation failed: ");
    assert_native(provider, umfMemoryProviderFree(provider, ptr, 0), 1004, "memory deallocation failed: ");
    assert_result(umfMemoryProviderFree(other, ptr, 4 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderFree(provider, ptr, 5 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    ptr[4 * page - 1] = 1;
    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_success(umfMemoryProviderFree(other, ptr, 4 * page));
    assert_success(umfMemoryProviderFree(provider, ptr, 100));
    assert_false(is_mapped(ptr));
    assert_success(umfMemoryProviderFree(provider, ptr, 4 * page));
    assert_success(umfMemoryProviderFree(provider, ptr, 4 * page));
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    umfMemoryProviderDestroy(other);
}

static void test_end_frees(void **state)
{
    umf_memory_provider_handle_t short_lived = make(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, "end");
    void *ptr;

    for (int i = 0; i < 20; i++)
        assert_success(umfMemoryProviderAlloc(short_lived, MIB, 0, &ptr));
    assert_success(umfMemoryProviderFree(short_lived, ptr, page));
    assert_true(WAIT_UNTIL(observer_buffers() == 20));
    umfMemoryProviderDestroy(short_lived);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
}

static void test_purge(void **state)
{
    char *ptr = alloc(8 * page, 0);

    memset(ptr, 1, 8 * page);
    assert_int_equal(pages_at(ptr), 8 * page);
    assert_success(umfMemoryProviderPurgeForce(provider, ptr + page, 2 * page));
    assert_int_equal(pages_at(ptr), 6 * page);
    assert_true(ptr[0] == 1 && ptr[page] == 0 && ptr[3 * page - 1] == 0 && ptr[3 * page] == 1);
    assert_success(umfMemoryProviderPurgeLazy(provider, ptr, page));
    assert_true(ptr[page - 1] == 0 || ptr[page - 1] == 1);
    assert_success(umfMemoryProviderPurgeForce(provider, ptr, 0));
    assert_result(umfMemoryProviderPurgeForce(provider, ptr + 1, page), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeForce(provider, ptr, page + 64), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeLazy(provider, ptr, 1), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeLazy(provider, NULL, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_success(umfMemoryProviderPurgeForce(provider, ptr + 4 * page, page + 64));
    assert_true(ptr[4 * page] == 0 && ptr[6 * page - 1] == 0 && ptr[6 * page] == 1);
    assert_native(provider, umfMemoryProviderPurgeLazy(provider, (void *)1, 1), 1005, "lazy purging failed: ");
    assert_native(provider, umfMemoryProviderPurgeForce(provider, ptr + 7 * page, 2 * page), 1006,
                  "force purging failed: ");
    /* over two parts and the hole between them */
    assert_success(umfMemoryProviderFree(provider, ptr + page, page));
    assert_native(provider, umfMemoryProviderPurgeForce(provider, ptr, 3 * page), 1006, "force purging failed: ");
    assert_success(umfMemoryProviderFree(provider, ptr, 8 * page));
}

/* ---- protection and names ---------------------------------------------------------------------------------------- */

static umf_memory_provider_handle_t make_protected(unsigned protection)
{
    return make(protection, NULL);
}

/* umf_mem_protection_flags_t, UMF_PROTECTION_NONE, UMF_PROTECTION_READ, UMF_PROTECTION_WRITE, UMF_PROTECTION_EXEC;
 * umf_os_memory_provider_params_t, protection */
static void test_protections(void **state)
{
    umf_check_protections(make_protected);
}

#if defined(__x86_64__)
static void test_execute(void **state)
{
    const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3}; /* mov $42, %eax; ret */
    umf_memory_provider_handle_t executable =
        make(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE | UMF_PROTECTION_EXEC, NULL);
    int (*function)(void);
    void *ptr;

    assert_success(umfMemoryProviderAlloc(executable, page, 0, &ptr));
    memcpy(ptr, code, sizeof(code));
    memcpy(&function, &ptr, sizeof(ptr));
    assert_int_equal(function(), 42);
    umfMemoryProviderDestroy(executable);
}
#endif

static bool is_named(const void *ptr, const char *name)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buffer = buffer_of(ptr);

    assert_int_equal(memclient_buffer_query(buffer, &info), 0);
    memclient_buffer_unref(buffer);
    return !strcmp(info.name, name);
}

/* umf_os_memory_provider_params_t: Several programs have the same name, and it begins with a slash: it only says what
 * listings call the memory. */
static void test_names(void **state)
{
    umf_memory_provider_handle_t a = make(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, "/shm_name"),
                                 b = make(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, "/shm_name"),
                                 bad = make(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, "a//\001b");
    void *of_a, *of_b, *second, *of_bad;

    assert_success(umfMemoryProviderAlloc(a, page, 0, &of_a));
    assert_success(umfMemoryProviderAlloc(a, page, 0, &second));
    assert_success(umfMemoryProviderAlloc(b, page, 0, &of_b));
    assert_success(umfMemoryProviderAlloc(bad, page, 0, &of_bad));
    assert_true(is_named(of_a, "shm_name/1"));
    assert_true(is_named(second, "shm_name/2"));
    assert_true(is_named(of_b, "") && is_named(of_bad, ""));
    assert_success(umfMemoryProviderFree(a, of_a, page));
    assert_success(umfMemoryProviderFree(a, second, page));
    assert_true(WAIT_UNTIL(observer_buffers() == 2));
    umfMemoryProviderDestroy(a);
    umfMemoryProviderDestroy(b);
    umfMemoryProviderDestroy(bad);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
}

/* ---- threads and children ---------------------------------------------------------------------------------------- */

static void *churn(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    for (int i = 0; i < 50; i++) {
        size_t n = 3 + (seed = seed * 1103515245 + 12345) / 65536 % 20;
        char *ptr = alloc(n * page, 0);

        memset(ptr, (int)seed, n * page);
        assert_success(umfMemoryProviderFree(provider, ptr + page, page));
        assert_true(ptr[0] == (char)seed && ptr[2 * page] == (char)seed);
        assert_success(umfMemoryProviderFree(provider, ptr + 2 * page, (n - 2) * page));
        assert_success(umfMemoryProviderFree(provider, ptr, page));
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];

    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* What the child frees is gone for the child, and remains for the parent. */
static void in_child(int channel, void *context)
{
    char *ptr = context;
    void *own;

    (void)channel;
    ptr[0] = 6;
    CHECK(umfMemoryProviderFree(provider, ptr + page, page) == UMF_RESULT_SUCCESS);
    CHECK(umfMemoryProviderAlloc(provider, page, 0, &own) == UMF_RESULT_SUCCESS);
    CHECK(umfMemoryProviderFree(provider, own, page) == UMF_RESULT_SUCCESS);
    umfMemoryProviderDestroy(provider);
}

/* umf_memory_visibility_t, UMF_MEM_MAP_SHARED; umf_os_memory_provider_params_t, visibility */
static void test_fork(void **state)
{
    char *ptr = alloc(4 * page, 0);

    memset(ptr, 5, 4 * page);
    child_run(in_child, ptr);
    assert_true(ptr[0] == 6 && ptr[page] == 5 && ptr[3 * page] == 5);
    assert_success(umfMemoryProviderFree(provider, ptr, 4 * page));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_no_call_before_memory),
        TEST(test_home),
        TEST(test_alignments),
        TEST(test_home_is_taken),
        TEST(test_impossible),
        TEST(test_parts),
        TEST(test_no_merging_of_strangers),
        TEST(test_freeing),
        TEST(test_end_frees),
        TEST(test_purge),
        TEST(test_protections),
#if defined(__x86_64__)
        TEST(test_execute),
#endif
        TEST(test_names),
        TEST(test_threads),
        TEST(test_fork),
    };

    page = (size_t)page_size();
    return test_run(tests, umf_group_setup, umf_group_teardown);
}
