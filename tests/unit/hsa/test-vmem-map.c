/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping handles: hsa_amd_vmem_map() and hsa_amd_vmem_unmap(). Sentences in quotation marks are the document's.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/support/wait.h"
#include "tests/unit/hsa/vmem.h"

#define SIZE               ((size_t)2 << 20)
#define INVALID_ARGUMENT   HSA_STATUS_ERROR_INVALID_ARGUMENT
#define INVALID_ALLOCATION HSA_STATUS_ERROR_INVALID_ALLOCATION

/* A range of four sizes and a handle of one, for each test. */
static char *va;
static handle_t handle;

static int setup(void **state)
{
    va = vmem_reserve(4 * SIZE);
    handle = vmem_create(SIZE);
    return 0;
}

static int teardown(void **state)
{
    vmem_release(handle);
    vmem_free(va, 4 * SIZE);
    return hsa_nothing_left(state);
}

/* ---- map --------------------------------------------------------------------------------------------------------- */

/* hsa_amd_vmem_map, SUCCESS: "Map a virtual memory handle to a reserved address range." At its start, inside, and at
 * its end. */
static void map_va_is_anywhere_in_a_reserved_range(void **state)
{
    const size_t offsets[] = {0, SIZE, 3 * SIZE, page_size(), SIZE + 3 * page_size()};

    for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        vmem_map_rw(va + offsets[i], SIZE, handle);
        va[offsets[i]] = 'a';
        va[offsets[i] + SIZE - 1] = 'z';
        assert_string_equal(vmem_pages(va + offsets[i]), "rw-");
        vmem_unmap(va + offsets[i], SIZE);
    }
}

/* hsa_amd_vmem_map: "hsa_amd_vmem_set_access needs to be called to make the memory accessible to specific agents":
 * until then, nobody. */
static void map_gives_no_access_before_set_access(void **state)
{
    hsa_access_permission_t permissions = HSA_ACCESS_PERMISSION_RW;

    vmem_map(va, SIZE, handle);
    assert_string_equal(vmem_pages(va), "---");
    assert_status(hsa_amd_vmem_get_access(va, &permissions, agents[0]), INVALID_ALLOCATION);
    vmem_allow(va, SIZE);
    va[0] = 1;
    vmem_unmap(va, SIZE);
    /* permissions go with the mapping */
    vmem_map(va, SIZE, handle);
    assert_string_equal(vmem_pages(va), "---");
    assert_status(hsa_amd_vmem_get_access(va, &permissions, agents[0]), INVALID_ALLOCATION);
    vmem_unmap(va, SIZE);
}

/* "The virtual address requested must be within a previously reserved address range." */
static void map_va_outside_of_a_reserved_range_is_invalid_argument(void **state)
{
    void *other = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *gone = vmem_reserve(SIZE);

    assert_mapped(other);
    vmem_free(gone, SIZE);
    assert_status(hsa_amd_vmem_map(NULL, SIZE, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(other, SIZE, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(gone, SIZE, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map((void *)-page_size(), SIZE, 0, handle, 0), INVALID_ARGUMENT);
    assert_ok(munmap(other, SIZE));
}

/* "va and (va + size) must be must be within (va + size) of the previous allocated address range." */
static void map_va_and_size_beyond_the_reserved_range_is_invalid_argument(void **state)
{
    void *neighbour = NULL;

    assert_status(hsa_amd_vmem_map(va + 3 * SIZE + page_size(), SIZE, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va - page_size(), SIZE, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va + 4 * SIZE, SIZE, 0, handle, 0), INVALID_ARGUMENT);
    /* nor within two of them */
    assert_success(hsa_amd_vmem_address_reserve(&neighbour, SIZE, (uintptr_t)va + 4 * SIZE, 0));
    if ((char *)neighbour == va + 4 * SIZE)
        assert_status(hsa_amd_vmem_map(va + 3 * SIZE + page_size(), SIZE, 0, handle, 0), INVALID_ARGUMENT);
    vmem_free(neighbour, SIZE);
}

static void map_va_that_is_no_multiple_of_the_page_size_is_invalid_argument(void **state)
{
    assert_status(hsa_amd_vmem_map(va + 1, SIZE, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va + 512, page_size(), 0, handle, 0), INVALID_ARGUMENT);
}

/* hsa_amd_vmem_map: "size must be equal to size of the memory_handle", or a part of it. */
static void map_size_may_be_a_part_of_the_handle(void **state)
{
    vmem_map_rw(va, SIZE, handle);
    vmem_map_rw(va + SIZE, page_size(), handle);
    write_text(va, "one page of it");
    assert_string_equal(va + SIZE, "one page of it");
    assert_string_equal(vmem_pages(va + SIZE + page_size()), "---");
    vmem_unmap(va + SIZE, page_size());
    vmem_unmap(va, SIZE);
}

static void map_size_zero_or_odd_is_invalid_argument(void **state)
{
    assert_status(hsa_amd_vmem_map(va, 0, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, 1, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, SIZE - 1, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, page_size() + 512, 0, handle, 0), INVALID_ARGUMENT);
}

static void map_size_beyond_the_handle_is_invalid_argument(void **state)
{
    assert_status(hsa_amd_vmem_map(va, SIZE + page_size(), 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, 4 * SIZE, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, SIZE_MAX - page_size() + 1, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, SIZE, page_size(), handle, 0), INVALID_ARGUMENT);
    assert_string_equal(vmem_pages(va), "---");
}

/* in_offset "currently unsupported": honoured here. */
static void map_in_offset_is_where_in_the_handle(void **state)
{
    size_t page = page_size();

    vmem_map_rw(va, SIZE, handle);
    for (size_t i = 0; i < SIZE / page; i++)
        va[i * page] = (char)i;
    assert_success(hsa_amd_vmem_map(va + SIZE, 3 * page, 5 * page, handle, 0));
    vmem_allow(va + SIZE, 3 * page);
    assert_int_equal(va[SIZE], 5);
    assert_int_equal(va[SIZE + 2 * page], 7);
    vmem_unmap(va + SIZE, 3 * page);
    /* the last page */
    assert_success(hsa_amd_vmem_map(va + SIZE, page, SIZE - page, handle, 0));
    vmem_allow(va + SIZE, page);
    assert_int_equal(va[SIZE], (char)(SIZE / page - 1));
    vmem_unmap(va + SIZE, page);
    vmem_unmap(va, SIZE);
}

static void map_in_offset_beyond_the_handle_or_odd_is_invalid_argument(void **state)
{
    assert_status(hsa_amd_vmem_map(va, page_size(), 1, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, page_size(), SIZE, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, page_size(), SIZE + page_size(), handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, page_size(), SIZE_MAX - page_size() + 1, handle, 0), INVALID_ARGUMENT);
}

/* "HSA_STATUS_ERROR_INVALID_ARGUMENT - va, size or memory_handle are invalid" */
static void map_memory_handle_that_is_none_is_invalid_argument(void **state)
{
    handle_t gone = vmem_create(SIZE);

    vmem_release(gone);
    assert_status(hsa_amd_vmem_map(va, SIZE, 0, gone, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, SIZE, 0, (handle_t){0}, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, SIZE, 0, (handle_t){(uintptr_t)va}, 0), INVALID_ARGUMENT);
}

/* flags "currently unsupported": there are programs that pass a size. */
static void map_flags_are_ignored(void **state)
{
    assert_success(hsa_amd_vmem_map(va, SIZE, 0, handle, SIZE));
    assert_success(hsa_amd_vmem_map(va + SIZE, SIZE, 0, handle, UINT64_MAX));
    vmem_unmap(va, 2 * SIZE);
}

static void map_over_a_mapping_is_invalid_argument(void **state)
{
    const size_t starts[] = {0, SIZE / 2, SIZE, SIZE + SIZE / 2, 2 * SIZE - page_size()};

    vmem_map(va + SIZE, SIZE, handle);
    for (unsigned i = 1; i < sizeof(starts) / sizeof(starts[0]); i++)
        assert_status(hsa_amd_vmem_map(va + starts[i], SIZE, 0, handle, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va + SIZE + page_size(), page_size(), 0, handle, 0), INVALID_ARGUMENT);
    /* beside it there is room */
    vmem_map(va, SIZE, handle);
    vmem_map(va + 2 * SIZE, SIZE, handle);
    vmem_unmap(va, 3 * SIZE);
}

/* One handle in several places shows the same memory. */
static void map_memory_handle_many_times_gives_aliases(void **state)
{
    for (unsigned i = 0; i < 4; i++)
        vmem_map_rw(va + i * SIZE, SIZE, handle);
    for (unsigned i = 0; i < 4; i++) {
        memset(va + i * SIZE, (int)i + 1, SIZE);
        for (unsigned k = 0; k < 4; k++)
            assert_memory_equal(va + k * SIZE, va + i * SIZE, SIZE);
    }
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    vmem_unmap(va, 4 * SIZE);
}

static hsa_status_t allow(void *address, size_t size, hsa_agent_t agent)
{
    const hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, agent};

    return hsa_amd_vmem_set_access(address, size, &rw, 1);
}

static void use_up_mappings(unsigned most)
{
    hsa_status_t status = HSA_STATUS_SUCCESS;
    handle_t memory;
    unsigned n = 0;
    char *range;

    memory = vmem_create(2 * page_size());
    range = vmem_reserve((2 * most + 2) * page_size());
    /* one piece for the kernel, two for us */
    assert_success(hsa_amd_vmem_map(range, page_size(), 0, memory, 0));
    assert_success(hsa_amd_vmem_map(range + page_size(), page_size(), page_size(), memory, 0));
    while (n < most && !(status = hsa_amd_vmem_map(range + (3 + 2 * n) * page_size(), page_size(), 0, memory, 0)))
        n++;
    assert_status(status, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_status(allow(range, page_size(), agents[0]), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    while (n--)
        assert_success(hsa_amd_vmem_unmap(range + (3 + 2 * n) * page_size(), page_size()));
    assert_success(allow(range, page_size(), agents[0]));
    assert_success(hsa_amd_vmem_unmap(range, 2 * page_size()));
    assert_success(hsa_amd_vmem_handle_release(memory));
    assert_success(hsa_amd_vmem_address_free(range, (2 * most + 2) * page_size()));
}

/* hsa_amd_vmem_map(): HSA_STATUS_ERROR_OUT_OF_RESOURCES: the kernel takes no more mappings. Then
 * hsa_amd_vmem_set_access() that would need one more gives HSA_STATUS_ERROR_OUT_OF_RESOURCES too. All can be unmapped
 * again, whether the last that fitted came up to the kernel's limit or beyond it by one: each takes two. */
static void map_out_of_resources(void **state)
{
    const unsigned most = 70000;
    void *one_more;

    hsa_skip_unless_few_mappings(most);
    use_up_mappings(most);
    one_more = mmap(NULL, page_size(), PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(one_more, MAP_FAILED);
    use_up_mappings(most);
    assert_int_equal(munmap(one_more, page_size()), 0);
}

/* ---- unmap ------------------------------------------------------------------------------------------------------- */

/* hsa_amd_vmem_unmap, SUCCESS: "Unmap previously mapped virtual address range". The addresses stay reserved, the
 * contents in the handle. */
static void unmap_va_stays_reserved(void **state)
{
    vmem_map_rw(va, SIZE, handle);
    write_text(va, "kept");
    memset(va + page_size(), 1, SIZE - page_size());
    assert_true(vmem_resident(va, SIZE) >= SIZE);
    vmem_unmap(va, SIZE);
    assert_true(vmem_is_taken(va, 4 * SIZE));
    assert_string_equal(vmem_pages(va), "---");
    assert_int_equal(vmem_resident(va, 4 * SIZE), 0);
    vmem_map_rw(va + SIZE, SIZE, handle);
    assert_string_equal(va + SIZE, "kept");
    vmem_unmap(va + SIZE, SIZE);
}

/* Memory that no handle and no mapping is left of is given back, while its addresses are still reserved. */
static void unmap_of_the_last_mapping_gives_the_memory_back(void **state)
{
    handle_t second = vmem_create(SIZE);
    void *wish;

    vmem_map_rw(va, SIZE, second);
    vmem_map_rw(va + 2 * SIZE, SIZE, second);
    memset(va, 1, SIZE);
    vmem_release(second);
    vmem_unmap(va, SIZE);
    assert_true(WAIT_UNTIL(observer_buffers() == 2));
    assert_int_equal(va[3 * SIZE - 1], 1);
    vmem_unmap(va + 2 * SIZE, SIZE);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_true(vmem_is_taken(va, 4 * SIZE));
    assert_success(hsa_amd_vmem_address_reserve(&wish, SIZE, (uintptr_t)va, 0));
    assert_ptr_not_equal(wish, va);
    vmem_free(wish, SIZE);
}

/* hsa_amd_vmem_unmap, size: Several whole mappings that follow each other without a gap go at once. */
static void unmap_size_may_span_whole_mappings(void **state)
{
    handle_t second = vmem_create(SIZE);

    vmem_map_rw(va, SIZE, handle);
    vmem_map_rw(va + SIZE, SIZE, second);
    vmem_map_rw(va + 2 * SIZE, SIZE / 2, handle);
    vmem_map_rw(va + 2 * SIZE + SIZE / 2, SIZE / 2, second);
    vmem_unmap(va + SIZE, SIZE + SIZE / 2);
    assert_string_equal(vmem_pages(va), "rw-");
    assert_string_equal(vmem_pages(va + SIZE), "---");
    assert_string_equal(vmem_pages(va + 2 * SIZE + SIZE / 2), "rw-");
    vmem_map(va + SIZE, SIZE, second);
    vmem_map(va + 2 * SIZE, SIZE / 2, second);
    vmem_release(second);
    vmem_unmap(va, 3 * SIZE);
}

/* "HSA_STATUS_ERROR_INVALID_ALLOCATION - memory_handle is invalid": nothing is mapped there. */
static void unmap_va_that_is_not_mapped_is_invalid_allocation(void **state)
{
    char here[1];
    void *allocated;

    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], SIZE, 0, &allocated));
    vmem_map(va + SIZE, SIZE, handle);
    assert_status(hsa_amd_vmem_unmap(va, SIZE), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(va + 2 * SIZE, SIZE), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(va + SIZE + page_size(), SIZE - page_size()), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(here, SIZE), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(allocated, SIZE), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap((void *)-page_size(), SIZE), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(NULL, SIZE), INVALID_ARGUMENT);
    vmem_unmap(va + SIZE, SIZE);
    assert_status(hsa_amd_vmem_unmap(va + SIZE, SIZE), INVALID_ALLOCATION);
    assert_success(hsa_amd_memory_pool_free(allocated));
}

/* "HSA_STATUS_ERROR_INVALID_ARGUMENT - size is invalid" */
static void unmap_size_zero_or_odd_is_invalid_argument(void **state)
{
    vmem_map(va, SIZE, handle);
    assert_status(hsa_amd_vmem_unmap(va, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_unmap(va, 1), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_unmap(va, SIZE - 1), INVALID_ARGUMENT);
    vmem_unmap(va, SIZE);
}

/* A part of a mapping, and a range with a gap: nothing of it is unmapped. */
static void unmap_size_with_a_cut_or_a_gap_is_invalid_allocation(void **state)
{
    vmem_map_rw(va, SIZE, handle);
    vmem_map_rw(va + 2 * SIZE, SIZE, handle);
    assert_status(hsa_amd_vmem_unmap(va, SIZE - page_size()), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(va, SIZE + page_size()), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(va, 2 * SIZE), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(va, 3 * SIZE), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(va, SIZE_MAX - page_size() + 1), INVALID_ALLOCATION);
    va[0] = va[SIZE - 1] = va[2 * SIZE] = va[3 * SIZE - 1] = 1;
    vmem_unmap(va, SIZE);
    vmem_unmap(va + 2 * SIZE, SIZE);
}

/* HSA_STATUS_ERROR "Unexpected internal error" of hsa_amd_vmem_address_free(), _map(), _unmap(), _set_access() and
 * _get_access(): nothing that a program passes gives it, whatever it is. (hsa_amd_vmem_map, hsa_amd_vmem_unmap,
 * hsa_amd_vmem_set_access, hsa_amd_vmem_get_access) */
static void nothing_is_unexpected(void **state)
{
    hsa_amd_vmem_alloc_handle_t handles[] = {vmem_create(4 * page_size()), {0}, {UINT64_MAX}};
    char *range = vmem_reserve(8 * page_size());
    void *addresses[] = {
        NULL, range, range + page_size(), range + 1, range + 8 * page_size(), &range, (void *)UINTPTR_MAX};
    const size_t sizes[] = {
        0, 1, page_size(), 4 * page_size(), 8 * page_size(), SIZE_MAX, SIZE_MAX & ~(page_size() - 1)};
    hsa_agent_t some[] = {agents[0], {0}};

    assert_success(hsa_amd_vmem_map(range, page_size(), 0, handles[0], 0));
    for (unsigned i = 0; i < 7 * 7 * 7 * 3 * 2; i++) {
        void *address = addresses[i % 7];
        size_t size = sizes[i / 7 % 7];
        hsa_access_permission_t perms;

        assert_int_not_equal(hsa_amd_vmem_map(address, size, sizes[i / 49 % 7], handles[i / 343 % 3], 0),
                             HSA_STATUS_ERROR);
        assert_int_not_equal(allow(address, size, some[i / 1029]), HSA_STATUS_ERROR);
        assert_int_not_equal(hsa_amd_vmem_get_access(address, &perms, some[i / 1029]), HSA_STATUS_ERROR);
        assert_int_not_equal(hsa_amd_vmem_unmap(address, size), HSA_STATUS_ERROR);
        if (size != 8 * page_size())
            assert_int_not_equal(hsa_amd_vmem_address_free(address, size), HSA_STATUS_ERROR);
    }
    for (unsigned i = 0; i < 8; i++)
        for (size_t size = page_size(); size <= 8 * page_size(); size += page_size())
            (void)hsa_amd_vmem_unmap(range + i * page_size(), size);
    assert_success(hsa_amd_vmem_handle_release(handles[0]));
    assert_success(hsa_amd_vmem_address_free(range, 8 * page_size()));
}

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

static void note_callback(void *ptr, void *data)
{
    hsa_access_permission_t permissions;

    assert_ptr_equal(ptr, va + 5);
    /* no lock is held, and the mapping is gone: there may be another one already */
    assert_status(hsa_amd_vmem_get_access(va, &permissions, agents[0]), INVALID_ALLOCATION);
    vmem_map(va, SIZE, handle);
    ++*(unsigned *)data;
}

static void unmap_calls_deallocation_callbacks(void **state)
{
    unsigned called = 0;

    vmem_map(va, SIZE, handle);
    assert_success(hsa_amd_register_deallocation_callback(va + 5, note_callback, &called));
    vmem_unmap(va, SIZE);
    assert_int_equal(called, 1);
    vmem_unmap(va, SIZE);
    assert_int_equal(called, 1);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(map_va_is_anywhere_in_a_reserved_range),
        test(map_gives_no_access_before_set_access),
        test(map_va_outside_of_a_reserved_range_is_invalid_argument),
        test(map_va_and_size_beyond_the_reserved_range_is_invalid_argument),
        test(map_va_that_is_no_multiple_of_the_page_size_is_invalid_argument),
        test(map_size_may_be_a_part_of_the_handle),
        test(map_size_zero_or_odd_is_invalid_argument),
        test(map_size_beyond_the_handle_is_invalid_argument),
        test(map_in_offset_is_where_in_the_handle),
        test(map_in_offset_beyond_the_handle_or_odd_is_invalid_argument),
        test(map_memory_handle_that_is_none_is_invalid_argument),
        test(map_flags_are_ignored),
        test(map_over_a_mapping_is_invalid_argument),
        test(map_memory_handle_many_times_gives_aliases),
        cmocka_unit_test_teardown(map_out_of_resources, hsa_nothing_left),
        test(unmap_va_stays_reserved),
        test(unmap_of_the_last_mapping_gives_the_memory_back),
        test(unmap_size_may_span_whole_mappings),
        test(unmap_va_that_is_not_mapped_is_invalid_allocation),
        test(unmap_size_zero_or_odd_is_invalid_argument),
        test(unmap_size_with_a_cut_or_a_gap_is_invalid_allocation),
        cmocka_unit_test_teardown(nothing_is_unexpected, hsa_nothing_left),
        test(unmap_calls_deallocation_callbacks),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
