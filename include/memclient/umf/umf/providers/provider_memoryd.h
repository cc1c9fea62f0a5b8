/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memoryd provider: buffers of the broker, with all that it can do: any of its pools, any kind of page, placement,
 * names. What upstream's providers cannot share, this one shares: with other users and containers, without rights to
 * trace the producer, and after its end. Each allocation is one buffer, committed, at the same address in every
 * process where that is free. This header is ours alone.
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

/* As the provider for other releases of UMF has them, member by member. */
typedef struct memclient_umf_params umf_memoryd_memory_provider_params_t;

static inline umf_memoryd_memory_provider_params_t umfMemorydMemoryProviderParamsDefault(void)
{
    umf_memoryd_memory_provider_params_t params = MEMCLIENT_UMF_PARAMS_INIT;

    return params;
}

/* Numbers of umfMemoryProviderGetLastNativeError() are UMF_MEMORYD_RESULTS_START_FROM + errno; the text is
 * memclient_error()'s. */
#define UMF_MEMORYD_RESULTS_START_FROM 3000

/*
 * A static table. params NULL = the default ones. Creating a provider makes no call to the broker, and fails with
 *     INVALID_ARGUMENT   params->size is none, a number is none of its enum, or a later version's field is not zero
 */
UMF_API umf_memory_provider_ops_t *umfMemorydMemoryProviderOps(void);

/*
 * The buffer behind an address that came from this provider or the OS provider's shared memory, allocated or opened: a
 * reference more, for memclient_buffer_unref(). INVALID_ARGUMENT: an argument is NULL or nothing of theirs is there.
 */
UMF_API umf_result_t umfMemorydGetBuffer(const void *ptr, struct memclient_buffer **buffer);

struct memclient_token;

/*
 * Handles of memory that came by another way: of a token of <memclient/memclient.h>, or of a facade whose handles are
 * tokens. They mean `length` bytes at `offset` of its buffer, and are opened as those of memory that this library has
 * allocated: by umfMemoryProviderOpenIPCHandle() of a provider of this kind, whose handle is written to
 * providerIpcData (umfMemoryProviderGetIPCHandleSize() bytes), or by umfOpenIPCHandle() of a pool over one, whose
 * handle is *ipcHandle, *size bytes, for umfPutIPCHandle(). A provider takes an offset in multiples of the buffer's
 * pages, a pool any. The token must last until the handle is opened; what it is worth shows then. No call is made.
 *     INVALID_ARGUMENT       a pointer is NULL, length is 0, or offset + length overflows
 *     OUT_OF_HOST_MEMORY
 */
UMF_API umf_result_t umfMemorydProviderHandle(const struct memclient_token *token, size_t offset, size_t length,
                                              void *providerIpcData);
UMF_API umf_result_t umfMemorydPoolHandle(const struct memclient_token *token, size_t offset, size_t length,
                                          umf_ipc_handle_t *ipcHandle, size_t *size);

/* Which answer is given where UMF's document and its 0.9 releases differ; memclient-umf(3) lists them. */
enum umf_memoryd_profile_t {
    UMF_MEMORYD_PROFILE_DOCUMENT = 0,
    UMF_MEMORYD_PROFILE_UPSTREAM = 1
};

/*
 * Chooses, for the process and all providers, from this call on; whatever MEMORYD_UMF_PROFILE (document or upstream)
 * says. Where neither does, the OS provider has upstream's answers and the memoryd provider the document's.
 * INVALID_ARGUMENT: it is none.
 */
UMF_API umf_result_t umfMemorydSetProfile(enum umf_memoryd_profile_t profile);

#ifdef __cplusplus
}
#endif

#endif
