/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libmemclient-hsa has beyond HSA and AMD's extensions: the choice of a profile, and the way from HSA's memory to
 * the native API of <memclient/memclient.h>. No other HSA runtime has these.
 */
#ifndef MEMCLIENT_HSA_EXT_MEMORYD_H
#define MEMCLIENT_HSA_EXT_MEMORYD_H

#include "hsa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which answer is given where AMD's documents and AMD's runtime differ, and no answer could be both. */
enum memclient_hsa_profile {
    MEMCLIENT_HSA_PROFILE_DOCUMENT = 0, /* the documents' */
    MEMCLIENT_HSA_PROFILE_ROCR = 1      /* that of ROCr's releases of today */
};

/*
 * Chooses the profile, for the process, from this call on; whatever MEMORYD_HSA_PROFILE (document, the default, or
 * rocr) says. It decides
 *
 *     hsa_amd_vmem_set_access()   document: the list replaces the former one
 *                                 rocr: agents that are not in the list keep what they have
 *     hsa_amd_vmem_get_access()   of an agent that has no entry: document: INVALID_ALLOCATION; rocr: SUCCESS and NONE
 *
 * Works before hsa_init() as well, and makes no call.
 *     INVALID_ARGUMENT   it is no profile
 */
HSA_API hsa_status_t memclient_hsa_set_profile(enum memclient_hsa_profile profile);

/* In global_flags of hsa_amd_pointer_info(), of reserved addresses: they are kept free in this process only. */
#define MEMCLIENT_HSA_POINTER_PROCESS_PRIVATE 0x10000u

struct memclient_buffer;

/*
 * The memory around ptr as a handle of the native API, counted up: it is given back with memclient_buffer_unref().
 * Takes what was allocated, attached, or mapped in reserved addresses; where ptr is in the buffer,
 * memclient_query_address() tells. The handle belongs to the runtime's context: it ends with the last hsa_shut_down(),
 * as handles do with memclient_close(). Share it, name it or publish it as you like; do not unmap it under the runtime.
 *     INVALID_ARGUMENT     ptr or buf is NULL
 *     INVALID_ALLOCATION   no memory of memoryd is there
 */
HSA_API hsa_status_t memclient_hsa_buffer(const void *ptr, struct memclient_buffer **buf);

#ifdef __cplusplus
}
#endif

#endif
