/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of ranges of memory: hsa_amd_svm_attributes_set, hsa_amd_svm_attributes_get, hsa_amd_svm_prefetch_async.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/unit/hsa/hsa.h"

enum { PAGES = 40 };

static size_t page;
static char *memory;

static int setup(void **state)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return 0;
}

/* It is not forgotten with the memory, so each test leaves the usual behind. */
static int teardown(void **state)
{
    hsa_amd_svm_attribute_pair_t usual[] = {
        {HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG, HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED},
        {HSA_AMD_SVM_ATTRIB_READ_ONLY, false},
        {HSA_AMD_SVM_ATTRIB_HIVE_LOCAL, false},
        {HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY, 9},
        {HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION, 0},
        {HSA_AMD_SVM_ATTRIB_READ_MOSTLY, false},
        {HSA_AMD_SVM_ATTRIB_GPU_EXEC, false},
        {HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, agents[0].handle},
        {HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, agents[1].handle},
    };

    assert_success(hsa_amd_svm_attributes_set(memory, PAGES * page, usual, sizeof(usual) / sizeof(usual[0])));
    assert_int_equal(munmap(memory, PAGES * page), 0);
    return hsa_nothing_left(state);
}

static hsa_status_t set(unsigned at, unsigned n, uint64_t attribute, uint64_t value)
{
    hsa_amd_svm_attribute_pair_t pair = {attribute, value};

    return hsa_amd_svm_attributes_set(memory + at * page, n * page, &pair, 1);
}

static hsa_status_t get(unsigned at, unsigned n, uint64_t attribute, uint64_t *value)
{
    hsa_amd_svm_attribute_pair_t pair = {attribute, 99};
    hsa_status_t status = hsa_amd_svm_attributes_get(memory + at * page, n * page, &pair, 1);

    *value = pair.value;
    return status;
}

/* hsa_amd_svm_attributes_set, hsa_amd_svm_attributes_get: ptr, size, attribute_list, attribute_count:
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS */
static void arguments(void **state)
{
    hsa_amd_svm_attribute_pair_t pair = {HSA_AMD_SVM_ATTRIB_READ_ONLY, true};
    hsa_amd_svm_attribute_pair_t twice[] = {pair, {HSA_AMD_SVM_ATTRIB_GPU_EXEC, 1}, pair};
    hsa_amd_svm_attribute_pair_t accesses[] = {
        {HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, agents[0].handle},
        {HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS, agents[0].handle},
    };
    static const uint64_t not_set[] = {
        HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION, HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, 8, 31, 32, 33, 0x1ff, 0x204, UINT64_MAX};
    static const uint64_t not_got[] = {HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE,
                                       HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE,
                                       HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS,
                                       8,
                                       32,
                                       0x204,
                                       UINT64_MAX};
    uint64_t value;

    for (unsigned k = 0; k < 2; k++) {
        __typeof__(hsa_amd_svm_attributes_set) *call = k ? hsa_amd_svm_attributes_get : hsa_amd_svm_attributes_set;

        assert_status(call(NULL, page, &pair, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        assert_status(call(memory, 0, &pair, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        assert_status(call(memory, page, NULL, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        assert_status(call(memory, page, &pair, 0), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        assert_status(call(memory, SIZE_MAX, &pair, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
        assert_status(call((void *)(UINTPTR_MAX - page + 1), page, &pair, 1), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
    for (unsigned i = 0; i < sizeof(not_set) / sizeof(not_set[0]); i++)
        assert_status(set(0, 1, not_set[i], agents[0].handle), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < sizeof(not_got) / sizeof(not_got[0]); i++)
        assert_status(get(0, 1, not_got[i], &value), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(set(0, 1, HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG, HSA_AMD_SVM_GLOBAL_FLAG_INDETERMINATE),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(set(0, 1, HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION, 31337), HSA_STATUS_ERROR_INVALID_AGENT);
    for (uint64_t a = HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE; a <= HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS; a++) {
        assert_status(set(0, 1, a, 0), HSA_STATUS_ERROR_INVALID_AGENT);
        assert_status(set(0, 1, a, 31337), HSA_STATUS_ERROR_INVALID_AGENT);
    }
    assert_status(get(0, 1, HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, &value), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_svm_attributes_set(memory, page, twice, 3), HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS);
    assert_status(hsa_amd_svm_attributes_set(memory, page, accesses, 2), HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS);
    /* what failed has changed nothing */
    assert_success(get(0, PAGES, HSA_AMD_SVM_ATTRIB_READ_ONLY, &value));
    assert_int_equal(value, false);
    assert_success(get(0, PAGES, HSA_AMD_SVM_ATTRIB_GPU_EXEC, &value));
    assert_int_equal(value, false);
}

/* One attribute that is kept for each page, and joined over a range. */
static const struct {
    uint64_t attribute, usual, values[3], mixed;
    bool least; /* joined by the smallest */
} kept[] = {
    {HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG, 0, {0, 1, 0}, HSA_AMD_SVM_GLOBAL_FLAG_INDETERMINATE, false},
    {HSA_AMD_SVM_ATTRIB_READ_ONLY, 0, {0, 1, 1}, 0, false},
    {HSA_AMD_SVM_ATTRIB_HIVE_LOCAL, 0, {0, 1, 1}, 0, false},
    {HSA_AMD_SVM_ATTRIB_READ_MOSTLY, 0, {0, 1, 1}, 0, false},
    {HSA_AMD_SVM_ATTRIB_GPU_EXEC, 0, {0, 1, 1}, 0, false},
    {HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY, 9, {0, 12, 18}, 0, true},
};

/* hsa_amd_svm_attributes_set, hsa_amd_svm_attributes_get: HSA_STATUS_SUCCESS: page by page as a model has it */
static void as_the_model(void **state)
{
    uint64_t random = 20261123, value;

    for (unsigned k = 0; k < sizeof(kept) / sizeof(kept[0]); k++) {
        uint64_t model[PAGES];

        for (unsigned i = 0; i < PAGES; i++)
            model[i] = kept[k].usual;
        for (unsigned i = 0; i < 600; i++) {
            unsigned at, n;
            uint64_t wanted;

            random = random * 6364136223846793005u + 1442695040888963407u;
            at = (unsigned)(random >> 33) % PAGES;
            n = 1 + (unsigned)(random >> 45) % (PAGES - at);
            if (i % 2) {
                value = kept[k].values[(random >> 58) % 3];
                assert_success(set(at, n, kept[k].attribute, value));
                for (unsigned p = at; p < at + n; p++)
                    model[p] = value;
                continue;
            }
            wanted = model[at];
            for (unsigned p = at; p < at + n; p++)
                if (kept[k].least ? model[p] < wanted : model[p] != model[at])
                    wanted = kept[k].least ? model[p] : kept[k].mixed;
            assert_success(get(at, n, kept[k].attribute, &value));
            assert_int_equal(value, wanted);
        }
    }
}

/* Where it should be, and who may use it: of agents. Whole pages, and of several attributes at once. */
static void of_agents(void **state)
{
    hsa_amd_svm_attribute_pair_t both[] = {
        {HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION, agents[1].handle},
        {HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS, agents[0].handle},
        {HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE, agents[1].handle},
    };
    hsa_amd_svm_attribute_pair_t asked[] = {
        {HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION, 99},
        {HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, agents[0].handle},
        {HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, agents[1].handle},
        {HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION, 99},
    };
    uint64_t value;

    assert_success(hsa_amd_svm_attributes_set(memory + 3 * page + 5, 1, both, 3));
    assert_success(hsa_amd_svm_attributes_get(memory + 3 * page, page, asked, 4));
    assert_int_equal(asked[0].value, agents[1].handle);
    assert_int_equal(asked[1].attribute, HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS);
    assert_int_equal(asked[2].attribute, HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE);
    assert_int_equal(asked[2].value, agents[1].handle);
    assert_int_equal(asked[3].value, 0);
    /* a byte of the next page as well: it is not the same for both */
    asked[1].attribute = asked[2].attribute = HSA_AMD_SVM_ATTRIB_ACCESS_QUERY;
    assert_success(hsa_amd_svm_attributes_get(memory + 4 * page - 1, 2, asked, 4));
    assert_int_equal(asked[0].value, 0);
    assert_int_equal(asked[1].attribute, HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS);
    assert_int_equal(asked[2].attribute, HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE);
    /* granularities have an end */
    assert_success(set(0, 1, HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY, 77));
    assert_success(get(0, 1, HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY, &value));
    assert_int_equal(value, 18);
    /* nothing is done to the memory */
    memset(memory, 1, PAGES * page);
}

/* hsa_amd_svm_prefetch_async: ptr, size, agent, num_dep_signals, dep_signals, completion_signal: HSA_STATUS_SUCCESS,
 * HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_SIGNAL */
static void prefetch(void **state)
{
    hsa_signal_t needed, done, none = {0}, bad = {6};
    uint64_t value;

    assert_success(hsa_signal_create(1, 0, NULL, &needed));
    assert_success(hsa_signal_create(3, 0, NULL, &done));
    assert_status(hsa_amd_svm_prefetch_async(NULL, page, agents[0], 0, NULL, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_svm_prefetch_async(memory, 0, agents[0], 0, NULL, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_svm_prefetch_async(memory, page, agents[0], 1, NULL, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_svm_prefetch_async(memory, page, agents[0], 0, &needed, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_svm_prefetch_async(memory, page, (hsa_agent_t){0}, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_svm_prefetch_async(memory, page, agents[0], 1, &bad, done), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_amd_svm_prefetch_async(memory, page, agents[0], 0, NULL, bad), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_success(get(0, 1, HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION, &value));
    assert_int_equal(value, 0);

    assert_success(hsa_amd_svm_prefetch_async(memory, 2 * page, agents[1], 1, &needed, done));
    assert_success(get(0, 2, HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION, &value));
    assert_int_equal(value, agents[1].handle);
    assert_int_equal(hsa_signal_load_relaxed(done), 3);
    hsa_signal_store_screlease(needed, 0);
    assert_int_equal(hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 3, UINT64_MAX, HSA_WAIT_STATE_BLOCKED),
                     2);
    assert_success(hsa_amd_svm_prefetch_async(memory, page, agents[0], 0, NULL, none));
    assert_success(get(0, 1, HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION, &value));
    assert_int_equal(value, agents[0].handle);
    assert_success(get(0, 2, HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION, &value));
    assert_int_equal(value, 0);
    assert_success(hsa_signal_destroy(needed));
    assert_success(hsa_signal_destroy(done));
}

static void in_a_child(int channel, void *context)
{
    hsa_amd_svm_attribute_pair_t pair = {HSA_AMD_SVM_ATTRIB_READ_ONLY, true};

    CHECK(hsa_amd_svm_attributes_set(memory, page, &pair, 1) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_svm_attributes_get(memory, page, &pair, 1) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_svm_prefetch_async(memory, page, agents[0], 0, NULL, (hsa_signal_t){0}) ==
          HSA_STATUS_ERROR_NOT_INITIALIZED);
    /* the last hsa_shut_down() forgets it all, and so does a fork */
    for (unsigned i = 0; i < 2; i++) {
        CHECK(hsa_init() == HSA_STATUS_SUCCESS);
        CHECK(hsa_amd_svm_attributes_get(memory, page, &pair, 1) == HSA_STATUS_SUCCESS);
        CHECK(!pair.value);
        pair.value = true;
        CHECK(hsa_amd_svm_attributes_set(memory, page, &pair, 1) == HSA_STATUS_SUCCESS);
        CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS);
    }
}

/* HSA_STATUS_ERROR_NOT_INITIALIZED: of hsa_amd_svm_attributes_set, hsa_amd_svm_attributes_get,
 * hsa_amd_svm_prefetch_async */
static void before_and_after(void **state)
{
    assert_success(set(0, 1, HSA_AMD_SVM_ATTRIB_READ_ONLY, true));
    child_run(in_a_child, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(before_and_after, setup, teardown),
        cmocka_unit_test_setup_teardown(arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(as_the_model, setup, teardown),
        cmocka_unit_test_setup_teardown(of_agents, setup, teardown),
        cmocka_unit_test_setup_teardown(prefetch, setup, teardown),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
