/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What these programs begin with. They are written as anybody would write them, to UMF's headers alone, and
 * make providers and pools of every kind.
 */
#pragma once

#include <umf.h>
#include <umf/ipc.h>
#include <umf/memory_pool_ops.h>
#include <umf/memory_provider_ops.h>
#include <umf/pools/pool_disjoint.h>
#include <umf/pools/pool_jemalloc.h>
#include <umf/pools/pool_proxy.h>
#include <umf/pools/pool_scalable.h>
#include <umf/providers/provider_memoryd.h>
#include <umf/providers/provider_os_memory.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/program.h"

#define NEED(call)                expect((call), UMF_RESULT_SUCCESS, #call, __FILE__, __LINE__)
#define NEED_RESULT(call, wanted) expect((call), (wanted), #call, __FILE__, __LINE__)

static inline void expect(enum umf_result_t got, enum umf_result_t wanted, const char *call, const char *file, int line)
{
    umf_memory_provider_handle_t failed = umfGetLastFailedMemoryProvider();
    const char *text = NULL;
    int32_t number = 0;

    if (got == wanted)
        return;
    if (got == UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC && failed)
        umfMemoryProviderGetLastNativeError(failed, &text, &number);
    give_up("%s:%d: %s gave %d (%d: %s), not %d", file, line, call, (int)got, (int)number, text ? text : "no text",
            (int)wanted);
}

static inline size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- providers and pools ----------------------------------------------------------------------------------------- */

enum provider_kind { PRIVATE_PROVIDER, SHARED_PROVIDER, MEMORYD_PROVIDER, PROVIDERS };
enum pool_kind { PROXY_POOL, DISJOINT_POOL, JEMALLOC_POOL, SCALABLE_POOL, POOLS };

static inline umf_memory_provider_handle_t make_provider(unsigned kind)
{
    umf_os_memory_provider_params_t os = umfOsMemoryProviderParamsDefault();
    umf_memoryd_memory_provider_params_t memoryd = umfMemorydMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider = NULL;

    os.visibility = kind == SHARED_PROVIDER ? UMF_MEM_MAP_SHARED : UMF_MEM_MAP_PRIVATE;
    if (kind == MEMORYD_PROVIDER)
        NEED(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &memoryd, &provider));
    else
        NEED(umfMemoryProviderCreate(umfOsMemoryProviderOps(), &os, &provider));
    NEED_TRUE(provider);
    return provider;
}

static inline umf_memory_pool_handle_t make_pool_with(unsigned kind, umf_memory_provider_handle_t provider,
                                                      umf_pool_create_flags_t flags)
{
    umf_disjoint_pool_params_t disjoint = umfDisjointPoolParamsDefault();
    umf_memory_pool_ops_t *ops[POOLS] = {umfProxyPoolOps(), umfDisjointPoolOps(), umfJemallocPoolOps(),
                                         umfScalablePoolOps()};
    umf_memory_pool_handle_t pool = NULL;

    disjoint.SlabMinSize = 64 * KIB;
    disjoint.MaxPoolableSize = 1 * MIB;
    disjoint.Capacity = 4;
    disjoint.MinBucketSize = 64;
    NEED(umfPoolCreate(ops[kind], provider, kind == DISJOINT_POOL ? &disjoint : NULL, flags, &pool));
    NEED_TRUE(pool);
    return pool;
}

/* It owns a provider of that kind. */
static inline umf_memory_pool_handle_t make_pool(unsigned kind, unsigned provider)
{
    return make_pool_with(kind, make_provider(provider), UMF_POOL_CREATE_FLAG_OWN_PROVIDER);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static inline void run_threads(unsigned n, void *(*body)(void *), void *argument)
{
    pthread_t *threads = calloc(n, sizeof(*threads));

    NEED_TRUE(threads);
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, body, argument))
            give_up("there are no %u threads to be had", n);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}
