/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserving addresses: hsa_amd_vmem_address_reserve(), _reserve_align() and _free(). Sentences in quotation marks are
 * the document's.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/support/child.h"
#include "tests/support/settings.h"
#include "tests/unit/hsa/vmem.h"

#define SIZE (2 * MIB)

static bool is_private(const void *va)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    assert_int_equal(memclient_address_query(va, &info), 0);
    return info.process_private;
}

/* HSA_STATUS_ERROR_NOT_INITIALIZED, "The HSA runtime has not been initialized", of every function of the family. */
static void vmem_functions_are_not_initialized(void **state)
{
    const hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RW, agents[0]};
    const hsa_status_t wanted = HSA_STATUS_ERROR_NOT_INITIALIZED;
    hsa_amd_memory_type_t type;
    hsa_access_permission_t permissions;
    hsa_amd_memory_pool_t pool;
    handle_t handle = {1};
    char page[1];
    void *va;
    int fd;

    assert_success(hsa_shut_down());
    assert_status(hsa_amd_vmem_address_reserve(&va, SIZE, 0, 0), wanted);
    assert_status(hsa_amd_vmem_address_reserve_align(&va, SIZE, 0, 0, 0), wanted);
    assert_status(hsa_amd_vmem_address_free(page, SIZE), wanted);
    assert_status(hsa_amd_vmem_handle_create(pools[0][FINE], SIZE, MEMORY_TYPE_NONE, 0, &handle), wanted);
    assert_status(hsa_amd_vmem_handle_release(handle), wanted);
    assert_status(hsa_amd_vmem_map(page, SIZE, 0, handle, 0), wanted);
    assert_status(hsa_amd_vmem_unmap(page, SIZE), wanted);
    assert_status(hsa_amd_vmem_set_access(page, SIZE, &desc, 1), wanted);
    assert_status(hsa_amd_vmem_get_access(page, &permissions, agents[0]), wanted);
    assert_status(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0), wanted);
    assert_status(hsa_amd_vmem_import_shareable_handle(0, &handle), wanted);
    assert_status(hsa_amd_vmem_retain_alloc_handle(&handle, page), wanted);
    assert_status(hsa_amd_vmem_get_alloc_properties_from_handle(handle, &pool, &type), wanted);
    /* also where everything else is wrong too */
    assert_status(hsa_amd_vmem_address_reserve(NULL, 0, 1, 0), wanted);
    assert_status(hsa_amd_vmem_map(NULL, 0, 1, handle, 0), wanted);
    assert_success(hsa_init());
}

/* ---- address_reserve --------------------------------------------------------------------------------------------- */

/* hsa_amd_vmem_address_reserve, SUCCESS; hsa_amd_vmem_address_free, SUCCESS: "Reserve a virtual address range." It is
 * inaccessible, takes no memory, and is given back by address_free. */
static void reserve_va_is_an_inaccessible_range(void **state)
{
    char *va = vmem_reserve(64 * MIB);

    assert_true(is_aligned((uintptr_t)va, 2 * MIB));
    assert_string_equal(vmem_pages(va), "---");
    assert_string_equal(vmem_pages(va + 64 * MIB - 1), "---");
    assert_int_equal(vmem_resident(va, 64 * MIB), 0);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    vmem_free(va, 64 * MIB);
    assert_string_equal(vmem_pages(va), "");
}

static void reserve_va_null_is_invalid_argument(void **state)
{
    assert_status(hsa_amd_vmem_address_reserve(NULL, SIZE, 0, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_reserve_align(NULL, SIZE, 0, 0, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* "The size must be a multiple of the system page size." */
static void reserve_size_is_a_multiple_of_the_page_size(void **state)
{
    void *va = &va;

    assert_status(hsa_amd_vmem_address_reserve(&va, 0, 0, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_reserve(&va, 1, 0, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_reserve(&va, SIZE + 1, 0, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(va, &va);
    for (size_t size = page_size(); size < 8 * MIB; size = size * 2 + page_size()) {
        va = vmem_reserve(size);
        vmem_free(va, size);
    }
}

static void reserve_address_is_got_if_it_is_free(void **state)
{
    char *first = vmem_reserve(SIZE), *odd;
    void *va;

    vmem_free(first, SIZE);
    assert_success(hsa_amd_vmem_address_reserve(&va, SIZE, (uintptr_t)first, 0));
    assert_ptr_equal(va, first);
    vmem_free(va, SIZE);
    /* a wish counts more than the alignment that nobody has asked for */
    odd = first + page_size();
    assert_success(hsa_amd_vmem_address_reserve(&va, SIZE, (uintptr_t)odd, 0));
    assert_ptr_equal(va, odd);
    vmem_free(va, SIZE);
}

/* "If it is not possible to allocate the address specified by address, then va will be a different address range." */
static void reserve_address_that_is_taken_gives_another(void **state)
{
    /* TSan makes an address that it does not know NULL, where root may map; and then ends */
    const uint64_t wishes[] = {1, UINT64_MAX, UINT64_MAX - page_size() + 1, TEST_TSAN ? 1 : UINT64_C(1) << 60};
    char *first = vmem_reserve(SIZE);
    void *va;

    assert_success(hsa_amd_vmem_address_reserve(&va, SIZE, (uintptr_t)first, 0));
    assert_ptr_not_equal(va, first);
    vmem_free(va, SIZE);
    assert_success(hsa_amd_vmem_address_reserve(&va, SIZE, (uintptr_t)&va & ~(page_size() - 1), 0));
    assert_true((uintptr_t)va != ((uintptr_t)&va & ~(page_size() - 1)));
    vmem_free(va, SIZE);
    for (unsigned i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
        assert_success(hsa_amd_vmem_address_reserve(&va, SIZE, wishes[i], 0));
        assert_true((uintptr_t)va != wishes[i]);
        vmem_free(va, SIZE);
    }
    vmem_free(first, SIZE);
}

/* What is outside of the broker's arena is a range of this process only, and as good. */
static void reserve_address_outside_of_the_arena_is_private(void **state)
{
    void *free_range = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uintptr_t wish = ((uintptr_t)free_range + SIZE - 1) & ~(uintptr_t)(SIZE - 1);
    handle_t handle = vmem_create(SIZE);
    void *va;

    assert_mapped(free_range);
    assert_ok(munmap(free_range, 2 * SIZE));
    assert_success(hsa_amd_vmem_address_reserve(&va, SIZE, wish, 0));
    assert_true((uintptr_t)va == wish);
    assert_true(is_private(va));
    vmem_map_rw(va, SIZE, handle);
    memset(va, 1, SIZE);
    vmem_unmap(va, SIZE);
    vmem_free(va, SIZE);
    vmem_release(handle);
}

/* flags "currently unsupported": whatever they say, they change nothing. */
static void reserve_flags_are_ignored(void **state)
{
    const uint64_t flags[] = {HSA_AMD_VMEM_ADDRESS_NO_REGISTER, 2, UINT64_MAX};
    void *va;

    for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        assert_success(hsa_amd_vmem_address_reserve(&va, SIZE, 0, flags[i]));
        vmem_free(va, SIZE);
    }
}

/* "HSA_STATUS_ERROR_OUT_OF_RESOURCES - Insufficient resources to allocate an address range of this size." */
static void reserve_size_beyond_all_addresses_is_out_of_resources(void **state)
{
    const size_t sizes[] = {(size_t)1 << 62, (size_t)1 << 50, SIZE_MAX - page_size() + 1, ((size_t)1 << 63) + SIZE};
    void *va = &va;

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_status(hsa_amd_vmem_address_reserve(&va, sizes[i], 0, 0), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
        assert_status(hsa_amd_vmem_address_reserve_align(&va, sizes[i], SIZE, SIZE, 0),
                      HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    }
    assert_ptr_equal(va, &va);
}

/* Larger than the arena, and than all memory, whatever the system's policy of overcommit. */
static void reserve_size_of_a_tebibyte_takes_no_memory(void **state)
{
    size_t size = (size_t)1 << 40;
    char *va;

    if (TEST_TSAN)
        test_skip("TSan leaves a program less than that of addresses in one piece");
    settings_write("/proc/sys/vm/overcommit_memory", "2");
    va = vmem_reserve(size);
    settings_release(NULL);
    assert_true(is_aligned((uintptr_t)va, 2 * MIB));
    assert_string_equal(vmem_pages(va + size - 1), "---");
    vmem_free(va, size);
}

static void reserve_in_little_address_space(int channel, void *context)
{
    struct rlimit limit = {.rlim_cur = 4096 * MIB, .rlim_max = 4096 * MIB};
    void *va;

    (void)channel;
    (void)context;
    CHECK(!hsa_init());
    CHECK(!setrlimit(RLIMIT_AS, &limit));
    CHECK(hsa_amd_vmem_address_reserve(&va, 8192 * MIB, 0, 0) == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    CHECK(!hsa_amd_vmem_address_reserve(&va, 512 * MIB, 0, 0));
    CHECK(!hsa_amd_vmem_address_free(va, 512 * MIB));
    CHECK(!hsa_shut_down());
}

/* RLIMIT_AS is the kernel's word too. */
static void reserve_beyond_the_process_limit_is_out_of_resources(void **state)
{
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN)
        test_skip("a sanitizer's shadow is larger than any limit of addresses");
    child_run(reserve_in_little_address_space, NULL);
}

/* ---- address_reserve_align --------------------------------------------------------------------------------------- */

/* hsa_amd_vmem_address_reserve; hsa_amd_vmem_address_reserve_align, size, address, flags */
static void reserve_align_alignment_is_kept(void **state)
{
    for (uint64_t alignment = page_size(); alignment <= (UINT64_C(1) << 34); alignment <<= 3) {
        void *va, *again;

        assert_success(hsa_amd_vmem_address_reserve_align(&va, SIZE, 0, alignment, 0));
        assert_true(is_aligned((uintptr_t)va, alignment));
        /* neither a wish that is taken nor one that is not aligned changes that */
        assert_success(hsa_amd_vmem_address_reserve_align(&again, SIZE, (uintptr_t)va, alignment, 0));
        assert_true(is_aligned((uintptr_t)again, alignment));
        vmem_free(again, SIZE);
        assert_success(hsa_amd_vmem_address_reserve_align(&again, SIZE, (uintptr_t)va + 512, alignment, 0));
        assert_true(is_aligned((uintptr_t)again, alignment));
        vmem_free(again, SIZE);
        vmem_free(va, SIZE);
    }
}

static void reserve_align_alignment_that_is_none_is_invalid_argument(void **state)
{
    const uint64_t alignments[] = {1, page_size() / 2, 3 * page_size(), page_size() + 1, UINT64_MAX};
    void *va = &va;

    for (unsigned i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++)
        assert_status(hsa_amd_vmem_address_reserve_align(&va, SIZE, 0, alignments[i], 0),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_reserve_align(&va, SIZE + 1, 0, SIZE, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(va, &va);
    assert_success(hsa_amd_vmem_address_reserve_align(&va, SIZE, 0, 0, 0));
    assert_true(is_aligned((uintptr_t)va, 2 * MIB));
    vmem_free(va, SIZE);
}

/* ---- address_free ------------------------------------------------------------------------------------------------ */

/* "HSA_STATUS_ERROR_INVALID_ALLOCATION - Invalid va specified" */
static void free_va_that_is_none_is_invalid_allocation(void **state)
{
    char *va = vmem_reserve(SIZE);
    char here;

    assert_status(hsa_amd_vmem_address_free(NULL, SIZE), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_free(&here, SIZE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_address_free(va + page_size(), SIZE - page_size()), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_address_free(va - page_size(), SIZE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    vmem_free(va, SIZE);
    assert_status(hsa_amd_vmem_address_free(va, SIZE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* "The size must match the size of a previously allocated address range": else INVALID_ARGUMENT, "Invalid size". */
static void free_size_that_does_not_match_is_invalid_argument(void **state)
{
    char *va = vmem_reserve(SIZE);

    assert_status(hsa_amd_vmem_address_free(va, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_free(va, SIZE - 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_free(va, SIZE - page_size()), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_free(va, SIZE + page_size()), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_string_equal(vmem_pages(va), "---");
    vmem_free(va, SIZE);
}

/* "HSA_STATUS_ERROR_RESOURCE_FREE - Address range is still in use", until the last mapping is gone. */
static void free_of_a_range_in_use_is_resource_free(void **state)
{
    char *va = vmem_reserve(2 * SIZE);
    handle_t handle = vmem_create(SIZE);

    vmem_map(va, SIZE, handle);
    vmem_map(va + SIZE, SIZE, handle);
    /* releasing the handle does not unmap it */
    vmem_release(handle);
    assert_status(hsa_amd_vmem_address_free(va, 2 * SIZE), HSA_STATUS_ERROR_RESOURCE_FREE);
    vmem_unmap(va, SIZE);
    assert_status(hsa_amd_vmem_address_free(va, 2 * SIZE), HSA_STATUS_ERROR_RESOURCE_FREE);
    vmem_unmap(va + SIZE, SIZE);
    vmem_free(va, 2 * SIZE);
}

/* Also where it is the program that has mapped something there, past HSA. */
static void free_of_a_range_that_the_native_api_uses_is_resource_free(void **state)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buffer;
    char *va = vmem_reserve(SIZE);
    handle_t handle = vmem_create(SIZE);
    void *at;

    vmem_map(va, SIZE, handle);
    assert_success(memclient_hsa_buffer(va, &buffer));
    vmem_unmap(va, SIZE);
    options.address = va;
    assert_int_equal(memclient_map(buffer, &options, &at), 0);
    assert_status(hsa_amd_vmem_address_free(va, SIZE), HSA_STATUS_ERROR_RESOURCE_FREE);
    assert_int_not_equal(hsa_amd_vmem_map(va, SIZE, 0, handle, 0), HSA_STATUS_SUCCESS);
    assert_int_equal(memclient_unmap(memclient_buffer_context(buffer), va, SIZE), 0);
    memclient_buffer_unref(buffer);
    vmem_map(va, SIZE, handle);
    vmem_unmap(va, SIZE);
    vmem_free(va, SIZE);
    vmem_release(handle);
}

#define test(function) cmocka_unit_test_teardown(function, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(vmem_functions_are_not_initialized),
        test(reserve_va_is_an_inaccessible_range),
        test(reserve_va_null_is_invalid_argument),
        test(reserve_size_is_a_multiple_of_the_page_size),
        test(reserve_address_is_got_if_it_is_free),
        test(reserve_address_that_is_taken_gives_another),
        test(reserve_address_outside_of_the_arena_is_private),
        test(reserve_flags_are_ignored),
        test(reserve_size_beyond_all_addresses_is_out_of_resources),
        test_with_settings(reserve_size_of_a_tebibyte_takes_no_memory),
        test(reserve_beyond_the_process_limit_is_out_of_resources),
        test(reserve_align_alignment_is_kept),
        test(reserve_align_alignment_that_is_none_is_invalid_argument),
        test(free_va_that_is_none_is_invalid_allocation),
        test(free_size_that_does_not_match_is_invalid_argument),
        test(free_of_a_range_in_use_is_resource_free),
        test(free_of_a_range_that_the_native_api_uses_is_resource_free),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
