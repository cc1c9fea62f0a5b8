/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers for tests of what stands on providers: a program's own, as far as the library can tell. They count what is
 * asked of them, and fail when they are told to.
 */
#pragma once

#include <stdatomic.h>

#include <memclient/umf/umf/memory_pool.h>
#include <memclient/umf/umf/memory_provider.h>

#include "tests/support/test.h"
#include "tests/unit/umf/result.h"

enum mock_kind {
    MOCK_PAGES,  /* the kernel's memory, by pages: with every operation there is */
    MOCK_MALLOC, /* malloc()'s: it knows nothing of pages, and can only allocate and free */
    MOCK_NULL,   /* SUCCESS, and nothing else; no output is written but an allocation's NULL */
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
    bool is_guarded;     /* pages that cannot be read or written */
    bool opens_in_place; /* a handle is opened where the memory is, not as a copy of it */
    atomic_uint calls[MOCK_OPS];
    _Atomic umf_result_t fails[MOCK_OPS]; /* SUCCESS = it does not */
    void (*on_open)(void);                /* called within opening; may be NULL */
    void (*on_close)(void);
    atomic_size_t bytes; /* that are not freed */
    atomic_size_t wrong; /* frees and purges of what there is not */
    /* what was asked for last */
    _Atomic(void *) ptr;
    atomic_size_t size, alignment, first_size;
    _Atomic(const void *) ipc_ptr;
    atomic_size_t ipc_size;
};

#define MOCK_HANDLE_SIZE 24
#define MOCK_NATIVE_ERROR 4711

/* Of each kind. Its params are a struct mock of that kind, which outlives it; or NULL where nobody looks at one. */
extern const umf_memory_provider_ops_t mock_ops[MOCK_KINDS];
umf_memory_provider_handle_t mock_new(struct mock *mock);
umf_memory_provider_handle_t mock_of(enum mock_kind kind);
/* Without parameters, of any operations. */
umf_memory_provider_handle_t provider_of(const umf_memory_provider_ops_t *ops);

/* A pool over one, which it owns. Skips if there are no such pools here. */
umf_memory_pool_handle_t mock_pool(const umf_memory_pool_ops_t *ops, void *params, struct mock *mock);
/* A proxy pool, not owning its provider. */
umf_memory_pool_handle_t proxy_of(umf_memory_provider_handle_t provider);

/* Calls that no other function of the mock was made beside: a bit mask of enum mock_op. */
unsigned mock_called(const struct mock *mock);
