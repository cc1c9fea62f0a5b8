/* SPDX-License-Identifier: Apache-2.0 */
/* The memoryd provider: its parameters and the memory that they give, names, native errors, and what keeps memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"
#include "tests/unit/umf/umf.h"

/* A session's bytes; see main(). */
#define LIMIT (16 * MIB)

static umf_memory_provider_handle_t provider;
static size_t page;

static umf_memoryd_memory_provider_params_t defaults(void)
{
    return umfMemorydMemoryProviderParamsDefault();
}

static umf_memory_provider_handle_t make(umf_memoryd_memory_provider_params_t params)
{
    umf_memory_provider_handle_t made;

    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &made));
    return made;
}

static int setup(void **state)
{
    provider = make(defaults());
    return 0;
}

static int teardown(void **state)
{
    umfMemoryProviderDestroy(provider);
    return umf_nothing_left(state);
}

static void *alloc(umf_memory_provider_handle_t from, size_t size)
{
    void *ptr = NULL;

    assert_success(umfMemoryProviderAlloc(from, size, 0, &ptr));
    return ptr;
}

static struct memclient_buffer_info info_of(const void *ptr)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buffer;

    assert_success(umfMemorydGetBuffer(ptr, &buffer));
    assert_int_equal(memclient_buffer_query(buffer, &info), 0);
    memclient_buffer_unref(buffer);
    return info;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static void expect_invalid(umf_memoryd_memory_provider_params_t params)
{
    umf_memory_provider_handle_t none = NULL;

    assert_result(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &none),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(none);
}

#define EXPECT_INVALID(...)                                       \
    do {                                                          \
        umf_memoryd_memory_provider_params_t wrong_ = defaults(); \
        __VA_ARGS__;                                              \
        expect_invalid(wrong_);                                   \
    } while (0)

/* memclient_umf_params: size; MEMCLIENT_UMF_PARAMS_INIT and umfMemorydMemoryProviderParamsDefault:
 * umf_memoryd_memory_provider_params_t. umfMemorydMemoryProviderOps: UMF_RESULT_ERROR_INVALID_ARGUMENT if the size
 * is none or a number is none of its enum. */
static void test_parameters(void **state)
{
    struct {
        umf_memoryd_memory_provider_params_t params;
        uint64_t later;
    } longer = {defaults(), 0};
    umf_memory_provider_handle_t made;
    size_t size = sizeof(size);

    EXPECT_INVALID(wrong_.size = 0);
    EXPECT_INVALID(wrong_.size = sizeof(size_t) - 1);
    EXPECT_INVALID(wrong_.size = SIZE_MAX);
    EXPECT_INVALID(wrong_.placement = 6);
    EXPECT_INVALID(wrong_.pages = 4);
    EXPECT_INVALID(wrong_.flags = MEMCLIENT_ALLOC_NO_HOME);
    EXPECT_INVALID(wrong_.access = MEMCLIENT_WRITE);
    EXPECT_INVALID(wrong_.access = 16);
    EXPECT_INVALID(wrong_.shared_rights = MEMCLIENT_MANAGE);
    EXPECT_INVALID(wrong_.page_size = 3 * page);
    EXPECT_INVALID(wrong_.n_nodes = 1);
    /* structs of other versions: shorter ones, and longer ones with zeros */
    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &size, &made));
    umfMemoryProviderDestroy(made);
    longer.params.size = sizeof(longer);
    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &longer, &made));
    umfMemoryProviderDestroy(made);
    longer.later = 1;
    assert_result(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &longer, &made),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &made));
    umfMemoryProviderDestroy(made);
}

/* umfMemorydMemoryProviderOps: creating a provider makes no call to the broker. */
static void test_no_call_before_memory(void **state)
{
    umf_memoryd_memory_provider_params_t params = defaults();
    umf_memory_provider_handle_t idle;
    uint64_t before;
    size_t size;

    observer_settle();
    before = observer_requests();
    params.name = "idle";
    idle = make(params);
    assert_string_equal(umfMemoryProviderGetName(idle), "memoryd");
    assert_success(umfMemoryProviderGetMinPageSize(idle, NULL, &size));
    assert_int_equal(size, page);
    assert_success(umfMemoryProviderGetRecommendedPageSize(idle, 1, &size));
    assert_int_equal(size, page);
    assert_result(umfMemoryProviderGetMinPageSize(idle, NULL, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetMinPageSize(idle, &size, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetRecommendedPageSize(idle, 1, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(idle);
    assert_int_equal(observer_requests(), before);
}

/* memclient_umf_params: nodes, n_nodes, placement, weights; flags. */
static void test_placement(void **state)
{
    uint32_t nodes[] = {1, 0}, weights[] = {1, 3};
    umf_memoryd_memory_provider_params_t params = defaults();
    struct memclient_buffer_info info;
    umf_memory_provider_handle_t split;

    params.nodes = nodes;
    params.n_nodes = 2;
    params.placement = MEMCLIENT_PLACEMENT_SPLIT;
    params.weights = weights;
    params.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    split = make(params);
    memset(nodes, 0xff, sizeof(nodes)); /* they were copied */
    info = info_of(alloc(split, 8 * page));
    assert_int_equal(info.placement, MEMCLIENT_PLACEMENT_SPLIT);
    assert_true(info.flags & MEMCLIENT_BUFFER_PUBLISHABLE);
    assert_int_equal(info.n_nodes, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(info.node_bytes[i], (info.nodes[i] == 1 ? 2 : 6) * page);
    umfMemoryProviderDestroy(split);
}

static int note_pool(const struct memclient_pool_info *pool, void *data)
{
    char *name = data;

    if (pool->n_nodes == 1 && pool->nodes[0] == 1 && pool->granule == page_size())
        (void)snprintf(name, MEMCLIENT_POOL_NAME_SIZE, "%s", pool->name);
    return 0;
}

/* memclient_umf_params: pool. */
static void test_pool(void **state)
{
    char name[MEMCLIENT_POOL_NAME_SIZE] = "";
    umf_memoryd_memory_provider_params_t params = defaults();
    umf_memory_provider_handle_t of_pool;
    size_t size = 0;
    uint64_t before;
    void *ptr;

    assert_int_equal(memclient_list_pools(NULL, note_pool, name), 0);
    assert_true(*name);
    params.pool = name;
    of_pool = make(params);
    assert_success(umfMemoryProviderGetMinPageSize(of_pool, NULL, &size));
    assert_int_equal(size, page);
    /* the broker is asked once for a pool's page size */
    before = observer_requests();
    assert_success(umfMemoryProviderGetMinPageSize(of_pool, NULL, &size));
    assert_int_equal(size, page);
    assert_int_equal(observer_requests(), before);
    ptr = alloc(of_pool, page);
    assert_string_equal(info_of(ptr).pool, name);
    assert_success(umfMemoryProviderGetMinPageSize(of_pool, ptr, &size));
    assert_int_equal(size, page);
    umfMemoryProviderDestroy(of_pool);
    params.pool = "no/such";
    of_pool = make(params);
    assert_success(umfMemoryProviderGetMinPageSize(of_pool, NULL, &size));
    assert_native(of_pool, umfMemoryProviderAlloc(of_pool, page, 0, &ptr), UMF_MEMORYD_RESULTS_START_FROM + ENODEV, "");
    assert_ptr_equal(umfGetLastFailedMemoryProvider(), of_pool);
    umfMemoryProviderDestroy(of_pool);
}

/* memclient_umf_params: pages. */
static void test_pages(void **state)
{
    umf_memoryd_memory_provider_params_t params = defaults();
    umf_memory_provider_handle_t huge;
    size_t min = 0, best = 0;
    void *ptr;

    params.pages = MEMCLIENT_PAGES_THP;
    huge = make(params);
    assert_success(umfMemoryProviderGetMinPageSize(huge, NULL, &min));
    assert_success(umfMemoryProviderGetRecommendedPageSize(huge, 64 * MIB, &best));
    assert_true(min == page && best >= min && best % min == 0);
    umfMemoryProviderDestroy(huge);
    params.pages = MEMCLIENT_PAGES_HUGETLB;
    huge = make(params);
    assert_success(umfMemoryProviderGetMinPageSize(huge, NULL, &min));
    assert_int_equal(min, huge_page_size() ? huge_page_size() : page);
    if (min > page)
        assert_result(umfMemoryProviderAlloc(huge, min, min + page, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(huge);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void test_memory(void **state)
{
    char *ptr;

    assert_success(umfMemoryProviderAlloc(provider, 8 * page, 3 * page, (void **)&ptr));
    assert_int_equal((uintptr_t)ptr % (3 * page), 0);
    memset(ptr, 1, 8 * page);
    assert_success(umfMemoryProviderPurgeForce(provider, ptr, page));
    assert_true(ptr[0] == 0 && ptr[page] == 1);
    assert_success(umfMemoryProviderPurgeLazy(provider, ptr, page));
    assert_success(umfMemoryProviderPurgeLazy(provider, ptr, 0));
    assert_result(umfMemoryProviderPurgeForce(provider, ptr, page + 1), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeForce(provider, ptr + 1, page), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderPurgeForce(provider, NULL, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPurgeForce(provider, &ptr, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderAllocationSplit(provider, ptr, 8 * page, page));
    assert_result(umfMemoryProviderAllocationSplit(provider, ptr, 8 * page, 100), UMF_RESULT_ERROR_INVALID_ALIGNMENT);
    assert_result(umfMemoryProviderAllocationSplit(provider, &ptr, page, 1), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderAllocationMerge(provider, ptr, ptr + page, 8 * page));
    assert_result(umfMemoryProviderAllocationMerge(provider, ptr, ptr + page, 9 * page),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderFree(provider, ptr + 1, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderFree(provider, ptr, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, NULL, 0));
    assert_success(umfMemoryProviderFree(provider, ptr, 8 * page));
    assert_result(umfMemoryProviderFree(provider, ptr, 8 * page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_success(umfMemoryProviderFree(provider, ptr, 8 * page));
}

static void test_errors(void **state)
{
    umf_memoryd_memory_provider_params_t params = defaults();
    umf_memory_provider_handle_t other;
    const char *text = NULL;
    void *ptr = &ptr;
    uint32_t node = 7;
    int32_t number = 0;

    assert_native(provider, umfMemoryProviderAlloc(provider, 0, 0, &ptr), 3000 + EINVAL, "");
    assert_result(umfMemoryProviderAlloc(provider, 512 * TIB, 0, &ptr), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    /* the reason is recorded as well */
    umfMemoryProviderGetLastNativeError(provider, &text, &number);
    assert_true(number > 3000 && *text);
    assert_result(umfMemoryProviderAlloc(provider, page, page - 1, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderAlloc(provider, page, 0, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    params.nodes = &node;
    params.n_nodes = 1;
    params.placement = MEMCLIENT_PLACEMENT_BIND;
    other = make(params);
    assert_result(umfMemoryProviderAlloc(other, page, 0, &ptr), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    umfMemoryProviderDestroy(other);
    assert_ptr_equal(ptr, &ptr);
}

/* An allocation above the user's limit is not the provider's own error. The OS provider has one number for all of
 * these. */
static void test_limit(void **state)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t shared;
    const char *text = NULL;
    void *ptr = &ptr;
    int32_t number = 0;

    assert_result(umfMemoryProviderAlloc(provider, LIMIT + page, 0, &ptr), UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    umfMemoryProviderGetLastNativeError(provider, &text, &number);
    assert_int_equal(number, 3000 + EDQUOT);
    params.visibility = UMF_MEM_MAP_SHARED;
    assert_success(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &shared));
    assert_native(shared, umfMemoryProviderAlloc(shared, LIMIT + page, 0, &ptr), UMF_OS_RESULT_ERROR_ALLOC_FAILED,
                  "memory allocation failed: ");
    umfMemoryProviderDestroy(shared);
    assert_ptr_equal(ptr, &ptr);
}

/* memclient_umf_params: name: "NAME/1", "NAME/2", ... are bound, and unbound when freed. */
static void test_names(void **state)
{
    umf_memoryd_memory_provider_params_t params = defaults();
    umf_memory_provider_handle_t named, same;
    struct memclient_buffer *buffer;
    void *first, *second;

    params.name = "app/slab";
    named = make(params);
    same = make(params);
    first = alloc(named, page);
    second = alloc(named, page);
    assert_string_equal(info_of(second).name, "app/slab/2");
    assert_native(same, umfMemoryProviderAlloc(same, page, 0, &second), 3000 + EEXIST, "");
    assert_int_equal(memclient_open_name(NULL, "app/slab/1", 0, &buffer), 0);
    memclient_buffer_unref(buffer);
    assert_success(umfMemoryProviderFree(named, first, page));
    assert_int_equal(memclient_open_name(NULL, "app/slab/1", 0, &buffer), -ENOENT);
    umfMemoryProviderDestroy(same);
    umfMemoryProviderDestroy(named);
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

/* memclient_umf_params: access, of what is allocated and of what is opened. */
static void test_rights(void **state)
{
    umf_memoryd_memory_provider_params_t params = defaults();
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    umf_memory_provider_handle_t reader;
    uint8_t handle[64];
    void *ptr, *opened;

    params.access = MEMCLIENT_READ;
    params.shared_rights = MEMCLIENT_READ;
    reader = make(params);
    ptr = alloc(reader, page);
    assert_int_equal(memclient_address_query(ptr, &info), 0);
    assert_int_equal(info.access, MEMCLIENT_READ);
    assert_success(umfMemoryProviderGetIPCHandle(provider, ptr = alloc(provider, page), page, handle));
    assert_success(umfMemoryProviderOpenIPCHandle(reader, handle, &opened));
    assert_int_equal(memclient_address_query(opened, &info), 0);
    assert_int_equal(info.access, MEMCLIENT_READ);
    assert_success(umfMemoryProviderCloseIPCHandle(reader, opened, page));
    assert_result(umfMemoryProviderCloseIPCHandle(reader, opened, page), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderPutIPCHandle(provider, handle));
    assert_result(umfMemoryProviderPutIPCHandle(reader, handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(reader);
}

static void make_and_die(int channel, void *context)
{
    umf_memoryd_memory_provider_params_t params = defaults();
    umf_memory_provider_handle_t keeping;
    void *ptr;

    params.keep_ms = PATIENCE_MS;
    CHECK(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &keeping) == UMF_RESULT_SUCCESS);
    CHECK(umfMemoryProviderAlloc(keeping, page, 0, &ptr) == UMF_RESULT_SUCCESS);
    *(char *)ptr = 77;
    CHECK(umfMemoryProviderGetIPCHandle(keeping, ptr, page, context) == UMF_RESULT_SUCCESS);
    tell(channel);
    hear(channel);
}

/* memclient_umf_params: keep_ms. A handle that keeps its memory outlives the process that made it, until it is over;
 * freeing ends it at once. */
static void test_keeping(void **state)
{
    umf_memoryd_memory_provider_params_t params = defaults();
    umf_memory_provider_handle_t keeping;
    uint8_t own[64], *handle;
    struct child producer;
    char *ptr;

    handle = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(handle != MAP_FAILED);
    child_start(&producer, make_and_die, handle);
    child_hear(&producer);
    child_kill(&producer);
    assert_success(umfMemoryProviderOpenIPCHandle(provider, handle, (void **)&ptr));
    assert_int_equal(*ptr, 77);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, ptr, page));
    assert_success(umfMemoryProviderOpenIPCHandle(provider, handle, (void **)&ptr));
    assert_success(umfMemoryProviderCloseIPCHandle(provider, ptr, page));
    memcpy(own, handle, sizeof(own));
    params.keep_ms = MEMCLIENT_FOREVER / 2;
    keeping = make(params);
    ptr = alloc(keeping, page);
    assert_success(umfMemoryProviderGetIPCHandle(keeping, ptr, page, own));
    assert_success(umfMemoryProviderFree(keeping, ptr, page));
    assert_result(umfMemoryProviderOpenIPCHandle(keeping, own, (void **)&ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(keeping);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    /* the administrator may end early what the dead process kept */
    memcpy(own, handle + 8, sizeof(struct memclient_token));
    assert_int_equal(memclient_revoke_token(NULL, (struct memclient_token *)(void *)own), 0);
    assert_int_equal(munmap(handle, page), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_parameters), TEST(test_no_call_before_memory),
        TEST(test_placement),  TEST(test_pool),
        TEST(test_pages),      TEST(test_memory),
        TEST(test_errors),     TEST(test_limit),
        TEST(test_names),      TEST(test_rights),
        TEST(test_keeping),
    };

    page = (size_t)page_size();
    umf_config = "[limits]\nsession_bytes = 16M\n";
    return test_run(tests, umf_group_setup, umf_group_teardown);
}
