/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may use a mapping: hsa_amd_vmem_set_access() and hsa_amd_vmem_get_access(). Sentences in quotation marks are the
 * document's.
 */
#include <string.h>

#include "tests/unit/hsa/vmem.h"

#define SIZE               ((size_t)2 << 20)
#define NONE               HSA_ACCESS_PERMISSION_NONE
#define RO                 HSA_ACCESS_PERMISSION_RO
#define WO                 HSA_ACCESS_PERMISSION_WO
#define RW                 HSA_ACCESS_PERMISSION_RW
#define INVALID_ARGUMENT   HSA_STATUS_ERROR_INVALID_ARGUMENT
#define INVALID_ALLOCATION HSA_STATUS_ERROR_INVALID_ALLOCATION
#define INVALID_AGENT      HSA_STATUS_ERROR_INVALID_AGENT

/* Three mappings of one handle in a row, and a gap behind them. */
static char *va;
static handle_t handle;

static int setup(void **state)
{
    va = vmem_reserve(4 * SIZE);
    handle = vmem_create(SIZE);
    for (unsigned i = 0; i < 3; i++)
        vmem_map(va + i * SIZE, SIZE, handle);
    return 0;
}

static int teardown(void **state)
{
    assert_success(memclient_hsa_set_profile(MEMCLIENT_HSA_PROFILE_DOCUMENT));
    vmem_unmap(va, 3 * SIZE);
    vmem_release(handle);
    vmem_free(va, 4 * SIZE);
    return hsa_nothing_left(state);
}

static void assert_never_set(void *address, unsigned agent)
{
    hsa_access_permission_t permissions = RW;

    assert_status(hsa_amd_vmem_get_access(address, &permissions, agents[agent]), INVALID_ALLOCATION);
    assert_int_equal(permissions, NONE);
}

/* ---- set_access -------------------------------------------------------------------------------------------------- */

/* "Make previously mapped virtual address accessible to specific agents": pages get the union of what agents may. */
static void set_desc_of_all_agents_makes_the_pages_protection(void **state)
{
    static const char *const pages[] = {"---", "r--", "rw-", "rw-"};

    for (unsigned a = NONE; a <= RW; a++)
        for (unsigned b = NONE; b <= RW; b++) {
            const hsa_amd_memory_access_desc_t desc[] = {
                {(hsa_access_permission_t)a, agents[0]},
                {(hsa_access_permission_t)b, agents[1]},
            };

            assert_success(hsa_amd_vmem_set_access(va, SIZE, desc, 2));
            assert_int_equal(vmem_access(va, 0), a);
            assert_int_equal(vmem_access(va, 1), b);
            assert_string_equal(vmem_pages(va), pages[a | b]);
            assert_string_equal(vmem_pages(va + SIZE), "---");
        }
}

/* Each of several aliases has its own. */
static void set_va_of_one_alias_leaves_the_others(void **state)
{
    vmem_allow_one(va, SIZE, 0, RW);
    vmem_allow_one(va + SIZE, SIZE, 1, RO);
    write_text(va, "seen");
    assert_string_equal(va + SIZE, "seen");
    assert_string_equal(vmem_pages(va + SIZE), "r--");
    assert_string_equal(vmem_pages(va + 2 * SIZE), "---");
    assert_never_set(va, 1);
    assert_never_set(va + SIZE, 0);
    assert_never_set(va + 2 * SIZE, 0);
}

/* "Calling hsa_amd_vmem_set_access multiple times on the same va will overwrite previous permissions for all agents" */
static void set_access_again_overwrites_for_all_agents(void **state)
{
    vmem_allow(va, SIZE);
    vmem_allow_one(va, SIZE, 1, RO);
    assert_int_equal(vmem_access(va, 1), RO);
    assert_never_set(va, 0);
    assert_string_equal(vmem_pages(va), "r--");
    vmem_allow_one(va, SIZE, 0, NONE);
    assert_int_equal(vmem_access(va, 0), NONE);
    assert_never_set(va, 1);
    assert_string_equal(vmem_pages(va), "---");
}

/* Of two entries of one agent, the last counts. */
static void set_desc_with_an_agent_twice_takes_the_last(void **state)
{
    const hsa_amd_memory_access_desc_t desc[] = {{RW, agents[0]}, {RO, agents[1]}, {NONE, agents[0]}, {RO, agents[0]}};

    assert_success(hsa_amd_vmem_set_access(va, SIZE, desc, 4));
    assert_int_equal(vmem_access(va, 0), RO);
    assert_string_equal(vmem_pages(va), "r--");
}

/* The list may lie in what becomes inaccessible by it. */
static void set_desc_may_lie_in_the_mapping(void **state)
{
    hsa_amd_memory_access_desc_t *desc = (void *)(va + 64);

    vmem_allow(va, 3 * SIZE);
    desc[0] = (hsa_amd_memory_access_desc_t){NONE, agents[0]};
    desc[1] = (hsa_amd_memory_access_desc_t){NONE, agents[1]};
    assert_success(hsa_amd_vmem_set_access(va, 3 * SIZE, desc, 2));
    assert_string_equal(vmem_pages(va), "---");
    assert_string_equal(vmem_pages(va + 3 * SIZE - 1), "---");
}

/* hsa_amd_vmem_set_access: "size must be equal to size of previously mapped virtual memory handle", or that of several
 * in a row. */
static void set_size_may_span_whole_mappings(void **state)
{
    vmem_allow_one(va, SIZE, 1, RO);
    vmem_allow_one(va, 3 * SIZE, 0, RW);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(vmem_access(va + i * SIZE, 0), RW);
        assert_never_set(va + i * SIZE, 1);
        va[(i + 1) * SIZE - 1] = 1;
    }
    vmem_allow_one(va + SIZE, 2 * SIZE, 1, RO);
    assert_string_equal(vmem_pages(va), "rw-");
    assert_string_equal(vmem_pages(va + SIZE), "r--");
    assert_string_equal(vmem_pages(va + 2 * SIZE), "r--");
}

/* Parts of mappings, and gaps: nothing is changed. */
static void set_size_with_a_cut_or_a_gap_is_invalid_allocation(void **state)
{
    const hsa_amd_memory_access_desc_t desc = {RW, agents[0]};

    assert_status(hsa_amd_vmem_set_access(va, SIZE - page_size(), &desc, 1), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_set_access(va, SIZE + page_size(), &desc, 1), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_set_access(va, 4 * SIZE, &desc, 1), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_set_access(va + page_size(), SIZE - page_size(), &desc, 1), INVALID_ALLOCATION);
    assert_status(hsa_amd_vmem_set_access(va + 1, SIZE, &desc, 1), INVALID_ALLOCATION);
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(vmem_pages(va + i * SIZE), "---");
    assert_never_set(va, 0);
}

/* "HSA_STATUS_ERROR_INVALID_ALLOCATION - memory_handle is invalid": nothing is mapped there. */
static void set_va_that_is_not_mapped_is_invalid_allocation(void **state)
{
    const hsa_amd_memory_access_desc_t desc = {RW, agents[0]};

    assert_status(hsa_amd_vmem_set_access(va + 3 * SIZE, SIZE, &desc, 1), INVALID_ALLOCATION);
    assert_string_equal(vmem_pages(va + 3 * SIZE), "---");
}

/* "HSA_STATUS_ERROR_INVALID_ARGUMENT - va, size or memory_handle are invalid" */
static void set_va_or_size_that_is_none_is_invalid_argument(void **state)
{
    const hsa_amd_memory_access_desc_t desc = {RW, agents[0]};
    void *allocated;

    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], SIZE, 0, &allocated));
    assert_status(hsa_amd_vmem_set_access(NULL, SIZE, &desc, 1), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_set_access(va, 0, &desc, 1), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_set_access(va, SIZE - 1, &desc, 1), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_set_access(va, 5 * SIZE, &desc, 1), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_set_access(va, SIZE_MAX - page_size() + 1, &desc, 1), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_set_access(allocated, SIZE, &desc, 1), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_set_access((void *)((uintptr_t)&desc & ~(page_size() - 1)), page_size(), &desc, 1),
                  INVALID_ARGUMENT);
    assert_success(hsa_amd_memory_pool_free(allocated));
}

/* hsa_amd_vmem_set_access, desc_cnt */
static void set_desc_null_or_desc_cnt_zero_is_invalid_argument(void **state)
{
    const hsa_amd_memory_access_desc_t desc = {RW, agents[0]};

    assert_status(hsa_amd_vmem_set_access(va, SIZE, NULL, 1), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_set_access(va, SIZE, &desc, 0), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_set_access(va, SIZE, NULL, 0), INVALID_ARGUMENT);
}

static void set_desc_with_a_permission_that_is_none_is_invalid_argument(void **state)
{
    const unsigned values[] = {4, 7, 8, UINT32_MAX};

    vmem_allow_one(va, SIZE, 0, RO);
    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const hsa_amd_memory_access_desc_t desc[] = {
            {RW, agents[0]},
            {(hsa_access_permission_t)values[i], agents[1]},
        };

        assert_status(hsa_amd_vmem_set_access(va, SIZE, desc, 2), INVALID_ARGUMENT);
    }
    assert_int_equal(vmem_access(va, 0), RO);
}

/* "HSA_STATUS_ERROR_INVALID_AGENT - Invalid agent in desc": nothing is changed. */
static void set_desc_with_an_agent_that_is_none_is_invalid_agent(void **state)
{
    const uint64_t values[] = {0, agents[1].handle + 1, pools[0][FINE].handle, UINT64_MAX, (uintptr_t)va};

    vmem_allow_one(va, SIZE, 0, RO);
    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const hsa_amd_memory_access_desc_t desc[] = {{RW, agents[0]}, {RW, {values[i]}}};

        assert_status(hsa_amd_vmem_set_access(va, SIZE, desc, 2), INVALID_AGENT);
    }
    assert_int_equal(vmem_access(va, 0), RO);
    assert_string_equal(vmem_pages(va), "r--");
}

/* ---- get_access -------------------------------------------------------------------------------------------------- */

/* hsa_amd_vmem_get_access, perms, SUCCESS: "Get access permissions for memory mapping for specific agent", at any
 * address of it. */
static void get_va_is_any_in_the_mapping(void **state)
{
    vmem_allow_one(va + SIZE, SIZE, 0, WO);
    assert_int_equal(vmem_access(va + SIZE, 0), WO);
    assert_int_equal(vmem_access(va + SIZE + 1, 0), WO);
    assert_int_equal(vmem_access(va + 2 * SIZE - 1, 0), WO);
    assert_never_set(va + 2 * SIZE, 0);
    assert_never_set(va + SIZE - 1, 0);
}

/* hsa_amd_vmem_get_access, agent_handle: "HSA_STATUS_ERROR_INVALID_AGENT - Invalid agent" */
static void get_agent_handle_that_is_none_is_invalid_agent(void **state)
{
    const uint64_t values[] = {0, agents[1].handle + 1, pools[0][FINE].handle, UINT64_MAX, (uintptr_t)va};

    vmem_allow(va, SIZE);
    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        hsa_access_permission_t permissions = RW;

        assert_status(hsa_amd_vmem_get_access(va, &permissions, (hsa_agent_t){values[i]}), INVALID_AGENT);
        assert_int_equal(permissions, NONE);
    }
}

/* "HSA_STATUS_ERROR_INVALID_ALLOCATION - va is not mapped or permissions never set for this agent" */
static void get_va_that_is_not_mapped_is_invalid_allocation(void **state)
{
    hsa_access_permission_t permissions = RW;
    void *allocated;

    vmem_allow(va, 3 * SIZE);
    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], SIZE, 0, &allocated));
    assert_never_set(va + 3 * SIZE, 0);
    assert_never_set(va - 1, 0);
    assert_never_set(&permissions, 0);
    assert_never_set(allocated, 0);
    /* also with an agent that is none */
    assert_status(hsa_amd_vmem_get_access(va + 3 * SIZE, &permissions, (hsa_agent_t){0}), INVALID_ALLOCATION);
    assert_success(hsa_amd_memory_pool_free(allocated));
}

/* hsa_amd_vmem_get_access */
static void get_agent_never_set_is_invalid_allocation(void **state)
{
    assert_never_set(va, 0);
    vmem_allow_one(va, SIZE, 0, RW);
    assert_never_set(va, 1);
}

static void get_va_or_perms_null_is_invalid_argument(void **state)
{
    hsa_access_permission_t permissions = RW;

    assert_status(hsa_amd_vmem_get_access(NULL, &permissions, agents[0]), INVALID_ARGUMENT);
    assert_status(hsa_amd_vmem_get_access(va, NULL, agents[0]), INVALID_ARGUMENT);
}

/* ---- the other profile ------------------------------------------------------------------------------------------- */

static void rocr_set_access_again_keeps_what_others_have(void **state)
{
    assert_success(memclient_hsa_set_profile(MEMCLIENT_HSA_PROFILE_ROCR));
    vmem_allow_one(va, SIZE, 0, RW);
    vmem_allow_one(va, 2 * SIZE, 1, RO);
    assert_int_equal(vmem_access(va, 0), RW);
    assert_int_equal(vmem_access(va, 1), RO);
    assert_string_equal(vmem_pages(va), "rw-");
    assert_string_equal(vmem_pages(va + SIZE), "r--");
    vmem_allow_one(va, SIZE, 0, NONE);
    assert_int_equal(vmem_access(va, 0), NONE);
    assert_string_equal(vmem_pages(va), "r--");
    assert_success(memclient_hsa_set_profile(MEMCLIENT_HSA_PROFILE_DOCUMENT));
    vmem_allow_one(va, SIZE, 0, RW);
    assert_never_set(va, 1);
}

static void rocr_get_agent_never_set_is_none(void **state)
{
    hsa_access_permission_t permissions = RW;

    assert_success(memclient_hsa_set_profile(MEMCLIENT_HSA_PROFILE_ROCR));
    assert_int_equal(vmem_access(va, 0), NONE);
    vmem_allow_one(va, SIZE, 0, RW);
    assert_int_equal(vmem_access(va, 1), NONE);
    assert_never_set(va + 3 * SIZE, 0);
    assert_status(hsa_amd_vmem_get_access(va, &permissions, (hsa_agent_t){0}), INVALID_AGENT);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(set_desc_of_all_agents_makes_the_pages_protection),
        test(set_va_of_one_alias_leaves_the_others),
        test(set_access_again_overwrites_for_all_agents),
        test(set_desc_with_an_agent_twice_takes_the_last),
        test(set_desc_may_lie_in_the_mapping),
        test(set_size_may_span_whole_mappings),
        test(set_size_with_a_cut_or_a_gap_is_invalid_allocation),
        test(set_va_that_is_not_mapped_is_invalid_allocation),
        test(set_va_or_size_that_is_none_is_invalid_argument),
        test(set_desc_null_or_desc_cnt_zero_is_invalid_argument),
        test(set_desc_with_a_permission_that_is_none_is_invalid_argument),
        test(set_desc_with_an_agent_that_is_none_is_invalid_agent),
        test(get_va_is_any_in_the_mapping),
        test(get_agent_handle_that_is_none_is_invalid_agent),
        test(get_va_that_is_not_mapped_is_invalid_allocation),
        test(get_agent_never_set_is_invalid_allocation),
        test(get_va_or_perms_null_is_invalid_argument),
        test(rocr_set_access_again_keeps_what_others_have),
        test(rocr_get_agent_never_set_is_none),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
