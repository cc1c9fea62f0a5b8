/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Level Zero provider, with a loader of our own instead of the real one: its calls of the driver for each type of
 * memory, what it makes of the results, and what happens without a loader. No device has been used.
 *
 * The program runs itself again with LD_LIBRARY_PATH, which is only read when a program starts.
 */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/pools/pool_proxy.h>
#include <memclient/umf/umf/providers/provider_level_zero.h>

#include "tests/support/files.h"
#include "tests/support/test.h"
#include "tests/unit/umf/again.h"
#include "tests/unit/umf/fake-ze.h"

#if __has_include(<level_zero/ze_api.h>)
#include <level_zero/ze_api.h>

/* Our declarations are Level Zero's. */
#define SAME(ours, theirs) _Static_assert((unsigned long)(ours) == (unsigned long)(theirs), #ours)
#define SAME_FIELD(ours, field, theirs, their_field)                   \
    SAME(offsetof(struct ours, field), offsetof(theirs, their_field)); \
    SAME(sizeof(((struct ours *)NULL)->field), sizeof(((theirs *)NULL)->their_field))

SAME(L0_DEVICE_LOST, ZE_RESULT_ERROR_DEVICE_LOST);
SAME(L0_OUT_OF_HOST_MEMORY, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
SAME(L0_OUT_OF_DEVICE_MEMORY, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
SAME(L0_UNINITIALIZED, ZE_RESULT_ERROR_UNINITIALIZED);
SAME(L0_UNSUPPORTED_FEATURE, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
SAME(L0_INVALID_ARGUMENT, ZE_RESULT_ERROR_INVALID_ARGUMENT);
SAME(L0_INVALID_NULL_HANDLE, ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
SAME(L0_HANDLE_OBJECT_IN_USE, ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
SAME(L0_INVALID_NULL_POINTER, ZE_RESULT_ERROR_INVALID_NULL_POINTER);
SAME(L0_INVALID_SIZE, ZE_RESULT_ERROR_INVALID_SIZE);
SAME(L0_UNSUPPORTED_SIZE, ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
SAME(L0_UNSUPPORTED_ALIGNMENT, ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);
SAME(L0_UNKNOWN, ZE_RESULT_ERROR_UNKNOWN);
SAME(L0_STRUCTURE_DEVICE_DESC, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC);
SAME(L0_STRUCTURE_HOST_DESC, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC);
SAME(L0_STRUCTURE_PROPERTIES, ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES);
SAME(L0_MEMORY_UNKNOWN, ZE_MEMORY_TYPE_UNKNOWN);
SAME(L0_MEMORY_HOST, ZE_MEMORY_TYPE_HOST);
SAME(L0_MEMORY_DEVICE, ZE_MEMORY_TYPE_DEVICE);
SAME(L0_MEMORY_SHARED, ZE_MEMORY_TYPE_SHARED);
SAME(sizeof(uint32_t), sizeof(ze_result_t));
SAME(sizeof(void *), sizeof(ze_context_handle_t));
SAME(sizeof(struct l0_host_desc), sizeof(ze_host_mem_alloc_desc_t));
SAME_FIELD(l0_host_desc, structure, ze_host_mem_alloc_desc_t, stype);
SAME_FIELD(l0_host_desc, next, ze_host_mem_alloc_desc_t, pNext);
SAME_FIELD(l0_host_desc, flags, ze_host_mem_alloc_desc_t, flags);
SAME(sizeof(struct l0_device_desc), sizeof(ze_device_mem_alloc_desc_t));
SAME_FIELD(l0_device_desc, structure, ze_device_mem_alloc_desc_t, stype);
SAME_FIELD(l0_device_desc, next, ze_device_mem_alloc_desc_t, pNext);
SAME_FIELD(l0_device_desc, flags, ze_device_mem_alloc_desc_t, flags);
SAME_FIELD(l0_device_desc, ordinal, ze_device_mem_alloc_desc_t, ordinal);
SAME(sizeof(struct l0_ipc_handle), sizeof(ze_ipc_mem_handle_t));
SAME(sizeof(struct l0_properties), sizeof(ze_memory_allocation_properties_t));
SAME_FIELD(l0_properties, structure, ze_memory_allocation_properties_t, stype);
SAME_FIELD(l0_properties, next, ze_memory_allocation_properties_t, pNext);
SAME_FIELD(l0_properties, type, ze_memory_allocation_properties_t, type);
SAME_FIELD(l0_properties, id, ze_memory_allocation_properties_t, id);
SAME_FIELD(l0_properties, page_size, ze_memory_allocation_properties_t, pageSize);
#endif

#define CONTEXT ((void *)0x1001)
#define DEVICE  ((void *)0x2002)

static struct fake_ze *ze; /* the loader's own */

static level_zero_memory_provider_params_t params_of(umf_usm_memory_type_t type)
{
    return (level_zero_memory_provider_params_t){
        .level_zero_context_handle = CONTEXT,
        .level_zero_device_handle = type == UMF_MEMORY_TYPE_HOST ? NULL : DEVICE,
        .memory_type = type,
    };
}

static umf_result_t create(level_zero_memory_provider_params_t params, umf_memory_provider_handle_t *provider)
{
    return umfMemoryProviderCreate(umfLevelZeroMemoryProviderOps(), &params, provider);
}

static umf_memory_provider_handle_t provider_of(umf_usm_memory_type_t type)
{
    umf_memory_provider_handle_t provider = NULL;

    assert_int_equal(create(params_of(type), &provider), UMF_RESULT_SUCCESS);
    assert_non_null(provider);
    return provider;
}

/* The fake returns its usual results again, and nothing is left. */
static int nothing_left(void **state)
{
    unsigned alive = ze->alive;

    *ze = (struct fake_ze){.page_size = FAKE_ZE_PAGE, .alive = alive};
    return alive ? -1 : 0;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

/* level_zero_memory_provider_params_t: level_zero_context_handle, level_zero_device_handle and memory_type are to go
 * together, and no umf_usm_memory_type_t is UMF_MEMORY_TYPE_UNKNOWN; else umfLevelZeroMemoryProviderOps:
 * UMF_RESULT_ERROR_INVALID_ARGUMENT. Nothing is loaded for what cannot be. */
static void no_arguments(void **state)
{
    umf_memory_provider_handle_t provider = NULL;
    level_zero_memory_provider_params_t params;

    assert_int_equal(umfMemoryProviderCreate(umfLevelZeroMemoryProviderOps(), NULL, &provider),
                     UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(create(params_of(UMF_MEMORY_TYPE_UNKNOWN), &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(create(params_of((umf_usm_memory_type_t)4), &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    for (unsigned type = UMF_MEMORY_TYPE_HOST; type <= UMF_MEMORY_TYPE_SHARED; type++) {
        params = params_of((umf_usm_memory_type_t)type);
        params.level_zero_context_handle = NULL;
        assert_int_equal(create(params, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        params = params_of((umf_usm_memory_type_t)type);
        params.level_zero_device_handle = type == UMF_MEMORY_TYPE_HOST ? DEVICE : NULL;
        assert_int_equal(create(params, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    assert_null(provider);
    if (ze)
        assert_int_equal(ze->inits, 0);
}

/* umfLevelZeroMemoryProviderOps: UMF_RESULT_ERROR_NOT_SUPPORTED without a driver,
 * UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY where it says so. */
static void no_driver(void **state)
{
    umf_memory_provider_handle_t provider = NULL;

    ze->init_result = L0_UNINITIALIZED;
    assert_int_equal(create(params_of(UMF_MEMORY_TYPE_DEVICE), &provider), UMF_RESULT_ERROR_NOT_SUPPORTED);
    ze->init_result = L0_OUT_OF_HOST_MEMORY;
    assert_int_equal(create(params_of(UMF_MEMORY_TYPE_DEVICE), &provider), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    assert_null(provider);
    /* it is called again each time */
    ze->init_result = L0_SUCCESS;
    umfMemoryProviderDestroy(provider_of(UMF_MEMORY_TYPE_DEVICE));
}

static void name(void **state)
{
    umf_memory_provider_handle_t provider = provider_of(UMF_MEMORY_TYPE_HOST);

    assert_ptr_equal(umfLevelZeroMemoryProviderOps(), umfLevelZeroMemoryProviderOps());
    assert_string_equal(umfMemoryProviderGetName(provider), "LEVEL_ZERO");
    assert_int_equal(ze->allocs, 0);
    umfMemoryProviderDestroy(provider);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* umfLevelZeroMemoryProviderOps: memory from a device, by umf_usm_memory_type_t: UMF_MEMORY_TYPE_HOST: a host
 * allocation; UMF_MEMORY_TYPE_DEVICE: a device allocation; UMF_MEMORY_TYPE_SHARED: of shared ownership. */
static void each_type_is_asked_for_by_its_function(void **state)
{
    static const char *const functions[] = {
        [UMF_MEMORY_TYPE_HOST] = "zeMemAllocHost",
        [UMF_MEMORY_TYPE_DEVICE] = "zeMemAllocDevice",
        [UMF_MEMORY_TYPE_SHARED] = "zeMemAllocShared",
    };

    for (unsigned type = UMF_MEMORY_TYPE_HOST; type <= UMF_MEMORY_TYPE_SHARED; type++) {
        umf_memory_provider_handle_t provider = provider_of((umf_usm_memory_type_t)type);
        void *ptr = NULL;

        memset(&ze->host, 0xff, sizeof(ze->host));
        memset(&ze->desc, 0xff, sizeof(ze->desc));
        assert_int_equal(umfMemoryProviderAlloc(provider, 100000, 4096, &ptr), UMF_RESULT_SUCCESS);
        assert_non_null(ptr);
        assert_int_equal((uintptr_t)ptr % 4096, 0);
        assert_string_equal(ze->function, functions[type]);
        assert_ptr_equal(ze->context, CONTEXT);
        assert_ptr_equal(ze->device, type == UMF_MEMORY_TYPE_HOST ? NULL : DEVICE);
        assert_int_equal(ze->size, 100000);
        assert_int_equal(ze->alignment, 4096);
        if (type != UMF_MEMORY_TYPE_DEVICE) {
            assert_int_equal(ze->host.structure, L0_STRUCTURE_HOST_DESC);
            assert_null(ze->host.next);
            assert_int_equal(ze->host.flags, 0);
        }
        if (type != UMF_MEMORY_TYPE_HOST) {
            assert_int_equal(ze->desc.structure, L0_STRUCTURE_DEVICE_DESC);
            assert_null(ze->desc.next);
            assert_int_equal(ze->desc.flags, 0);
            assert_int_equal(ze->desc.ordinal, 0);
        }
        memset(ptr, 1, 100000);
        ze->context = NULL;
        assert_int_equal(umfMemoryProviderFree(provider, ptr, 100000), UMF_RESULT_SUCCESS);
        assert_ptr_equal(ze->context, CONTEXT);
        assert_int_equal(ze->alive, 0);
        umfMemoryProviderDestroy(provider);
    }
}

static void freeing(void **state)
{
    umf_memory_provider_handle_t provider = provider_of(UMF_MEMORY_TYPE_DEVICE);
    int mine;

    assert_int_equal(umfMemoryProviderFree(provider, NULL, 0), UMF_RESULT_SUCCESS);
    assert_int_equal(ze->frees, 0);
    assert_int_equal(umfMemoryProviderFree(provider, &mine, sizeof(mine)), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(provider);
}

static void a_pool_on_it(void **state)
{
    umf_memory_provider_handle_t provider = provider_of(UMF_MEMORY_TYPE_SHARED);
    umf_memory_pool_handle_t pool;
    void *ptr;

    assert_int_equal(umfPoolCreate(umfProxyPoolOps(), provider, NULL, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool),
                     UMF_RESULT_SUCCESS);
    ptr = umfPoolMalloc(pool, 5000);
    assert_non_null(ptr);
    assert_ptr_equal(umfPoolByPtr((char *)ptr + 4999), pool);
    assert_int_equal(umfFree(ptr), UMF_RESULT_SUCCESS);
    umfPoolDestroy(pool);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* umfLevelZeroMemoryProviderOps: what the driver refuses is UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY,
 * UMF_RESULT_ERROR_INVALID_ARGUMENT, UMF_RESULT_ERROR_INVALID_ALIGNMENT or UMF_RESULT_ERROR_NOT_SUPPORTED where it
 * says so, else UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC. */
static void results(void **state)
{
    static const struct {
        uint32_t of_driver;
        umf_result_t wanted;
    } rows[] = {
        {L0_OUT_OF_HOST_MEMORY, UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY},
        {L0_INVALID_ARGUMENT, UMF_RESULT_ERROR_INVALID_ARGUMENT},
        {L0_INVALID_NULL_HANDLE, UMF_RESULT_ERROR_INVALID_ARGUMENT},
        {L0_INVALID_NULL_POINTER, UMF_RESULT_ERROR_INVALID_ARGUMENT},
        {L0_UNSUPPORTED_ALIGNMENT, UMF_RESULT_ERROR_INVALID_ALIGNMENT},
        {L0_UNSUPPORTED_FEATURE, UMF_RESULT_ERROR_NOT_SUPPORTED},
        {L0_DEVICE_LOST, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC},
        {L0_OUT_OF_DEVICE_MEMORY, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC},
        {L0_UNSUPPORTED_SIZE, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC},
        {L0_UNKNOWN, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC},
        {0x7fffabcd, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC},
    };
    umf_memory_provider_handle_t provider = provider_of(UMF_MEMORY_TYPE_DEVICE);
    char here;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *ptr = &here;
        size_t page = 1;

        ze->alloc_result = ze->free_result = ze->properties_result = rows[i].of_driver;
        assert_int_equal(umfMemoryProviderAlloc(provider, 1, 0, &ptr), rows[i].wanted);
        assert_ptr_equal(ptr, &here);
        assert_ptr_equal(umfGetLastFailedMemoryProvider(), provider);
        assert_int_equal(umfMemoryProviderFree(provider, ptr, 1), rows[i].wanted);
        assert_int_equal(umfMemoryProviderGetMinPageSize(provider, ptr, &page), rows[i].wanted);
        assert_int_equal(umfMemoryProviderGetMinPageSize(provider, NULL, &page), rows[i].wanted);
        assert_int_equal(umfMemoryProviderGetRecommendedPageSize(provider, 1, &page), rows[i].wanted);
        assert_int_equal(page, 1);
    }
    umfMemoryProviderDestroy(provider);
}

/* umfLevelZeroMemoryProviderOps, umfMemoryProviderGetLastNativeError: The number is the driver's, the text its name. */
static void native_errors(void **state)
{
    umf_memory_provider_handle_t provider = provider_of(UMF_MEMORY_TYPE_HOST);
    const char *message = NULL;
    void *ptr = NULL;
    int32_t code = -1;

    assert_int_equal(umfMemoryProviderAlloc(provider, SIZE_MAX, 0, &ptr), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    umfMemoryProviderGetLastNativeError(provider, &message, &code);
    assert_int_equal(code, L0_UNSUPPORTED_SIZE);
    assert_string_equal(message, "zeMemAllocHost: ZE_RESULT_ERROR_UNSUPPORTED_SIZE");
    ze->free_result = 0x7fffabcd;
    assert_int_equal(umfMemoryProviderFree(provider, &code, 1), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    umfMemoryProviderGetLastNativeError(provider, NULL, &code);
    umfMemoryProviderGetLastNativeError(provider, &message, NULL);
    assert_int_equal(code, 0x7fffabcd);
    assert_string_equal(message, "zeMemFree: ze_result_t 0x7fffabcd");
    assert_int_equal(umfMemoryProviderAlloc(provider, 8, 3, &ptr), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_null(ptr);
    umfMemoryProviderDestroy(provider);
}

static void pages(void **state)
{
    umf_memory_provider_handle_t provider = provider_of(UMF_MEMORY_TYPE_SHARED);
    size_t page = 0;
    void *ptr;

    assert_int_equal(umfMemoryProviderGetMinPageSize(provider, NULL, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMemoryProviderGetRecommendedPageSize(provider, 0, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMemoryProviderGetMinPageSize(provider, NULL, &page), UMF_RESULT_SUCCESS);
    assert_int_equal(page, FAKE_ZE_PAGE);
    assert_int_equal(umfMemoryProviderGetRecommendedPageSize(provider, 100 << 20, &page), UMF_RESULT_SUCCESS);
    assert_int_equal(page, FAKE_ZE_PAGE);
    assert_int_equal(ze->allocs, 1); /* found out once */
    assert_int_equal(ze->alive, 0);
    assert_int_equal(umfMemoryProviderGetMinPageSize(provider, &page, &page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umfMemoryProviderAlloc(provider, 1, 0, &ptr), UMF_RESULT_SUCCESS);
    ze->page_size = 4 * FAKE_ZE_PAGE;
    assert_int_equal(umfMemoryProviderGetMinPageSize(provider, ptr, &page), UMF_RESULT_SUCCESS);
    assert_int_equal(page, 4 * FAKE_ZE_PAGE);
    ze->page_size = 0;
    assert_int_equal(umfMemoryProviderGetMinPageSize(provider, ptr, &page), UMF_RESULT_SUCCESS);
    assert_int_equal(page, sysconf(_SC_PAGESIZE));
    assert_int_equal(umfMemoryProviderFree(provider, ptr, 1), UMF_RESULT_SUCCESS);
    umfMemoryProviderDestroy(provider);
}

/* Devices' memory is not purged, split or merged. */
static void not_supported(void **state)
{
    umf_memory_provider_handle_t provider = provider_of(UMF_MEMORY_TYPE_DEVICE);
    void *ptr;

    assert_int_equal(umfMemoryProviderAlloc(provider, 8192, 4096, &ptr), UMF_RESULT_SUCCESS);
    assert_int_equal(umfMemoryProviderPurgeLazy(provider, ptr, 4096), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_int_equal(umfMemoryProviderPurgeForce(provider, ptr, 4096), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_int_equal(umfMemoryProviderAllocationSplit(provider, ptr, 8192, 4096), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_int_equal(umfMemoryProviderAllocationMerge(provider, ptr, (char *)ptr + 4096, 8192),
                     UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_int_equal(umfMemoryProviderFree(provider, ptr, 8192), UMF_RESULT_SUCCESS);
    umfMemoryProviderDestroy(provider);
}

/* ---- without a loader -------------------------------------------------------------------------------------------- */

/* In a process that finds another library by that name, or none. */
static void no_loader(void **state)
{
    umf_memory_provider_handle_t provider = NULL;

    no_arguments(state);
    for (unsigned type = UMF_MEMORY_TYPE_HOST; type <= UMF_MEMORY_TYPE_SHARED; type++)
        assert_int_equal(create(params_of((umf_usm_memory_type_t)type), &provider), UMF_RESULT_ERROR_NOT_SUPPORTED);
    assert_null(provider);
}

static void nothing_of_that_name(void **state)
{
    void *library = dlopen(L0_LOADER, RTLD_LAZY | RTLD_LOCAL);

    if (library) {
        (void)dlclose(library);
        test_skip("this machine has a Level Zero loader");
    }
    no_loader(state);
}

static void no_library(void **state)
{
    files_put(L0_LOADER, "this is no library\n");
    assert_int_equal(run_again(files_root, "no-loader"), 0);
}

static void another_library(void **state)
{
    char link[2 * PATH_MAX], library[2 * PATH_MAX];

    beside_us(library, sizeof(library), "../../../client/.libs/libmemclient.so");
    (void)snprintf(link, sizeof(link), "%s/%s", files_root, L0_LOADER);
    assert_ok(symlink(library, link));
    assert_int_equal(run_again(files_root, "no-loader"), 0);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static int with_loader(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(no_arguments, nothing_left),
        cmocka_unit_test_teardown(no_driver, nothing_left),
        cmocka_unit_test_teardown(name, nothing_left),
        cmocka_unit_test_teardown(each_type_is_asked_for_by_its_function, nothing_left),
        cmocka_unit_test_teardown(freeing, nothing_left),
        cmocka_unit_test_teardown(a_pool_on_it, nothing_left),
        cmocka_unit_test_teardown(results, nothing_left),
        cmocka_unit_test_teardown(native_errors, nothing_left),
        cmocka_unit_test_teardown(pages, nothing_left),
        cmocka_unit_test_teardown(not_supported, nothing_left),
    };
    void *library = dlopen(L0_LOADER, RTLD_NOW | RTLD_LOCAL);

    ze = library ? dlsym(library, "fake_ze") : NULL;
    if (!ze) {
        print_error("the loader of the tests was not found: %s\n", dlerror());
        return 1;
    }
    return test_run(tests, NULL, NULL);
}

static void loader(void **state)
{
    char path[2 * PATH_MAX];

    beside_us(path, sizeof(path), ".libs");
    assert_int_equal(run_again(path, "with-loader"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest alone[] = {cmocka_unit_test(no_loader)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loader),
        cmocka_unit_test(nothing_of_that_name),
        cmocka_unit_test_setup_teardown(no_library, files_set_up, files_clean_up),
        cmocka_unit_test_setup_teardown(another_library, files_set_up, files_clean_up),
    };

    if (argc > 1 && !strcmp(argv[1], "with-loader"))
        return with_loader();
    if (argc > 1 && !strcmp(argv[1], "no-loader"))
        return test_run(alone, NULL, NULL);
    return test_run(tests, NULL, NULL);
}
