/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libmemclient-hsa offers beyond HSA and AMD's extensions: the choice of a profile, and access to HSA's memory
 * through the native API of <memclient/memclient.h>. No other HSA runtime has these functions.
 */
#ifndef MEMCLIENT_HSA_EXT_MEMORYD_H
#define MEMCLIENT_HSA_EXT_MEMORYD_H

#include "hsa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How functions behave where AMD's documents and AMD's runtime contradict each other. */
enum memclient_hsa_profile {
    MEMCLIENT_HSA_PROFILE_DOCUMENT = 0, /* as in the documents */
    MEMCLIENT_HSA_PROFILE_ROCR = 1      /* as in current releases of ROCr */
};

/*
 * Chooses the profile of the process from this call on, whatever MEMORYD_HSA_PROFILE (document, the default, or rocr)
 * says. It decides:
 *
 *     hsa_amd_vmem_set_access()   document: the list replaces the former one
 *                                 rocr: agents that are not in the list keep what they have
 *     hsa_amd_vmem_get_access()   of an agent that has no entry: document: INVALID_ALLOCATION; rocr: SUCCESS and NONE
 *
 * It works before hsa_init() as well, and does not call the broker.
 *     INVALID_ARGUMENT   it is no profile
 */
HSA_API hsa_status_t memclient_hsa_set_profile(enum memclient_hsa_profile profile);

/* In global_flags of hsa_amd_pointer_info(), for reserved addresses: only this process keeps them free. */
#define MEMCLIENT_HSA_POINTER_PROCESS_PRIVATE 0x10000u

struct memclient_buffer;

/*
 * Returns the memory that contains ptr as a handle of the native API, with a reference, which memclient_buffer_unref()
 * gives back. The memory was allocated, attached, or mapped in reserved addresses; memclient_address_query() returns
 * the offset of ptr in it. The handle belongs to the runtime's context: it ends with the last hsa_shut_down(), as
 * handles do with memclient_context_close(). It may be shared, named and published, but not unmapped while the runtime
 * uses it.
 *     INVALID_ARGUMENT     ptr or buf is NULL
 *     INVALID_ALLOCATION   no memory of memoryd is there
 */
HSA_API hsa_status_t memclient_hsa_buffer(const void *ptr, struct memclient_buffer **buf);

#ifdef __cplusplus
}
#endif

#endif
