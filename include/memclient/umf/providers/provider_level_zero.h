/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Level Zero provider: memory of oneAPI devices, by the Level Zero loader (libze_loader.so.1), which is loaded when
 * a provider is created. It allocates and frees. It does not purge, split or merge, and it has no handles for other
 * processes: NOT_SUPPORTED. No device was at hand to try it with; it is tested with a loader of our own.
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
 * What the driver refuses is OUT_OF_HOST_MEMORY, INVALID_ARGUMENT, INVALID_ALIGNMENT or NOT_SUPPORTED where it says so,
 * else MEMORY_PROVIDER_SPECIFIC: umfMemoryProviderGetLastNativeError() has its ze_result_t, and the name of that.
 */
UMF_API umf_memory_provider_ops_t *umfLevelZeroMemoryProviderOps(void);

#ifdef __cplusplus
}
#endif

#endif
