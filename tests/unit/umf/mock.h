/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers of a test's own, in the test's process: they count what is asked of them, and fail when they are told to.
 */
#pragma once

#include <stdatomic.h>

#include <memclient/umf.h>
#include <memclient/umf/memory_pool_ops.h>
#include <memclient/umf/memory_provider_ops.h>

#include "tests/support/test.h"

enum mock_kind {
    MOCK_MALLOC, /* malloc()'s memory; it knows nothing of pages */
    MOCK_PAGES,  /* mmap()'s; it can be purged, split and merged, and free() must name what there is */
    MOCK_NULL,   /* it says SUCCESS, and gives nothing */
};

struct mock {
    enum mock_kind kind;
    bool is_guarded; /* MOCK_PAGES cannot be read or written */
    atomic_size_t allocs, frees, purges, splits, merges, page_sizes;
    atomic_size_t bytes; /* that are not freed */
    atomic_size_t wrong; /* frees of what there is not */
    _Atomic umf_result_t fail_alloc, fail_free; /* instead, unless SUCCESS */
};

/* One that counts there. */
umf_memory_provider_handle_t mock_provider(struct mock *mock);
/* A pool over one; the pool owns it. */
umf_memory_pool_handle_t mock_pool(const umf_memory_pool_ops_t *ops, void *params, struct mock *mock);

#define assert_umf(call, wanted) assert_int_equal((call), (wanted))
#define assert_success(call) assert_umf((call), UMF_RESULT_SUCCESS)
