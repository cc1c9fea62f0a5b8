/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memoryd provider: buffers of the broker, with all that it can do: any of its pools, any kind of page, placement,
 * names. What upstream's providers cannot share, this one shares: with other users and containers, without rights to
 * trace the producer, and after its end. Each allocation is one buffer, committed, at the same address in every
 * process where that is free. This header is ours alone.
 */
#ifndef UMF_MEMORYD_MEMORY_PROVIDER_H
#define UMF_MEMORYD_MEMORY_PROVIDER_H 1

#include "../../umf_provider.h"
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
 *     INVALID_ARGUMENT   params->size is none, or a number is none of its enum
 */
UMF_API umf_memory_provider_ops_t *umfMemorydMemoryProviderOps(void);

/*
 * The buffer behind an address that came from this provider or the OS provider's shared memory, allocated or opened: a
 * reference more, for memclient_buffer_unref(). INVALID_ARGUMENT: an argument is NULL or nothing of theirs is there.
 */
UMF_API umf_result_t umfMemorydGetBuffer(const void *ptr, struct memclient_buffer **buffer);

/* Which answer is given where UMF's document and its 0.9 releases differ; memclient-umf(3) lists them. */
enum umf_memoryd_profile_t {
    UMF_MEMORYD_PROFILE_DOCUMENT = 0,
    UMF_MEMORYD_PROFILE_UPSTREAM = 1
};

/*
 * Chooses, for the process, from this call on; whatever MEMORYD_UMF_PROFILE (document, the default, or upstream) says.
 * INVALID_ARGUMENT: it is none.
 */
UMF_API umf_result_t umfMemorydSetProfile(enum umf_memoryd_profile_t profile);

#ifdef __cplusplus
}
#endif

#endif
