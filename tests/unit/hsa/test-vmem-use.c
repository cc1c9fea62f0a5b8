/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory as programs use it: ring buffers, arrays that grow, children, the end of the runtime; and what of it
 * the broker is asked for.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/hsa/vmem.h"

#define SIZE               ((size_t)2 << 20)
#define GIB                ((size_t)1 << 30)
#define INVALID_ARGUMENT   HSA_STATUS_ERROR_INVALID_ARGUMENT
#define INVALID_ALLOCATION HSA_STATUS_ERROR_INVALID_ALLOCATION

/* One handle three times in a row: what runs over an end goes on at the other. */
static void ring_buffer_of_one_handle_mapped_three_times(void **state)
{
    const char text[] = "across the seam";
    char *va = vmem_reserve(3 * SIZE);
    handle_t handle = vmem_create(SIZE);

    for (unsigned i = 0; i < 3; i++)
        vmem_map(va + i * SIZE, SIZE, handle);
    for (unsigned i = 0; i < 3; i++) {
        const hsa_amd_memory_access_desc_t desc[] = {
            {HSA_ACCESS_PERMISSION_WO, agents[0]},
            {HSA_ACCESS_PERMISSION_RO, agents[1]},
        };

        assert_success(hsa_amd_vmem_set_access(va + i * SIZE, SIZE, desc, 2));
    }
    for (size_t at = SIZE - sizeof(text); at < SIZE + sizeof(text); at++) {
        memcpy(va + SIZE + at, text, sizeof(text));
        assert_memory_equal(va + at, text, sizeof(text));
    }
    memcpy(va + 2 * SIZE - 5, text, sizeof(text));
    assert_memory_equal(va, text + 5, sizeof(text) - 5);
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    for (unsigned i = 0; i < 3; i++)
        vmem_unmap(va + i * SIZE, SIZE);
    vmem_release(handle);
    vmem_free(va, 3 * SIZE);
}

/* Mapped one behind the other in a large range, made accessible from its start on each time, and unmapped at once. */
static void array_that_grows_in_64_gibibytes(void **state)
{
    enum { STEPS = 24 };
    size_t room = 64 * GIB;
    uint32_t *array = (void *)vmem_reserve(room);
    char *va = (char *)array;

    for (unsigned round = 0; round < 2; round++) {
        size_t used = 0;

        for (unsigned i = 0; i < STEPS; i++) {
            size_t more = SIZE * (i % 3 + 1) / 2;
            handle_t handle = vmem_create_in(pools[i % AGENTS][FINE], more);

            vmem_map(va + used, more, handle);
            vmem_release(handle);
            used += more;
            vmem_allow(va, used);
            for (size_t k = (used - more) / 4; k < used / 4; k += 512)
                array[k] = (uint32_t)k;
        }
        for (size_t k = 0; k < used / 4; k += 512)
            assert_int_equal(array[k], k);
        assert_true(WAIT_UNTIL(observer_buffers() == STEPS));
        vmem_unmap(va, used);
        assert_true(WAIT_UNTIL(observer_buffers() == 0));
        assert_true(vmem_is_taken(va, used + SIZE));
    }
    vmem_free(va, room);
}

/* Every page by itself, in all permutations of access, and then as one. */
static void permissions_of_a_thousand_pages(void **state)
{
    enum { N = 1000 };
    size_t page = page_size();
    char *va = vmem_reserve(N * page);
    handle_t handle = vmem_create(N * page);

    for (unsigned i = 0; i < N; i++) {
        assert_success(hsa_amd_vmem_map(va + i * page, page, (N - 1 - i) * page, handle, 0));
        vmem_allow_one(va + i * page, page, i % 2, (hsa_access_permission_t)(i % 4));
    }
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(vmem_access(va + i * page, i % 2), i % 4);
    vmem_allow(va, N * page);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(vmem_access(va + i * page, 0), HSA_ACCESS_PERMISSION_RW);
        va[i * page] = (char)i;
    }
    vmem_unmap(va, N * page);
    vmem_map_rw(va, N * page, handle);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(va[i * page], (char)(N - 1 - i));
    vmem_unmap(va, N * page);
    vmem_release(handle);
    vmem_free(va, N * page);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void use_once(char *va, handle_t handle)
{
    vmem_map(va, SIZE, handle);
    vmem_allow_one(va, SIZE, 0, HSA_ACCESS_PERMISSION_RW);
    assert_int_equal(vmem_access(va, 0), HSA_ACCESS_PERMISSION_RW);
    va[0]++;
    vmem_unmap(va, SIZE);
}

/* Map, unmap, set_access and get_access ask the broker for nothing while a descriptor is at hand... */
static void calls_of_a_handle_used_lately_are_none(void **state)
{
    char *va = vmem_reserve(4 * SIZE);
    handle_t handle = vmem_create(SIZE), again;
    uint64_t before = observer_requests();

    for (unsigned i = 0; i < 100; i++)
        use_once(va + i % 4 * SIZE, handle);
    vmem_map(va, SIZE, handle);
    assert_success(hsa_amd_vmem_retain_alloc_handle(&again, va));
    vmem_release(again);
    vmem_unmap(va, SIZE);
    assert_int_equal(observer_requests(), before);
    vmem_release(handle);
    vmem_free(va, 4 * SIZE);
}

/* ... or it is mapped somewhere; else for one descriptor, once. */
static void calls_of_a_handle_not_used_lately_are_one(void **state)
{
    enum { OTHERS = 80 };
    char *va = vmem_reserve(4 * SIZE);
    handle_t handle = vmem_create(SIZE), mapped = vmem_create(SIZE), others[OTHERS];
    uint64_t before;

    vmem_map(va, SIZE, mapped);
    for (unsigned i = 0; i < OTHERS; i++) {
        others[i] = vmem_create(page_size());
        vmem_map(va + SIZE, page_size(), others[i]);
        vmem_unmap(va + SIZE, page_size());
    }
    before = observer_requests();
    for (unsigned i = 0; i < 10; i++)
        use_once(va + SIZE, mapped);
    assert_int_equal(observer_requests(), before);
    for (unsigned i = 0; i < 10; i++)
        use_once(va + SIZE, handle);
    assert_int_equal(observer_requests(), before + 1);
    vmem_unmap(va, SIZE);
    for (unsigned i = 0; i < OTHERS; i++)
        vmem_release(others[i]);
    vmem_release(mapped);
    vmem_release(handle);
    vmem_free(va, 4 * SIZE);
}

/* ---- nothing left ------------------------------------------------------------------------------------------------ */

/* Takes what the process can have, to be given back; keeps no more than a few bytes free. */
static void **take_all_memory(void)
{
    const struct rlimit none = {0};
    void **taken = NULL, **more;

    CHECK(!setrlimit(RLIMIT_DATA, &none));
    for (size_t size = 65536; size >= sizeof(*taken); size -= size > 4096 ? 4096 : sizeof(*taken))
        while ((more = malloc(size))) {
            *more = taken;
            taken = more;
        }
    return taken;
}

static void use_without_memory(int channel, void *context)
{
    const hsa_status_t wanted = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    const hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, agents[0]};
    handle_t handle, another;
    void **taken, *va, *second;
    int fd;

    (void)channel;
    (void)context;
    CHECK(!hsa_init());
    CHECK(!hsa_amd_vmem_address_reserve(&va, 2 * SIZE, 0, 0));
    CHECK(!hsa_amd_vmem_handle_create(pools[0][FINE], SIZE, MEMORY_TYPE_NONE, 0, &handle));
    CHECK(!hsa_amd_vmem_map(va, SIZE, 0, handle, 0));
    CHECK(!hsa_amd_vmem_handle_create(pools[0][FINE], SIZE, MEMORY_TYPE_NONE, 0, &another));
    CHECK(!hsa_amd_vmem_export_shareable_handle(&fd, another, 0));
    CHECK(!hsa_amd_vmem_handle_release(another));
    taken = take_all_memory();
    CHECK(hsa_amd_vmem_address_reserve(&second, SIZE, 0, 0) == wanted);
    CHECK(hsa_amd_vmem_address_reserve_align(&second, SIZE, 0, SIZE, 0) == wanted);
    CHECK(hsa_amd_vmem_handle_create(pools[0][FINE], SIZE, MEMORY_TYPE_NONE, 0, &another) == wanted);
    CHECK(hsa_amd_vmem_map((char *)va + SIZE, SIZE, 0, handle, 0) == wanted);
    CHECK(!hsa_amd_vmem_set_access(va, SIZE, &rw, 1)); /* of whole mappings it needs no record */
    CHECK(hsa_amd_vmem_import_shareable_handle(fd, &another) == wanted);
    while (taken) {
        void **next = *taken;

        free(taken);
        taken = next;
    }
    CHECK(!strcmp(vmem_pages(va), "rw-") && !strcmp(vmem_pages((char *)va + SIZE), "---"));
    CHECK(!hsa_amd_vmem_unmap(va, SIZE));
    CHECK(!hsa_amd_vmem_import_shareable_handle(fd, &another));
    CHECK(!hsa_shut_down());
}

/* HSA_STATUS_ERROR_OUT_OF_RESOURCES, "Insufficient resources": of a process that has no memory for records. */
static void functions_without_memory_are_out_of_resources(void **state)
{
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN)
        test_skip("a sanitizer ends the process where there is no memory");
    child_run(use_without_memory, NULL);
}

/* ---- the ends ---------------------------------------------------------------------------------------------------- */

struct inherited {
    char *va;
    handle_t handle;
};

/* A child starts anew, and has what was mapped. */
static void be_the_child(int channel, void *context)
{
    const struct inherited *from = context;
    hsa_access_permission_t permissions;
    handle_t handle;
    void *va;

    (void)channel;
    CHECK(hsa_amd_vmem_unmap(from->va, SIZE) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(!strcmp(from->va, "from the parent"));
    write_text(from->va + 64, "from the child");
    CHECK(!hsa_init());
    CHECK(!strcmp(from->va, "from the parent"));
    CHECK(!strcmp(vmem_pages(from->va + SIZE), "---"));
    /* it knows neither addresses nor handles of the parent's */
    CHECK(hsa_amd_vmem_get_access(from->va, &permissions, agents[0]) == INVALID_ALLOCATION);
    CHECK(hsa_amd_vmem_unmap(from->va, SIZE) == INVALID_ALLOCATION);
    CHECK(hsa_amd_vmem_address_free(from->va, 2 * SIZE) == INVALID_ALLOCATION);
    CHECK(hsa_amd_vmem_handle_release(from->handle) == INVALID_ALLOCATION);
    CHECK(hsa_amd_vmem_map(from->va + SIZE, SIZE, 0, from->handle, 0) == INVALID_ARGUMENT);
    /* and can do everything itself */
    CHECK(!hsa_amd_vmem_address_reserve(&va, SIZE, (uintptr_t)from->va, 0));
    CHECK(va != from->va);
    CHECK(!hsa_amd_vmem_handle_create(pools[1][COARSE], SIZE, MEMORY_TYPE_PINNED, 0, &handle));
    CHECK(!hsa_amd_vmem_map(va, SIZE, 0, handle, 0));
    vmem_allow(va, SIZE);
    memset(va, 1, SIZE);
    CHECK(!hsa_shut_down());
    CHECK(!strcmp(vmem_pages(va), ""));
    CHECK(!strcmp(from->va, "from the parent"));
}

static void fork_leaves_the_child_the_mappings_only(void **state)
{
    struct inherited from = {.va = vmem_reserve(2 * SIZE), .handle = vmem_create(SIZE)};

    vmem_map_rw(from.va, SIZE, from.handle);
    write_text(from.va, "from the parent");
    child_run(be_the_child, &from);
    assert_string_equal(from.va + 64, "from the child");
    assert_int_equal(vmem_access(from.va, 0), HSA_ACCESS_PERMISSION_RW);
    vmem_map(from.va + SIZE, SIZE, from.handle);
    vmem_unmap(from.va, 2 * SIZE);
    vmem_release(from.handle);
    vmem_free(from.va, 2 * SIZE);
}

/* The last hsa_shut_down() takes everything back, and nothing of it is known when HSA is initialised again. */
static void shut_down_takes_everything_back(void **state)
{
    char *va = vmem_reserve(2 * SIZE), *empty = vmem_reserve(SIZE);
    handle_t handle = vmem_create(SIZE), only_mapped = vmem_create(SIZE), unused = vmem_create(SIZE);

    vmem_map_rw(va, SIZE, handle);
    vmem_map_rw(va + SIZE, SIZE, only_mapped);
    vmem_release(only_mapped);
    assert_true(WAIT_UNTIL(observer_buffers() == 3));
    assert_success(hsa_init());
    assert_success(hsa_shut_down());
    va[0] = 1;
    assert_success(hsa_shut_down());
    assert_string_equal(vmem_pages(va), "");
    assert_string_equal(vmem_pages(empty), "");
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_success(hsa_init());
    assert_status(hsa_amd_vmem_unmap(va, SIZE), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_address_free(empty, SIZE), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_handle_release(handle), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_handle_release(unused), INVALID_ALLOCATION);
}

#define test(function) cmocka_unit_test_teardown(function, hsa_nothing_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(ring_buffer_of_one_handle_mapped_three_times),
        test(array_that_grows_in_64_gibibytes),
        test(permissions_of_a_thousand_pages),
        test(calls_of_a_handle_used_lately_are_none),
        test(calls_of_a_handle_not_used_lately_are_one),
        test(functions_without_memory_are_out_of_resources),
        test(fork_leaves_the_child_the_mappings_only),
        test(shut_down_takes_everything_back),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
