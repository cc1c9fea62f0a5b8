/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Level Zero provider: memory of oneAPI devices. The Level Zero loader (libze_loader.so.1) is loaded when a
 * provider is created. The provider allocates and frees, and makes handles for other processes. The broker, memoryd,
 * passes on the descriptor in Level Zero's own handle (memclient_adopt_fd() in memclient/memclient.h), so both
 * processes must reach the same broker, and neither needs a right over the other. The provider does not purge, split or
 * merge: NOT_SUPPORTED.
 *
 * No device was available to try it with. It is tested with a loader of our own, whose memory is the host's.
 */
#ifndef UMF_LEVEL_ZERO_PROVIDER_H
#define UMF_LEVEL_ZERO_PROVIDER_H 1

#include "../memory_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum umf_usm_memory_type_t {
    UMF_MEMORY_TYPE_UNKNOWN = 0,
    UMF_MEMORY_TYPE_HOST = 1,
    UMF_MEMORY_TYPE_DEVICE = 2,
    UMF_MEMORY_TYPE_SHARED = 3
} umf_usm_memory_type_t;

typedef struct level_zero_memory_provider_params_t {
    void *level_zero_context_handle; /* ze_context_handle_t */
    void *level_zero_device_handle;  /* ze_device_handle_t; NULL for UMF_MEMORY_TYPE_HOST */
    umf_usm_memory_type_t memory_type;
} level_zero_memory_provider_params_t;

/*
 * A static table, never NULL. Creating a provider fails with
 *     INVALID_ARGUMENT   params or the context is NULL, the type is UNKNOWN, the device is NULL for another type than
 *                        HOST, or not NULL for HOST
 *     NOT_SUPPORTED      there is no loader or no driver
 *
 *
 * If the driver refuses, the result is OUT_OF_HOST_MEMORY, INVALID_ARGUMENT, INVALID_ALIGNMENT or NOT_SUPPORTED if it
 * says so, else MEMORY_PROVIDER_SPECIFIC. umfMemoryProviderGetLastNativeError() then has its ze_result_t and the name
 * of that; or, if the broker refused, UMF_MEMORYD_RESULTS_START_FROM + errno and the broker's sentence.
 *
 * A handle for other processes is of a whole allocation, at whose start ptr must be (INVALID_ARGUMENT). It can be
 * opened until it is put as often as it was got, the memory is freed, or the provider or its process ends; and after
 * that as long as anybody has it open. Restarts of the broker do not matter. Opening a handle that is damaged, forged
 * or no longer valid is INVALID_ARGUMENT. Memory that the driver cannot share is NOT_SUPPORTED.
 */
UMF_API umf_memory_provider_ops_t *umfLevelZeroMemoryProviderOps(void);

#ifdef __cplusplus
}
#endif

#endif
