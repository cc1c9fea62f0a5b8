/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a heap keeps of what was freed: the next allocation of that size gets it without a call, and others get it when
 * they need it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"
#include "tests/unit/opencl/opencl.h"

static void large_ones_come_back_without_a_call(void **state)
{
    struct memclient_svm *svm = svm_create(0, 0);

    for (uint64_t size = 256 * 1024; size <= 16 * MIB; size *= 2) {
        char *first = svm_allocate(svm, size);
        uint64_t requests;

        assert_done(memclient_svm_free(svm, first));
        requests = svm_requests();
        for (unsigned i = 0; i < 100; i++) {
            char *ptr = svm_allocate(svm, size);

            assert_ptr_equal(ptr, first);
            memset(ptr, (int)i, size);
            assert_done(memclient_svm_free(svm, ptr));
        }
        assert_int_equal(svm_requests(), requests);
    }
    memclient_svm_destroy(svm);
}

static int count_cached(const struct memclient_buffer_info *info, void *data)
{
    unsigned *n = data;

    for (uint32_t i = 0; i < info->n_holders; i++)
        *n += info->holder_cached[i];
    return 0;
}

static unsigned cached_holds(void)
{
    unsigned n = 0;

    assert_done(memclient_list_buffers(svm_observer, count_cached, &n));
    return n;
}

static void at_most_64_mib_are_kept(void **state)
{
    struct memclient_svm *svm = svm_create(0, 0);
    char *ptrs[12];

    for (unsigned i = 0; i < 12; i++)
        ptrs[i] = svm_allocate(svm, 8 * MIB);
    for (unsigned i = 0; i < 12; i++)
        assert_done(memclient_svm_free(svm, ptrs[i]));
    assert_true(WAIT_UNTIL(svm_buffers() == 8));
    assert_int_equal(cached_holds(), 8);
    /* the youngest are kept */
    assert_ptr_equal(svm_allocate(svm, 8 * MIB), ptrs[11]);
    assert_int_equal(cached_holds(), 7);
    memclient_svm_destroy(svm);
}

static void what_others_have_is_not_kept(void **state)
{
    struct memclient_svm *svm = svm_create(0, 0);
    char *ptr = svm_allocate(svm, MIB + 4096);
    struct memclient_buffer *buf;
    struct memclient_token token;
    uint64_t offset, length;

    assert_done(memclient_svm_share(ptr, NULL, &token, &offset, &length));
    assert_done(memclient_svm_free(svm, ptr));
    assert_true(WAIT_UNTIL(svm_buffers() == 0));
    assert_refused(memclient_open_token(svm_observer, &token, 0, &buf), -ESTALE);
    memclient_svm_destroy(svm);
}

/* Mistakes are to be found there: what was freed is touched by nobody. */
static void what_is_in_quarantine_is_not_kept(void **state)
{
    struct memclient_svm *svm = svm_create(0, 4 * MIB);
    char *first = svm_allocate(svm, 2 * MIB), *next;

    for (unsigned i = 0; i < 10; i++) {
        assert_done(memclient_svm_free(svm, first));
        next = svm_allocate(svm, 2 * MIB);
        memset(next, 1, 2 * MIB);
        first = next;
    }
    memclient_svm_destroy(svm);
}

/* Its heap has freed all but a little, and does nothing any more. */
static void I4_others_get_what_is_kept(void **state)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_svm *svm = svm_create(0, 0);
    struct memclient_buffer *buf;
    char *ptrs[6];

    for (unsigned i = 0; i < 6; i++)
        ptrs[i] = svm_allocate(svm, 10 * MIB);
    for (unsigned i = 0; i < 6; i++) {
        memset(ptrs[i], 1, 10 * MIB);
        assert_done(memclient_svm_free(svm, ptrs[i]));
    }
    assert_int_equal(cached_holds(), 6);
    assert_done(memclient_alloc(svm_observer, 150 * MIB, &options, &buf));
    assert_int_equal(cached_holds(), 0);
    memclient_buffer_unref(buf);
    /* whatever it gets now is its own */
    for (unsigned i = 0; i < 6; i++) {
        ptrs[i] = svm_allocate(svm, 10 * MIB);
        memset(ptrs[i], 2, 10 * MIB);
    }
    memclient_svm_destroy(svm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(large_ones_come_back_without_a_call, svm_nothing_left),
        cmocka_unit_test_teardown(at_most_64_mib_are_kept, svm_nothing_left),
        cmocka_unit_test_teardown(what_others_have_is_not_kept, svm_nothing_left),
        cmocka_unit_test_teardown(what_is_in_quarantine_is_not_kept, svm_nothing_left),
        cmocka_unit_test_teardown(I4_others_get_what_is_kept, svm_nothing_left),
    };

    setenv("MEMORYD_CACHE", "64", 1);
    svm_config = "[limits]\nuid_bytes = 200M\n";
    return cmocka_run_group_tests(tests, svm_group_setup, svm_group_teardown);
}
