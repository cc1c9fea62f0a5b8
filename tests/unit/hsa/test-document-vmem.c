/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's document on virtual memory, its first part: addresses, mappings, and who may use them. Each test quotes the
 * function and what of it is checked, as COVERAGE lists them.
 */
#include "tests/unit/hsa/hsa.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/hsa/vmem.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define RW   HSA_ACCESS_PERMISSION_RW
#define RO   HSA_ACCESS_PERMISSION_RO
#define WO   HSA_ACCESS_PERMISSION_WO
#define NONE HSA_ACCESS_PERMISSION_NONE

static const uint64_t no_agents[] = {0, 1, UINT64_MAX, INT64_MAX};

/* n mappings of a page each, one after the other, of one handle, and no claim on it left. */
static char *reserve_and_map(unsigned n)
{
    char *va = vmem_reserve((n + 2) * PAGE);

    for (unsigned i = 0; i < n; i++) {
        handle_t handle = vmem_create(PAGE);

        assert_success(hsa_amd_vmem_map(va + i * PAGE, PAGE, 0, handle, 0));
        assert_success(hsa_amd_vmem_handle_release(handle));
    }
    return va;
}

static void unmap_and_free(char *va, unsigned n)
{
    assert_success(hsa_amd_vmem_unmap(va, n * PAGE));
    assert_success(hsa_amd_vmem_address_free(va, (n + 2) * PAGE));
}

static hsa_status_t allow(void *va, size_t size, hsa_agent_t agent, hsa_access_permission_t permission)
{
    hsa_amd_memory_access_desc_t desc = {permission, agent};

    return hsa_amd_vmem_set_access(va, size, &desc, 1);
}

/* ---- hsa_amd_vmem_address_reserve(), _reserve_align(), hsa_amd_vmem_address_free() ----------------------- */

/* hsa_amd_vmem_address_reserve(va, size, address, flags): va "virtual address allocated": HSA_STATUS_SUCCESS,
 * "Reserve a virtual address range": nothing can be read there, nothing else comes there, and it takes no memory.
 * */
static void reserve_va(void **state)
{
    const size_t size = 4096 * MIB;
    void *va = NULL;

    (void)state;
    assert_status(hsa_amd_vmem_address_reserve(&va, size, 0, 0), HSA_STATUS_SUCCESS);
    assert_int_equal((uintptr_t)va % PAGE, 0);
    assert_true(vmem_is_taken(va, PAGE));
    assert_true(vmem_is_taken((char *)va + size - PAGE, PAGE));
    assert_false(vmem_is_readable(va));
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_status(hsa_amd_vmem_address_reserve(NULL, PAGE, 0, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_address_free(va, size));
}

/* hsa_amd_vmem_address_reserve(): size "must be a multiple of the system page size". */
static void reserve_size(void **state)
{
    const size_t wrong[] = {0, 1, PAGE - 1, PAGE + 1, 3 * PAGE + 512};
    void *va = &va;

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_status(hsa_amd_vmem_address_reserve(&va, wrong[i], 0, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(va, &va);
    for (size_t size = PAGE; size < 8 * MIB; size = size * 2 + PAGE)
        assert_success(hsa_amd_vmem_address_free(vmem_reserve(size), size));
}

/* hsa_amd_vmem_address_reserve(): address "requested": it is taken if it is free; "If it is not possible to
 * allocate the address specified by address, then va will be a different address range". */
static void reserve_address(void **state)
{
    char *first = vmem_reserve(4 * MIB);
    void *va = NULL, *other = NULL;

    (void)state;
    assert_success(hsa_amd_vmem_address_free(first, 4 * MIB));
    assert_success(hsa_amd_vmem_address_reserve(&va, 4 * MIB, (uintptr_t)first, 0));
    assert_ptr_equal(va, first);
    assert_success(hsa_amd_vmem_address_reserve(&other, 4 * MIB, (uintptr_t)first, 0));
    assert_ptr_not_equal(other, first);
    assert_success(hsa_amd_vmem_address_free(other, 4 * MIB));
    /* what this process has there is not touched */
    assert_success(hsa_amd_vmem_address_reserve(&other, PAGE, (uintptr_t)&state & ~(PAGE - 1), 0));
    assert_ptr_not_equal(other, (char *)((uintptr_t)&state & ~(PAGE - 1)));
    assert_success(hsa_amd_vmem_address_free(other, PAGE));
    assert_success(hsa_amd_vmem_address_free(va, 4 * MIB));
}

/* hsa_amd_vmem_address_reserve(): flags "currently unsupported": whatever they are makes no difference. */
static void reserve_flags(void **state)
{
    void *va;

    (void)state;
    assert_success(hsa_amd_vmem_address_reserve(&va, PAGE, 0, UINT64_MAX));
    assert_success(hsa_amd_vmem_address_free(va, PAGE));
    assert_success(hsa_amd_vmem_address_reserve(&va, PAGE, 0, HSA_AMD_VMEM_ADDRESS_NO_REGISTER));
    assert_success(hsa_amd_vmem_address_free(va, PAGE));
}

/* hsa_amd_vmem_address_reserve(): HSA_STATUS_ERROR_OUT_OF_RESOURCES: "Insufficient resources to allocate an address
 * range of this size". */
static void reserve_out_of_resources(void **state)
{
    void *va = &va;

    (void)state;
    assert_status(hsa_amd_vmem_address_reserve(&va, (size_t)1 << 62, 0, 0), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_status(hsa_amd_vmem_address_reserve(&va, (size_t)1 << 50, 0, 0), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_ptr_equal(va, &va);
}

/* hsa_amd_vmem_address_reserve() "will be replaced by hsa_amd_vmem_address_reserve_align"(va, size, address,
 * alignment, flags): HSA_STATUS_SUCCESS: alignment is a power of two, not less than a page, 0 for any; another, a
 * wrong size or no va is HSA_STATUS_ERROR_INVALID_ARGUMENT; HSA_STATUS_ERROR_OUT_OF_RESOURCES as above. */
static void reserve_align(void **state)
{
    const uint64_t wrong[] = {1, 3, PAGE / 2, PAGE + 1, 3 * PAGE, UINT64_MAX};
    void *va;

    (void)state;
    for (uint64_t alignment = PAGE; alignment <= 1024 * MIB; alignment *= 4) {
        assert_status(hsa_amd_vmem_address_reserve_align(&va, 3 * PAGE, 0, alignment, 0), HSA_STATUS_SUCCESS);
        assert_int_equal((uintptr_t)va % alignment, 0);
        assert_success(hsa_amd_vmem_address_free(va, 3 * PAGE));
    }
    assert_success(hsa_amd_vmem_address_reserve_align(&va, PAGE, 0, 0, 0));
    assert_success(hsa_amd_vmem_address_free(va, PAGE));
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_status(hsa_amd_vmem_address_reserve_align(&va, PAGE, 0, wrong[i], 0),
                      HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_reserve_align(&va, 1, 0, PAGE, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_reserve_align(NULL, PAGE, 0, 0, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_reserve_align(&va, (size_t)1 << 62, 0, PAGE, 0),
                  HSA_STATUS_ERROR_OUT_OF_RESOURCES);
}

/* hsa_amd_vmem_address_free(va, size): va "to be freed": HSA_STATUS_SUCCESS, and the range is free;
 * HSA_STATUS_ERROR_INVALID_ALLOCATION: "Invalid va specified", HSA_STATUS_ERROR_INVALID_ARGUMENT if it is NULL. */
static void address_free_va(void **state)
{
    char *va = vmem_reserve(4 * PAGE);

    (void)state;
    assert_status(hsa_amd_vmem_address_free(NULL, PAGE), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_free(va + PAGE, 3 * PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_address_free(&va, PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_address_free(va, 4 * PAGE), HSA_STATUS_SUCCESS);
    assert_false(vmem_is_taken(va, PAGE));
    assert_status(hsa_amd_vmem_address_free(va, 4 * PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_amd_vmem_address_free(): size "must match the size of a previously allocated address range", else
 * HSA_STATUS_ERROR_INVALID_ARGUMENT: "Invalid size specified". */
static void address_free_size(void **state)
{
    char *va = vmem_reserve(4 * PAGE);

    (void)state;
    assert_status(hsa_amd_vmem_address_free(va, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_free(va, 3 * PAGE), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_free(va, 5 * PAGE), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_address_free(va, 4 * PAGE - 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_address_free(va, 4 * PAGE));
}

/* hsa_amd_vmem_address_free(): HSA_STATUS_ERROR_RESOURCE_FREE: "Address range is still in use", also by a handle
 * that was released, until all is unmapped. */
static void address_free_in_use(void **state)
{
    char *va = reserve_and_map(1);

    (void)state;
    assert_status(hsa_amd_vmem_address_free(va, 3 * PAGE), HSA_STATUS_ERROR_RESOURCE_FREE);
    assert_success(allow(va, PAGE, agents[0], RW));
    *va = 1;
    assert_success(hsa_amd_vmem_unmap(va, PAGE));
    assert_success(hsa_amd_vmem_address_free(va, 3 * PAGE));
}

/* ---- hsa_amd_vmem_map(), hsa_amd_vmem_unmap() ------------------------------------------------------------ */

/* hsa_amd_vmem_map(va, size, in_offset, memory_handle, flags): va "where memory will be mapped": HSA_STATUS_SUCCESS
 * at any page "within a previously reserved address range"; "va and (va + size) must be within" it;
 * HSA_STATUS_ERROR_INVALID_ARGUMENT: va is invalid. */
static void map_va(void **state)
{
    handle_t handle = vmem_create(2 * PAGE);
    char *va = vmem_reserve(8 * PAGE);
    int local;

    (void)state;
    assert_status(hsa_amd_vmem_map(NULL, 2 * PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(&local, 2 * PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va + 1, 2 * PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va - PAGE, 2 * PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va + 7 * PAGE, 2 * PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va + 6 * PAGE, 2 * PAGE, 0, handle, 0), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_vmem_map(va + 3 * PAGE, 2 * PAGE, 0, handle, 0), HSA_STATUS_SUCCESS);
    /* something is there already */
    assert_status(hsa_amd_vmem_map(va + 5 * PAGE, 2 * PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va + 4 * PAGE, 2 * PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_unmap(va + 6 * PAGE, 2 * PAGE));
    assert_success(hsa_amd_vmem_unmap(va + 3 * PAGE, 2 * PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 8 * PAGE));
}

/* hsa_amd_vmem_map(): size "must be equal to size of the memory_handle": all of it, here also a part, never more or
 * nothing: HSA_STATUS_ERROR_INVALID_ARGUMENT. */
static void map_size(void **state)
{
    handle_t handle = vmem_create(4 * PAGE);
    char *va = vmem_reserve(8 * PAGE);

    (void)state;
    assert_status(hsa_amd_vmem_map(va, 0, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, 4 * PAGE + 1, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, 5 * PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, PAGE - 1, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, SIZE_MAX & ~(PAGE - 1), 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, 4 * PAGE, 0, handle, 0), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_vmem_map(va + 4 * PAGE, PAGE, 0, handle, 0), HSA_STATUS_SUCCESS);
    assert_success(hsa_amd_vmem_unmap(va, 5 * PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 8 * PAGE));
}

/* hsa_amd_vmem_map(): in_offset "into memory. Currently unsupported": here a whole number of pages counts, within the
 * handle. */
static void map_in_offset(void **state)
{
    handle_t handle = vmem_create(4 * PAGE);
    char *va = vmem_reserve(8 * PAGE);

    (void)state;
    assert_success(hsa_amd_vmem_map(va, 4 * PAGE, 0, handle, 0));
    assert_success(hsa_amd_vmem_map(va + 4 * PAGE, 2 * PAGE, 2 * PAGE, handle, 0));
    assert_success(allow(va, 6 * PAGE, agents[0], RW));
    memcpy(va + 3 * PAGE, "the same page", sizeof("the same page"));
    assert_string_equal(va + 5 * PAGE, "the same page");
    assert_status(hsa_amd_vmem_map(va + 6 * PAGE, PAGE, 1, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va + 6 * PAGE, 2 * PAGE, 3 * PAGE, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va + 6 * PAGE, PAGE, SIZE_MAX & ~(PAGE - 1), handle, 0),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_unmap(va, 6 * PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 8 * PAGE));
}

/* hsa_amd_vmem_map(): memory_handle "virtual memory handle to be mapped": HSA_STATUS_ERROR_INVALID_ARGUMENT if it
 * is none, or none any more. */
static void map_memory_handle(void **state)
{
    handle_t handle = vmem_create(PAGE);
    char *va = vmem_reserve(2 * PAGE);

    (void)state;
    assert_status(hsa_amd_vmem_map(va, PAGE, 0, (hsa_amd_vmem_alloc_handle_t){0}, 0),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_map(va, PAGE, 0, (hsa_amd_vmem_alloc_handle_t){(uintptr_t)&handle}, 0),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_map(va, PAGE, 0, handle, 0));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_status(hsa_amd_vmem_map(va + PAGE, PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_unmap(va, PAGE));
    assert_status(hsa_amd_vmem_map(va, PAGE, 0, handle, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_address_free(va, 2 * PAGE));
}

/* hsa_amd_vmem_map(): flags "Currently unsupported": they make no difference. */
static void map_flags(void **state)
{
    handle_t handle = vmem_create(PAGE);
    char *va = vmem_reserve(PAGE);

    (void)state;
    assert_success(hsa_amd_vmem_map(va, PAGE, 0, handle, UINT64_MAX));
    assert_success(hsa_amd_vmem_unmap(va, PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, PAGE));
}

/* hsa_amd_vmem_map(): "hsa_amd_vmem_set_access needs to be called to make the memory accessible to specific
 * agents". */
static void map_gives_no_access(void **state)
{
    char *va = reserve_and_map(1);

    (void)state;
    assert_false(vmem_is_readable(va));
    assert_false(vmem_is_writable(va));
    assert_success(allow(va, PAGE, agents[0], RW));
    assert_true(vmem_is_writable(va));
    unmap_and_free(va, 1);
}

static void use_up_mappings(unsigned most)
{
    hsa_status_t status = HSA_STATUS_SUCCESS;
    handle_t handle;
    unsigned n = 0;
    char *va;

    handle = vmem_create(2 * PAGE);
    va = vmem_reserve((2 * most + 2) * PAGE);
    /* one piece for the kernel, two for us */
    assert_success(hsa_amd_vmem_map(va, PAGE, 0, handle, 0));
    assert_success(hsa_amd_vmem_map(va + PAGE, PAGE, PAGE, handle, 0));
    while (n < most && !(status = hsa_amd_vmem_map(va + (3 + 2 * n) * PAGE, PAGE, 0, handle, 0)))
        n++;
    assert_status(status, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_status(allow(va, PAGE, agents[0], RW), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    while (n--)
        assert_success(hsa_amd_vmem_unmap(va + (3 + 2 * n) * PAGE, PAGE));
    assert_success(allow(va, PAGE, agents[0], RW));
    assert_success(hsa_amd_vmem_unmap(va, 2 * PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, (2 * most + 2) * PAGE));
}

/* hsa_amd_vmem_map(): HSA_STATUS_ERROR_OUT_OF_RESOURCES: the kernel takes no more mappings. Then
 * hsa_amd_vmem_set_access() that would need one more gives HSA_STATUS_ERROR_OUT_OF_RESOURCES too. All can be unmapped
 * again, whether the last that fitted came up to the kernel's limit or beyond it by one: each takes two. */
static void map_out_of_resources(void **state)
{
    const unsigned most = 70000;
    void *one_more;

    (void)state;
    hsa_skip_unless_few_mappings(most);
    use_up_mappings(most);
    one_more = mmap(NULL, PAGE, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(one_more, MAP_FAILED);
    use_up_mappings(most);
    assert_int_equal(munmap(one_more, PAGE), 0);
}

/* hsa_amd_vmem_unmap(va, size): va "Unmap previously mapped virtual address range": HSA_STATUS_SUCCESS; the
 * addresses stay reserved, and what no handle keeps is freed. HSA_STATUS_ERROR_INVALID_ALLOCATION where nothing
 * begins that is mapped. */
static void unmap_va(void **state)
{
    char *va = reserve_and_map(2);

    (void)state;
    assert_status(hsa_amd_vmem_unmap(NULL, PAGE), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_unmap(va + 2 * PAGE, PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(&va, PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_true(WAIT_UNTIL(observer_buffers() == 2));
    assert_status(hsa_amd_vmem_unmap(va, PAGE), HSA_STATUS_SUCCESS);
    assert_status(hsa_amd_vmem_unmap(va, PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_true(vmem_is_taken(va, PAGE));
    assert_false(vmem_is_readable(va));
    assert_success(hsa_amd_vmem_unmap(va + PAGE, PAGE));
    hsa_nothing_left(state);
    assert_success(hsa_amd_vmem_address_free(va, 4 * PAGE));
}

/* hsa_amd_vmem_unmap(): size "of memory mapping": HSA_STATUS_ERROR_INVALID_ARGUMENT: "size is invalid"; whole
 * mappings without a gap may go together, and a gap or a cut one is refused as HSA_STATUS_ERROR_INVALID_ALLOCATION.
 * */
static void unmap_size(void **state)
{
    handle_t handle = vmem_create(4 * PAGE);
    char *va = vmem_reserve(16 * PAGE);

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_success(hsa_amd_vmem_map(va + i * 4 * PAGE, 4 * PAGE, 0, handle, 0));
    assert_status(hsa_amd_vmem_unmap(va, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_unmap(va, PAGE + 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_unmap(va, 2 * PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(va, 6 * PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_unmap(va, 16 * PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_unmap(va + 4 * PAGE, 4 * PAGE));
    assert_status(hsa_amd_vmem_unmap(va, 12 * PAGE), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_map(va + 4 * PAGE, 4 * PAGE, 0, handle, 0));
    assert_success(hsa_amd_vmem_unmap(va, 12 * PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 16 * PAGE));
}

/* ---- hsa_amd_vmem_set_access(), hsa_amd_vmem_get_access() ------------------------------------------------ */

/* hsa_amd_vmem_set_access(va, size, desc, desc_cnt): va "Make previously mapped virtual address accessible":
 * HSA_STATUS_SUCCESS; HSA_STATUS_ERROR_INVALID_ALLOCATION where nothing is mapped,
 * HSA_STATUS_ERROR_INVALID_ARGUMENT where nothing is reserved. */
static void set_access_va(void **state)
{
    char *va = reserve_and_map(1);

    (void)state;
    assert_status(allow(NULL, PAGE, agents[0], RW), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(allow((char *)((uintptr_t)&va & ~(PAGE - 1)), PAGE, agents[0], RW),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(allow(va + PAGE, PAGE, agents[0], RW), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(allow(va, PAGE, agents[0], RW), HSA_STATUS_SUCCESS);
    assert_true(vmem_is_writable(va));
    unmap_and_free(va, 1);
}

/* hsa_amd_vmem_set_access(): size "must be equal to size of previously mapped virtual memory handle", or several of
 * them: HSA_STATUS_ERROR_INVALID_ARGUMENT for none, HSA_STATUS_ERROR_INVALID_ALLOCATION for a gap or a part. */
static void set_access_size(void **state)
{
    handle_t handle = vmem_create(2 * PAGE);
    char *va = vmem_reserve(8 * PAGE);

    (void)state;
    assert_success(hsa_amd_vmem_map(va, 2 * PAGE, 0, handle, 0));
    assert_success(hsa_amd_vmem_map(va + 2 * PAGE, 2 * PAGE, 0, handle, 0));
    assert_status(allow(va, 0, agents[0], RW), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(allow(va, PAGE + 1, agents[0], RW), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(allow(va, 9 * PAGE, agents[0], RW), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(allow(va, PAGE, agents[0], RW), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(allow(va, 3 * PAGE, agents[0], RW), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(allow(va, 6 * PAGE, agents[0], RW), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_false(vmem_is_readable(va));
    assert_success(allow(va, 4 * PAGE, agents[0], RW));
    assert_true(vmem_is_writable(va + 3 * PAGE));
    assert_success(hsa_amd_vmem_unmap(va, 4 * PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, 8 * PAGE));
}

/* hsa_amd_vmem_set_access(): desc "list of access permissions for each agent", desc_cnt "number of elements in
 * desc": each agent gets its own, the process what any of them has; HSA_STATUS_ERROR_INVALID_ARGUMENT if there is
 * no list or a permission is none. The list may lie in what it is about. */
static void set_access_desc(void **state)
{
    char *va = reserve_and_map(1);
    hsa_amd_memory_access_desc_t desc[3] = {{RO, agents[0]}, {WO, agents[1]}, {RW, agents[0]}}, *inside;
    hsa_access_permission_t perms = NONE;

    (void)state;
    assert_status(hsa_amd_vmem_set_access(va, PAGE, NULL, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_set_access(va, PAGE, desc, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(allow(va, PAGE, agents[0], (hsa_access_permission_t)4), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_amd_vmem_set_access(va, PAGE, desc, 1));
    assert_true(vmem_is_readable(va));
    assert_false(vmem_is_writable(va));
    assert_success(hsa_amd_vmem_set_access(va, PAGE, desc, 2));
    assert_true(vmem_is_writable(va));
    assert_success(hsa_amd_vmem_get_access(va, &perms, agents[0]));
    assert_int_equal(perms, RO);
    assert_success(hsa_amd_vmem_get_access(va, &perms, agents[1]));
    assert_int_equal(perms, WO);
    /* the last one counts */
    assert_success(hsa_amd_vmem_set_access(va, PAGE, desc, 3));
    assert_success(hsa_amd_vmem_get_access(va, &perms, agents[0]));
    assert_int_equal(perms, RW);
    inside = (hsa_amd_memory_access_desc_t *)(void *)va;
    *inside = (hsa_amd_memory_access_desc_t){NONE, agents[0]};
    assert_success(hsa_amd_vmem_set_access(va, PAGE, inside, 1));
    assert_false(vmem_is_readable(va));
    unmap_and_free(va, 1);
}

/* hsa_amd_vmem_set_access(): "Calling hsa_amd_vmem_set_access multiple times on the same va will overwrite previous
 * permissions for all agents": also of those that are not in the list any more. */
static void set_access_overwrites(void **state)
{
    char *va = reserve_and_map(1);
    hsa_amd_memory_access_desc_t both[2] = {{RW, agents[0]}, {RW, agents[1]}};
    hsa_access_permission_t perms = RW;

    (void)state;
    assert_success(hsa_amd_vmem_set_access(va, PAGE, both, 2));
    assert_success(allow(va, PAGE, agents[1], RO));
    assert_true(vmem_is_readable(va));
    assert_false(vmem_is_writable(va));
    assert_success(hsa_amd_vmem_get_access(va, &perms, agents[1]));
    assert_int_equal(perms, RO);
    assert_status(hsa_amd_vmem_get_access(va, &perms, agents[0]), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(allow(va, PAGE, agents[1], NONE));
    assert_false(vmem_is_readable(va));
    unmap_and_free(va, 1);
}

/* hsa_amd_vmem_set_access(): HSA_STATUS_ERROR_INVALID_AGENT: "Invalid agent in desc", wherever in it; nothing
 * changes. */
static void set_access_invalid_agent(void **state)
{
    char *va = reserve_and_map(1);
    hsa_amd_memory_access_desc_t desc[2] = {{RW, agents[0]}, {RW, agents[1]}};

    (void)state;
    for (unsigned i = 0; i < sizeof(no_agents) / sizeof(no_agents[0]); i++) {
        desc[1].agent_handle.handle = no_agents[i];
        assert_status(hsa_amd_vmem_set_access(va, PAGE, desc, 2), HSA_STATUS_ERROR_INVALID_AGENT);
    }
    assert_false(vmem_is_readable(va));
    unmap_and_free(va, 1);
}

/* hsa_amd_vmem_get_access(va, perms, agent_handle): perms "current permissions", HSA_STATUS_SUCCESS for any address
 * of the mapping; va "previously mapped", else HSA_STATUS_ERROR_INVALID_ALLOCATION: "va is not mapped". */
static void get_access_va(void **state)
{
    char *va = reserve_and_map(1);
    hsa_access_permission_t perms = RW;

    (void)state;
    assert_success(allow(va, PAGE, agents[1], RO));
    assert_status(hsa_amd_vmem_get_access(va, &perms, agents[1]), HSA_STATUS_SUCCESS);
    assert_int_equal(perms, RO);
    perms = RW;
    assert_success(hsa_amd_vmem_get_access(va + PAGE - 1, &perms, agents[1]));
    assert_int_equal(perms, RO);
    assert_status(hsa_amd_vmem_get_access(va + PAGE, &perms, agents[1]), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_get_access(&va, &perms, agents[1]), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_get_access(NULL, &perms, agents[1]), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_get_access(va, NULL, agents[1]), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    unmap_and_free(va, 1);
}

/* hsa_amd_vmem_get_access(): HSA_STATUS_ERROR_INVALID_ALLOCATION: "permissions never set for this agent", also
 * after the memory was unmapped and mapped again. */
static void get_access_never_set(void **state)
{
    handle_t handle = vmem_create(PAGE);
    char *va = vmem_reserve(PAGE);
    hsa_access_permission_t perms = RW;

    (void)state;
    assert_success(hsa_amd_vmem_map(va, PAGE, 0, handle, 0));
    assert_status(hsa_amd_vmem_get_access(va, &perms, agents[0]), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(allow(va, PAGE, agents[0], RW));
    assert_status(hsa_amd_vmem_get_access(va, &perms, agents[1]), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_unmap(va, PAGE));
    assert_success(hsa_amd_vmem_map(va, PAGE, 0, handle, 0));
    assert_status(hsa_amd_vmem_get_access(va, &perms, agents[0]), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_amd_vmem_unmap(va, PAGE));
    assert_success(hsa_amd_vmem_handle_release(handle));
    assert_success(hsa_amd_vmem_address_free(va, PAGE));
}

/* hsa_amd_vmem_get_access(): agent_handle: HSA_STATUS_ERROR_INVALID_AGENT if it is none. */
static void get_access_agent_handle(void **state)
{
    char *va = reserve_and_map(1);
    hsa_access_permission_t perms;

    (void)state;
    assert_success(allow(va, PAGE, agents[0], RW));
    for (unsigned i = 0; i < sizeof(no_agents) / sizeof(no_agents[0]); i++)
        assert_status(hsa_amd_vmem_get_access(va, &perms, (hsa_agent_t){no_agents[i]}),
                      HSA_STATUS_ERROR_INVALID_AGENT);
    unmap_and_free(va, 1);
}

/* HSA_STATUS_ERROR "Unexpected internal error" of hsa_amd_vmem_address_free(), _map(), _unmap(), _set_access() and
 * _get_access(): nothing that a program passes gives it, whatever it is. (hsa_amd_vmem_map, hsa_amd_vmem_unmap,
 * hsa_amd_vmem_set_access, hsa_amd_vmem_get_access) */
static void nothing_is_unexpected(void **state)
{
    hsa_amd_vmem_alloc_handle_t handles[] = {vmem_create(4 * PAGE), {0}, {UINT64_MAX}};
    char *va = vmem_reserve(8 * PAGE);
    void *addresses[] = {NULL, va, va + PAGE, va + 1, va + 8 * PAGE, &va, (void *)UINTPTR_MAX};
    const size_t sizes[] = {0, 1, PAGE, 4 * PAGE, 8 * PAGE, SIZE_MAX, SIZE_MAX & ~(PAGE - 1)};
    hsa_agent_t some[] = {agents[0], {0}};

    (void)state;
    assert_success(hsa_amd_vmem_map(va, PAGE, 0, handles[0], 0));
    for (unsigned i = 0; i < 7 * 7 * 7 * 3 * 2; i++) {
        void *address = addresses[i % 7];
        size_t size = sizes[i / 7 % 7];
        hsa_access_permission_t perms;

        assert_int_not_equal(hsa_amd_vmem_map(address, size, sizes[i / 49 % 7], handles[i / 343 % 3], 0),
                             HSA_STATUS_ERROR);
        assert_int_not_equal(allow(address, size, some[i / 1029], RW), HSA_STATUS_ERROR);
        assert_int_not_equal(hsa_amd_vmem_get_access(address, &perms, some[i / 1029]), HSA_STATUS_ERROR);
        assert_int_not_equal(hsa_amd_vmem_unmap(address, size), HSA_STATUS_ERROR);
        if (size != 8 * PAGE)
            assert_int_not_equal(hsa_amd_vmem_address_free(address, size), HSA_STATUS_ERROR);
    }
    for (unsigned i = 0; i < 8; i++)
        for (size_t size = PAGE; size <= 8 * PAGE; size += PAGE)
            (void)hsa_amd_vmem_unmap(va + i * PAGE, size);
    assert_success(hsa_amd_vmem_handle_release(handles[0]));
    assert_success(hsa_amd_vmem_address_free(va, 8 * PAGE));
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reserve_va),
        TEST(reserve_size),
        TEST(reserve_address),
        TEST(reserve_flags),
        TEST(reserve_out_of_resources),
        TEST(reserve_align),
        TEST(address_free_va),
        TEST(address_free_size),
        TEST(address_free_in_use),
        TEST(map_va),
        TEST(map_size),
        TEST(map_in_offset),
        TEST(map_memory_handle),
        TEST(map_flags),
        TEST(map_gives_no_access),
        TEST(map_out_of_resources),
        TEST(unmap_va),
        TEST(unmap_size),
        TEST(set_access_va),
        TEST(set_access_size),
        TEST(set_access_desc),
        TEST(set_access_overwrites),
        TEST(set_access_invalid_agent),
        TEST(get_access_va),
        TEST(get_access_never_set),
        TEST(get_access_agent_handle),
        TEST(nothing_is_unexpected),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
