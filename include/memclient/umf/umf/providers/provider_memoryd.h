/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memoryd provider: buffers of the broker with all their options: any pool, any kind of page, placement, names. It
 * can share what upstream's providers cannot: with other users and containers, without the right to trace the producer,
 * and after the producer's end. Each allocation is one buffer, committed, at the same address in every process where
 * that is free. Upstream does not have this header.
 */
#ifndef UMF_MEMORYD_MEMORY_PROVIDER_H
#define UMF_MEMORYD_MEMORY_PROVIDER_H 1

#include "../../../umf_provider.h"
#include "../ipc.h"
#include "../memory_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

struct memclient_buffer;

/* The parameters are the same as in <memclient/umf_provider.h>. */
typedef struct memclient_umf_params umf_memoryd_memory_provider_params_t;

static inline umf_memoryd_memory_provider_params_t umfMemorydMemoryProviderParamsDefault(void)
{
    umf_memoryd_memory_provider_params_t params = MEMCLIENT_UMF_PARAMS_INIT;

    return params;
}

/* umfMemoryProviderGetLastNativeError() has UMF_MEMORYD_RESULTS_START_FROM + errno, with memclient_error()'s text. */
#define UMF_MEMORYD_RESULTS_START_FROM 3000

/*
 * A static table. params NULL: the defaults. Creating a provider makes no call to the broker, and fails with
 *     INVALID_ARGUMENT   params->size is invalid, a number is not in its enum, or a later version's field is not zero
 */
UMF_API umf_memory_provider_ops_t *umfMemorydMemoryProviderOps(void);

/*
 * Returns a new reference to the buffer behind an address of this provider or of the OS provider's shared memory,
 * allocated or opened. Drop it with memclient_buffer_unref(). INVALID_ARGUMENT: an argument is NULL, or there is no
 * such memory.
 */
UMF_API umf_result_t umfMemorydGetBuffer(const void *ptr, struct memclient_buffer **buffer);

struct memclient_token;

/*
 * Make handles of a token from <memclient/memclient.h>, or from a facade whose handles are tokens. They stand for
 * `length` bytes at `offset` of its buffer, and are opened like handles of memory that this library has allocated: with
 * umfMemoryProviderOpenIPCHandle() of a provider of this kind, whose handle is written to providerIpcData
 * (umfMemoryProviderGetIPCHandleSize() bytes), or with umfOpenIPCHandle() of a pool over one, whose handle is
 * *ipcHandle, *size bytes, for umfPutIPCHandle(). A provider needs an offset in multiples of the buffer's pages, a pool
 * takes any. The token must last until the handle is opened, and is not checked before. No call is made.
 *     INVALID_ARGUMENT       a pointer is NULL, length is 0, or offset + length overflows
 *     OUT_OF_HOST_MEMORY
 */
UMF_API umf_result_t umfMemorydProviderHandle(const struct memclient_token *token, size_t offset, size_t length,
                                              void *providerIpcData);
UMF_API umf_result_t umfMemorydPoolHandle(const struct memclient_token *token, size_t offset, size_t length,
                                          umf_ipc_handle_t *ipcHandle, size_t *size);

/* The results where UMF's document and its 0.9 releases differ; memclient-umf(3) lists them. */
enum umf_memoryd_profile_t { UMF_MEMORYD_PROFILE_DOCUMENT = 0, UMF_MEMORYD_PROFILE_UPSTREAM = 1 };

/*
 * Chooses for all providers of the process, from this call on, whatever MEMORYD_UMF_PROFILE (document or upstream)
 * says. Without either, the OS provider follows upstream, and the memoryd provider the document. INVALID_ARGUMENT:
 * there is no such profile.
 */
UMF_API umf_result_t umfMemorydSetProfile(enum umf_memoryd_profile_t profile);

#ifdef __cplusplus
}
#endif

#endif
