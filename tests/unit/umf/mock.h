/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers for tests of what uses providers. To the library they are a program's own. They count their calls, and fail
 * when they are told to.
 */
#pragma once

#include <stdatomic.h>

#include <memclient/umf/umf/memory_pool.h>
#include <memclient/umf/umf/memory_provider.h>

#include "tests/support/test.h"
#include "tests/unit/umf/result.h"

enum mock_kind {
    MOCK_PAGES,  /* the kernel's memory, in pages, with every operation */
    MOCK_MALLOC, /* malloc()'s memory, without pages, with allocating and freeing only */
    MOCK_NULL,   /* returns SUCCESS, and writes no output but an allocation's NULL */
    MOCK_KINDS
};

enum mock_op {
    MOCK_ALLOC,
    MOCK_FREE,
    MOCK_LAST_NATIVE_ERROR,
    MOCK_RECOMMENDED_PAGE_SIZE,
    MOCK_MIN_PAGE_SIZE,
    MOCK_NAME,
    MOCK_PURGE_LAZY,
    MOCK_PURGE_FORCE,
    MOCK_MERGE,
    MOCK_SPLIT,
    MOCK_IPC_SIZE,
    MOCK_IPC_GET,
    MOCK_IPC_PUT,
    MOCK_IPC_OPEN,
    MOCK_IPC_CLOSE,
    MOCK_OPS
};

struct mock {
    enum mock_kind kind;
    bool is_guarded;     /* its pages cannot be read or written */
    bool opens_in_place; /* opening a handle returns the memory itself, not a copy */
    atomic_uint calls[MOCK_OPS];
    _Atomic umf_result_t fails[MOCK_OPS]; /* SUCCESS: it works */
    void (*on_open)(void);                /* called during an opening; may be NULL */
    void (*on_close)(void);
    atomic_size_t bytes; /* not freed yet */
    atomic_size_t wrong; /* frees and purges of unknown memory */
    /* arguments of the last call */
    _Atomic(void *) ptr;
    atomic_size_t size, alignment, first_size;
    _Atomic(const void *) ipc_ptr;
    atomic_size_t ipc_size;
};

#define MOCK_HANDLE_SIZE  24
#define MOCK_NATIVE_ERROR 4711

/* One table of each kind. params is a struct mock of that kind, which must outlive the provider; or NULL if none is
 * needed. */
extern const umf_memory_provider_ops_t mock_ops[MOCK_KINDS];
umf_memory_provider_handle_t mock_new(struct mock *mock);
umf_memory_provider_handle_t mock_of(enum mock_kind kind);
/* Makes a provider of any operations, without parameters. */
umf_memory_provider_handle_t provider_of(const umf_memory_provider_ops_t *ops);

/* Makes a pool over a mock, which the pool owns. Skips if there are no such pools here. */
umf_memory_pool_handle_t mock_pool(const umf_memory_pool_ops_t *ops, void *params, struct mock *mock);
/* Makes a proxy pool, which does not own its provider. */
umf_memory_pool_handle_t proxy_of(umf_memory_provider_handle_t provider);

/* The operations that were called, as a bit mask of enum mock_op. */
unsigned mock_called(const struct mock *mock);
