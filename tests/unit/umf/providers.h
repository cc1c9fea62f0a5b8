/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Providers for tests of what stands on providers: a program's own, as far as the library can tell.
 */
#pragma once

#include <stdatomic.h>

#include <memclient/umf/memory_pool.h>
#include <memclient/umf/memory_provider.h>

#include "tests/support/test.h"
#include "tests/unit/umf/result.h"

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

/*
 * Memory of the kernel's, by pages, with every operation there is. It counts the calls of each, and fails those it is
 * told to. A handle is opened as a copy of the memory, or where the memory is.
 */
struct mock {
    atomic_uint calls[MOCK_OPS];
    umf_result_t fails[MOCK_OPS]; /* SUCCESS = it does not */
    bool opens_in_place;
    void (*on_open)(void); /* called within opening; may be NULL */
    void (*on_close)(void);
    /* what was asked for last */
    _Atomic(void *) ptr;
    atomic_size_t size, alignment, first_size;
    _Atomic(const void *) ipc_ptr;
    atomic_size_t ipc_size;
};

#define MOCK_HANDLE_SIZE 24
#define MOCK_NATIVE_ERROR 4711

/* Its params are a struct mock, which outlives it. */
extern const umf_memory_provider_ops_t mock_ops;
umf_memory_provider_handle_t mock_new(struct mock *mock);

/* Calls that no other function of the mock was made beside: a bit mask of enum mock_op. */
unsigned mock_called(const struct mock *mock);

/* malloc() and free(). */
extern const umf_memory_provider_ops_t malloc_ops;
/* SUCCESS, and nothing else; no output is written but an allocation's NULL. */
extern const umf_memory_provider_ops_t null_ops;

/* Without parameters. */
umf_memory_provider_handle_t provider_of(const umf_memory_provider_ops_t *ops);
/* A proxy pool, not owning its provider. */
umf_memory_pool_handle_t proxy_of(umf_memory_provider_handle_t provider);
