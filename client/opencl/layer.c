/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points for a loader of OpenCL layers. It calls them in the program's first call of OpenCL, under a lock, so
 * they call nothing of OpenCL and wait for nothing.
 */
#include "opencl/layer.h"

#include <string.h>

#include <CL/cl_layer.h>

#include <memclient/memclient.h>

/* The layer needs the functions up to there. Loaders that are older may lack others. */
#define ENTRIES_NEEDED (offsetof(struct _cl_icd_dispatch, clEnqueueSVMFree) / sizeof(void *) + 1)
#define ENTRIES_KNOWN  (sizeof(struct _cl_icd_dispatch) / sizeof(void *))

const struct _cl_icd_dispatch *layer_below;

static struct _cl_icd_dispatch table;

static cl_int layer_put_info(const void *value, size_t size, size_t to_size, void *to, size_t *size_ret)
{
    if (to && to_size < size)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, value, size);
    if (size_ret)
        *size_ret = size;
    return CL_SUCCESS;
}

MEMCLIENT_API cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t value_size, void *value, size_t *size_ret)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    static const char name[] = "memoryd: shared virtual memory of a broker";

    switch (what) {
    case CL_LAYER_API_VERSION:
        return layer_put_info(&version, sizeof(version), value_size, value, size_ret);
    case CL_LAYER_NAME:
        return layer_put_info(name, sizeof(name), value_size, value, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

MEMCLIENT_API cl_int CL_API_CALL clInitLayer(cl_uint n, const struct _cl_icd_dispatch *below, cl_uint *n_ret,
                                             const struct _cl_icd_dispatch **ret)
{
    if (!below || !n_ret || !ret || n < ENTRIES_NEEDED)
        return CL_INVALID_VALUE;
    /* the layer is listed twice: it is below itself, and would call itself forever */
    if (layer_below)
        return CL_INVALID_OPERATION;
    layer_below = below;
    layer_fill(&table, n);
    *n_ret = n < ENTRIES_KNOWN ? n : (cl_uint)ENTRIES_KNOWN;
    *ret = &table;
    return CL_SUCCESS;
}
