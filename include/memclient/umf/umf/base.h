/* SPDX-License-Identifier: Apache-2.0 */
/* Versions and results, which all other headers of UMF need. */
#ifndef UMF_BASE_H
#define UMF_BASE_H 1

#include <stddef.h>
#include <stdint.h>

#ifndef UMF_API
#define UMF_API __attribute__((__visibility__("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A version as one number, and its parts. */
/* clang-format off */
#define UMF_MAKE_VERSION(_major, _minor) (((_major) << 16) | ((_minor) & 0x0000ffff))
#define UMF_MAJOR_VERSION(_ver) ((_ver) >> 16)
#define UMF_MINOR_VERSION(_ver) ((_ver) & 0x0000ffff)
/* clang-format on */

/* The version of these headers, 0.9, for the `version` of tables of operations. */
#define UMF_VERSION_CURRENT UMF_MAKE_VERSION(0, 9)

/* What functions return. */
typedef enum umf_result_t {
    UMF_RESULT_SUCCESS = 0,
    UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY = 1,
    UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC = 2, /* see umfMemoryProviderGetLastNativeError() */
    UMF_RESULT_ERROR_INVALID_ARGUMENT = 3,
    UMF_RESULT_ERROR_INVALID_ALIGNMENT = 4,
    UMF_RESULT_ERROR_NOT_SUPPORTED = 5, /* the provider or pool has no such operation */
    UMF_RESULT_ERROR_UNKNOWN = 0x7ffffffe
} umf_result_t;

#ifdef __cplusplus
}
#endif

#endif
