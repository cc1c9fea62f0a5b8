/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HSA's document on memory, its second part: allocating, freeing, copying, owning and registering. Each test quotes the
 * function and what of it is checked, as COVERAGE lists them.
 */
#include "tests/unit/hsa/hsa.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/support/child.h"
#include "tests/unit/hsa/vmem.h"

#define CAPACITY (64 * MIB) /* of a node, as configured below */

static size_t max_of(hsa_region_t region)
{
    size_t max = 0;

    assert_success(hsa_region_get_info(region, HSA_REGION_INFO_ALLOC_MAX_SIZE, &max));
    return max;
}

static char *allocate(hsa_region_t region, size_t size)
{
    void *ptr = NULL;

    assert_success(hsa_memory_allocate(region, size, &ptr));
    assert_non_null(ptr);
    return ptr;
}

static hsa_amd_pointer_info_t pointer(const void *ptr)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};

    assert_success(hsa_amd_pointer_info(ptr, &info, NULL, NULL, NULL));
    return info;
}

/* The node that pays for it. */
static uint32_t node_of(const void *ptr)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buffer;

    assert_success(memclient_hsa_buffer(ptr, &buffer));
    assert_int_equal(memclient_buffer_info(buffer, &info), 0);
    memclient_buffer_unref(buffer);
    assert_int_equal(info.n_nodes, 1);
    return info.nodes[0];
}

/* ---- hsa_memory_allocate(), hsa_memory_free() ------------------------------------------------------------ */

/* hsa_memory_allocate(region, size, ptr): region "where to allocate memory from": HSA_STATUS_SUCCESS, and it is
 * there; HSA_STATUS_ERROR_INVALID_REGION for what is no region. */
static void allocate_region(void **state)
{
    const uint64_t none[] = {0, 1, agents[0].handle, UINT64_MAX, (uintptr_t)&none};
    void *ptr;

    (void)state;
    for (unsigned a = 0; a < AGENTS; a++)
        for (unsigned k = 0; k < POOLS; k++) {
            assert_status(hsa_memory_allocate(regions[a][k], 10000, &ptr), HSA_STATUS_SUCCESS);
            memset(ptr, 0x5A, 10000);
            assert_int_equal(node_of(ptr), a);
            assert_success(hsa_memory_free(ptr));
        }
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_status(hsa_memory_allocate((hsa_region_t){none[i]}, 4096, &ptr), HSA_STATUS_ERROR_INVALID_REGION);
}

static hsa_status_t allocate_if_not_allowed(hsa_region_t region, void *data)
{
    bool allowed = true;
    void *ptr = data;

    assert_success(hsa_region_get_info(region, HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
    if (allowed)
        return HSA_STATUS_SUCCESS;
    assert_status(hsa_memory_allocate(region, 4096, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    return HSA_STATUS_INFO_BREAK;
}

/* hsa_memory_allocate(): "The region must have the HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED flag set", else
 * HSA_STATUS_ERROR_INVALID_ALLOCATION: "The host is not allowed to allocate memory in region". */
static void allocate_not_allowed(void **state)
{
    (void)state;
    assert_status(hsa_agent_iterate_regions(agents[0], allocate_if_not_allowed, NULL), HSA_STATUS_INFO_BREAK);
}

/* hsa_memory_allocate(): size "Must not be zero": HSA_STATUS_ERROR_INVALID_ARGUMENT; "rounded up to the nearest
 * multiple of HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE". */
static void allocate_size(void **state)
{
    size_t granule = 0;
    char *ptr;

    (void)state;
    assert_status(hsa_memory_allocate(regions[0][FINE], 0, (void **)&ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_allocate((hsa_region_t){0}, 0, (void **)&ptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE, &granule));
    ptr = allocate(regions[0][FINE], 1);
    for (size_t i = 0; i < granule; i++)
        assert_int_equal(ptr[i], 0);
    memset(ptr, 1, granule);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_allocate(): HSA_STATUS_ERROR_INVALID_ALLOCATION: "size is greater than the value of
 * HSA_REGION_INFO_ALLOC_MAX_SIZE in region", by little or by all that there is. */
static void allocate_too_much(void **state)
{
    size_t max = max_of(regions[1][COARSE]);
    void *ptr;

    (void)state;
    assert_status(hsa_memory_allocate(regions[1][COARSE], max + 1, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_allocate(regions[1][COARSE], CAPACITY + 1, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_allocate(regions[1][COARSE], SIZE_MAX / 2, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_allocate(regions[1][COARSE], SIZE_MAX, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

/* hsa_memory_allocate(): HSA_STATUS_ERROR_OUT_OF_RESOURCES: "failed to allocate the required resources": what was
 * within HSA_REGION_INFO_ALLOC_MAX_SIZE is not there any more. */
static void allocate_out_of_resources(void **state)
{
    size_t max = max_of(regions[0][FINE]);
    char *most = allocate(regions[0][FINE], max - MIB);
    void *ptr;

    (void)state;
    assert_status(hsa_memory_allocate(regions[0][FINE], 4 * MIB, &ptr), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_status(hsa_memory_allocate(regions[0][COARSE], 4 * MIB, &ptr), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    /* the other node has its own */
    assert_success(hsa_memory_free(allocate(regions[1][FINE], 4 * MIB)));
    assert_success(hsa_memory_free(most));
    assert_success(hsa_memory_free(allocate(regions[0][FINE], max)));
}

/* hsa_memory_allocate(): ptr "where to store the base address", NULL is HSA_STATUS_ERROR_INVALID_ARGUMENT; "aligned
 * to the value of HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT"; "If the allocation fails, the returned value is
 * undefined": here it stays. */
static void allocate_ptr(void **state)
{
    size_t alignment = 0;
    void *ptr = &alignment;

    (void)state;
    assert_status(hsa_memory_allocate(regions[0][FINE], 4096, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_allocate((hsa_region_t){0}, 4096, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_allocate(regions[0][FINE], CAPACITY * 2, &ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_ptr_equal(ptr, &alignment);
    assert_success(hsa_region_get_info(regions[0][FINE], HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT, &alignment));
    for (size_t size = 1; size < 4 * MIB; size = size * 3 + 1) {
        ptr = allocate(regions[0][FINE], size);
        assert_int_equal((uintptr_t)ptr % alignment, 0);
        assert_success(hsa_memory_free(ptr));
    }
}

/* hsa_memory_free(ptr): ptr "Pointer to a memory block" of hsa_memory_allocate(): HSA_STATUS_SUCCESS, and the
 * memory is given back; NULL too is HSA_STATUS_SUCCESS. */
static void free_ptr(void **state)
{
    void *ptr = allocate(regions[0][COARSE], MIB);

    (void)state;
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    assert_status(hsa_memory_free(ptr), HSA_STATUS_SUCCESS);
    assert_int_equal(pointer(ptr).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_string_equal(vmem_pages(ptr), "");
    assert_status(hsa_memory_free(NULL), HSA_STATUS_SUCCESS);
}

/* hsa_memory_free(): "If ptr does not match a value previously returned by hsa_memory_allocate, the behavior is
 * undefined": here it is HSA_STATUS_ERROR_INVALID_ALLOCATION, and nothing happens. */
static void free_undefined(void **state)
{
    char *ptr = allocate(regions[0][FINE], 3 * 4096), *ordinary = malloc(4096);
    int local;

    (void)state;
    assert_status(hsa_memory_free(ptr + 4096), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_free(ptr + 1), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_free(&local), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_status(hsa_memory_free(ordinary), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    memset(ptr, 1, 3 * 4096);
    assert_success(hsa_memory_free(ptr));
    assert_status(hsa_memory_free(ptr), HSA_STATUS_ERROR_INVALID_ALLOCATION);
    free(ordinary);
}

/* ---- hsa_memory_copy() ----------------------------------------------------------------------------------- */

static void fill(unsigned char *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((i * 2654435761U + seed) >> 7);
}

/* hsa_memory_copy(dst, src, size): "Copy a block of memory from the location pointed to by src to the memory block
 * pointed to by dst": just size "Number of bytes to copy", at any address, of HSA's or ordinary memory; src stays. */
static void copy_bytes(void **state)
{
    const size_t sizes[] = {1, 3, 63, 64, 65, 4095, 4096, 4097, MIB - 1, 20 * MIB + 5};
    unsigned char *hsa = (unsigned char *)allocate(regions[0][FINE], 21 * MIB);
    unsigned char *ordinary = malloc(21 * MIB), *wanted = malloc(21 * MIB);

    (void)state;
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t offset = i * 5;

        fill(wanted, sizes[i], i);
        memset(hsa, 0, sizes[i] + 128);
        memcpy(ordinary + 7, wanted, sizes[i]);
        assert_status(hsa_memory_copy(hsa + 1 + offset, ordinary + 7, sizes[i]), HSA_STATUS_SUCCESS);
        assert_memory_equal(hsa + 1 + offset, wanted, sizes[i]);
        assert_memory_equal(ordinary + 7, wanted, sizes[i]);
        assert_int_equal(hsa[offset], 0);
        assert_int_equal(hsa[1 + offset + sizes[i]], 0);
        memset(ordinary, 0, sizes[i] + 128);
        assert_status(hsa_memory_copy(ordinary, hsa + 1 + offset, sizes[i]), HSA_STATUS_SUCCESS);
        assert_memory_equal(ordinary, wanted, sizes[i]);
        assert_int_equal(ordinary[sizes[i]], 0);
    }
    free(wanted);
    free(ordinary);
    assert_success(hsa_memory_free(hsa));
}

/* hsa_memory_copy(): HSA_STATUS_ERROR_INVALID_ARGUMENT: "The source or destination pointers are NULL"; size "If
 * size is 0, no copy is performed and the function returns success". */
static void copy_arguments(void **state)
{
    char from[2] = "ab", to[2] = "cd";

    (void)state;
    assert_status(hsa_memory_copy(NULL, from, 2), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(to, NULL, 2), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(NULL, from, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(to, NULL, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_copy(to, from, 0), HSA_STATUS_SUCCESS);
    assert_memory_equal(to, "cd", 2);
}

/* hsa_memory_copy(): dst "in coarse-grained memory": "only visible to the agent currently assigned"; src "in
 * coarse-grained memory then it must be assigned to an agent, from which the data will be retrieved": the owner's
 * right to read and to write is what counts. */
static void copy_coarse_grained(void **state)
{
    char *a = allocate(regions[0][COARSE], 8192), *b = allocate(regions[1][COARSE], 8192);

    (void)state;
    memset(a, 1, 8192);
    assert_success(hsa_memory_assign_agent(a, agents[1], HSA_ACCESS_PERMISSION_RO));
    assert_success(hsa_memory_assign_agent(b, agents[0], HSA_ACCESS_PERMISSION_RW));
    assert_success(hsa_memory_copy(b, a, 8192));
    assert_int_equal(b[8191], 1);
    /* an owner that may not write gets nothing written */
    memset(b, 2, 8192);
    assert_int_not_equal(hsa_memory_copy(a, b, 8192), HSA_STATUS_SUCCESS);
    assert_int_equal(a[0], 1);
    assert_success(hsa_memory_assign_agent(a, agents[0], HSA_ACCESS_PERMISSION_RW));
    assert_success(hsa_memory_copy(a, b, 8192));
    assert_int_equal(a[8191], 2);
    assert_success(hsa_memory_free(a));
    assert_success(hsa_memory_free(b));
}

/* ---- hsa_memory_assign_agent() --------------------------------------------------------------------------- */

/* hsa_memory_assign_agent(ptr, agent, access): "Change the ownership of a global, coarse-grained buffer":
 * HSA_STATUS_SUCCESS; agent "becomes the owner of the buffer", HSA_STATUS_ERROR_INVALID_AGENT if it is none. "The
 * virtual location (address) of the passed buffer is never modified", nor are the contents, wherever they are
 * afterwards. */
static void assign_agent_agent(void **state)
{
    char *ptr = allocate(regions[0][COARSE], 3 * MIB);

    (void)state;
    memset(ptr, 0x77, 3 * MIB);
    assert_int_equal(node_of(ptr), 0);
    assert_status(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RW), HSA_STATUS_SUCCESS);
    assert_int_equal(node_of(ptr), 1);
    for (size_t i = 0; i < 3 * MIB; i += 1000)
        assert_int_equal(ptr[i], 0x77);
    assert_ptr_equal(pointer(ptr).hostBaseAddress, ptr);
    assert_status(hsa_memory_assign_agent(ptr, (hsa_agent_t){0}, HSA_ACCESS_PERMISSION_RW),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_memory_assign_agent(ptr, (hsa_agent_t){pools[0][FINE].handle}, HSA_ACCESS_PERMISSION_RW),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent(): access "permissions requested for the new owner", of the whole buffer: "The size of
 * the buffer affected by the ownership change is identical to the size of that previous allocation". "Contents are
 * visible only after ownership has been transferred"; "the previous owner cannot longer access".
 * HSA_STATUS_ERROR_INVALID_ARGUMENT if "access is not a valid access value". */
static void assign_agent_access(void **state)
{
    const size_t size = 5 * 4096;
    char *ptr = allocate(regions[0][COARSE], size);

    (void)state;
    assert_true(vmem_is_writable(ptr));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RO));
    assert_true(vmem_is_readable(ptr));
    assert_false(vmem_is_writable(ptr));
    assert_false(vmem_is_writable(ptr + size - 1));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_WO));
    assert_true(vmem_is_writable(ptr));
    assert_true(vmem_is_writable(ptr + size - 1));
    assert_status(hsa_memory_assign_agent(ptr, agents[0], HSA_ACCESS_PERMISSION_NONE),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_assign_agent(ptr, agents[0], (hsa_access_permission_t)4),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_assign_agent(ptr, (hsa_agent_t){0}, (hsa_access_permission_t)4),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent(): ptr "Base address of a global buffer": HSA_STATUS_ERROR_INVALID_ARGUMENT if "ptr is
 * NULL"; "must match an address previously returned by hsa_memory_allocate": one inside of a buffer is refused, and
 * what is not HSA's memory is fine-grained, both of it HSA's undefined behaviour. */
static void assign_agent_ptr(void **state)
{
    char *ptr = allocate(regions[0][COARSE], 8192);
    int local;

    (void)state;
    assert_status(hsa_memory_assign_agent(NULL, agents[0], HSA_ACCESS_PERMISSION_RW),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_assign_agent(ptr + 4096, agents[0], HSA_ACCESS_PERMISSION_RO),
                  HSA_STATUS_ERROR_INVALID_ALLOCATION);
    assert_success(hsa_memory_assign_agent(&local, agents[0], HSA_ACCESS_PERMISSION_RO));
    assert_true(vmem_is_writable(ptr));
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent(): "If ptr points to a fine-grained global buffer, no operation is performed and the
 * function returns success". */
static void assign_agent_fine_grained(void **state)
{
    char *ptr = allocate(regions[0][FINE], 4096);

    (void)state;
    assert_status(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RO), HSA_STATUS_SUCCESS);
    assert_true(vmem_is_writable(ptr));
    assert_int_equal(node_of(ptr), 0);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent(): "It is allowed to change ownership to an agent that is already the owner of the buffer,
 * with the same or different access permissions". */
static void assign_agent_again(void **state)
{
    char *ptr = allocate(regions[1][COARSE], 4096);

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_success(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RO));
    assert_false(vmem_is_writable(ptr));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RW));
    assert_true(vmem_is_writable(ptr));
    assert_int_equal(node_of(ptr), 1);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_assign_agent(): HSA_STATUS_ERROR_OUT_OF_RESOURCES: there is no room at the new owner, and nothing
 * changes. */
static void assign_agent_out_of_resources(void **state)
{
    char *ptr = allocate(regions[0][COARSE], 8 * MIB);
    char *most = allocate(regions[1][FINE], max_of(regions[1][FINE]) - 4 * MIB);

    (void)state;
    ptr[5] = 5;
    assert_status(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RO),
                  HSA_STATUS_ERROR_OUT_OF_RESOURCES);
    assert_true(vmem_is_writable(ptr));
    assert_int_equal(ptr[5], 5);
    assert_int_equal(node_of(ptr), 0);
    assert_success(hsa_memory_free(most));
    assert_success(hsa_memory_assign_agent(ptr, agents[1], HSA_ACCESS_PERMISSION_RO));
    assert_int_equal(ptr[5], 5);
    assert_success(hsa_memory_free(ptr));
}

/* ---- hsa_memory_register(), hsa_memory_deregister() ------------------------------------------------------ */

/* hsa_memory_register(ptr, size): ptr of memory "not allocated using the HSA allocator, but an OS allocator instead":
 * HSA_STATUS_SUCCESS, "a performance hint": the memory stays as it is, "equivalent to a no-op", but is known.
 * hsa_memory_deregister(ptr, size): HSA_STATUS_SUCCESS, and it is not. */
static void register_ptr(void **state)
{
    char *ordinary = malloc(10000);

    (void)state;
    memset(ordinary, 3, 10000);
    assert_status(hsa_memory_register(ordinary, 10000), HSA_STATUS_SUCCESS);
    assert_int_equal(pointer(ordinary).type, HSA_EXT_POINTER_TYPE_LOCKED);
    assert_int_equal(pointer(ordinary).sizeInBytes, 10000);
    assert_int_equal(ordinary[9999], 3);
    ordinary[9999] = 4;
    assert_status(hsa_memory_deregister(ordinary, 10000), HSA_STATUS_SUCCESS);
    assert_int_equal(pointer(ordinary).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    assert_int_equal(ordinary[9999], 4);
    free(ordinary);
}

/* hsa_memory_register(): ptr "If a NULL pointer is passed, no operation is performed. If the buffer has been
 * allocated using hsa_memory_allocate, or has already been registered, no operation is performed"; size "of 0 is
 * only allowed if ptr is NULL", else HSA_STATUS_ERROR_INVALID_ARGUMENT. */
static void register_nothing(void **state)
{
    char *ptr = allocate(regions[0][FINE], 8192), *ordinary = malloc(8192);

    (void)state;
    assert_success(hsa_memory_register(NULL, 0));
    assert_success(hsa_memory_register(NULL, 100));
    assert_status(hsa_memory_register(ordinary, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_register(ptr, 8192));
    assert_int_equal(pointer(ptr).type, HSA_EXT_POINTER_TYPE_HSA);
    assert_success(hsa_memory_register(ordinary, 8192));
    assert_success(hsa_memory_register(ordinary, 8192));
    assert_success(hsa_memory_deregister(ordinary, 8192));
    assert_int_equal(pointer(ordinary).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    free(ordinary);
    assert_success(hsa_memory_free(ptr));
}

/* hsa_memory_register(): "Registrations should not overlap": a part of another is HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * and a neighbour is not; ptr and size are told apart to the byte. */
static void register_overlap(void **state)
{
    char *ordinary = malloc(8192);

    (void)state;
    assert_success(hsa_memory_register(ordinary + 1000, 2000));
    assert_status(hsa_memory_register(ordinary + 2000, 2000), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_memory_register(ordinary, 1001), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_success(hsa_memory_register(ordinary, 1000));
    assert_success(hsa_memory_register(ordinary + 3000, 1));
    assert_success(hsa_memory_deregister(ordinary + 1000, 2000));
    assert_success(hsa_memory_deregister(ordinary, 1000));
    assert_success(hsa_memory_deregister(ordinary + 3000, 1));
    free(ordinary);
}

/* hsa_memory_deregister(): ptr "If a NULL pointer is passed, no operation is performed"; ptr and size that do "not
 * match a previous registration (start and end addresses)" are undefined: here nothing happens, and it is SUCCESS.
 * */
static void deregister_undefined(void **state)
{
    char *ordinary = malloc(8192);

    (void)state;
    assert_success(hsa_memory_deregister(NULL, 0));
    assert_success(hsa_memory_deregister(NULL, 100));
    assert_success(hsa_memory_deregister(ordinary, 8192));
    assert_success(hsa_memory_register(ordinary, 8192));
    assert_success(hsa_memory_deregister(ordinary, 4096));
    assert_success(hsa_memory_deregister(ordinary + 1, 8191));
    assert_int_equal(pointer(ordinary).type, HSA_EXT_POINTER_TYPE_LOCKED);
    assert_success(hsa_memory_deregister(ordinary, 8192));
    assert_int_equal(pointer(ordinary).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
    free(ordinary);
}

/* A process in which malloc() has nothing left to give. */
static void register_without_memory(int channel, void *data)
{
    static char memory[4096];

    (void)channel;
    (void)data;
    CHECK(hsa_init() == HSA_STATUS_SUCCESS);
    child_use_up_memory();
    CHECK(hsa_memory_register(memory, sizeof(memory)) == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
}

/* hsa_memory_register(): HSA_STATUS_ERROR_OUT_OF_RESOURCES: "failed to allocate the required resources". */
static void register_out_of_resources(void **state)
{
    (void)state;
    child_run(register_without_memory, NULL);
}

#define TEST(name) cmocka_unit_test_teardown(name, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(allocate_region),
        TEST(allocate_not_allowed),
        TEST(allocate_size),
        TEST(allocate_too_much),
        TEST(allocate_out_of_resources),
        TEST(allocate_ptr),
        TEST(free_ptr),
        TEST(free_undefined),
        TEST(copy_bytes),
        TEST(copy_arguments),
        TEST(copy_coarse_grained),
        TEST(assign_agent_agent),
        TEST(assign_agent_access),
        TEST(assign_agent_ptr),
        TEST(assign_agent_fine_grained),
        TEST(assign_agent_again),
        TEST(assign_agent_out_of_resources),
        TEST(register_ptr),
        TEST(register_nothing),
        TEST(register_overlap),
        TEST(deregister_undefined),
        TEST(register_out_of_resources),
    };

    hsa_config = "[pools]\ncapacity = 64M\n";
    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
