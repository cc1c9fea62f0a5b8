/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of UMF's document begin with: private memory of the operating system, and a pool as programs bring it.
 */
#pragma once

#include <memclient/umf/umf/memory_pool.h>
#include <memclient/umf/umf/memory_pool_ops.h>
#include <memclient/umf/umf/memory_provider.h>

#include "tests/unit/umf/mock.h"

/* For cmocka: the OS provider by its default parameters, with the document's answers. */
extern umf_memory_provider_handle_t os;
int os_setup(void **state);
int os_teardown(void **state);

/* malloc() and its like, whatever the provider is; with any number of pools, of which it knows the last one. */
extern const umf_memory_pool_ops_t heap_ops;
extern struct heap {
    umf_memory_provider_handle_t provider;
    void *params;
    unsigned begun, ended;
} heap;
/* Its last error. */
extern __thread umf_result_t heap_error;
