/* SPDX-License-Identifier: Apache-2.0 */
/* Built without OpenCL's headers: the library refuses to be loaded as a layer. */
#include <stddef.h>
#include <stdint.h>

#include <memclient/memclient.h>

#define CL_INVALID_OPERATION (-59)

MEMCLIENT_API int32_t clGetLayerInfo(uint32_t what, size_t room, void *value, size_t *size_ret);
MEMCLIENT_API int32_t clInitLayer(uint32_t n, const void *below, uint32_t *n_ret, const void **ret);

int32_t clGetLayerInfo(uint32_t what, size_t room, void *value, size_t *size_ret)
{
    return CL_INVALID_OPERATION;
}

int32_t clInitLayer(uint32_t n, const void *below, uint32_t *n_ret, const void **ret)
{
    return CL_INVALID_OPERATION;
}
