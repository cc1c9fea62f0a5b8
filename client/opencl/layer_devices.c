/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a context as the rules need them, and whether their driver works with memory that is not its own. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "opencl/layer.h"

/* Since that release PoCL works only with pointers that it has given out. */
#define POCL_LOOKS_UP_SINCE 6

static const cl_bool host_is_little = __BYTE_ORDER == __LITTLE_ENDIAN ? CL_TRUE : CL_FALSE;

/* Reads a number of a device; 0 if the driver does not know it, being of an older version of OpenCL. */
static void device_get_number(cl_device_id device, cl_device_info what, void *number, size_t size)
{
    if (layer_below->clGetDeviceInfo(device, what, size, number, NULL) != CL_SUCCESS)
        memset(number, 0, size);
}

/* Reads a text of a device, which the caller frees; NULL if there is none. */
static char *device_text(cl_device_id device, cl_device_info what)
{
    size_t size = 0;
    char *text;

    if (layer_below->clGetDeviceInfo(device, what, 0, NULL, &size) != CL_SUCCESS || !size)
        return NULL;
    text = calloc(1, size + 1);
    if (text && layer_below->clGetDeviceInfo(device, what, size, text, NULL) == CL_SUCCESS)
        return text;
    free(text);
    return NULL;
}

/* Only a device of an embedded profile may lack 64-bit integers; then its largest type is int16. */
static uint32_t device_largest_type(cl_device_id device)
{
    _cleanup_free_ char *profile = device_text(device, CL_DEVICE_PROFILE);
    _cleanup_free_ char *extensions = NULL;

    if (!profile || strcmp(profile, "EMBEDDED_PROFILE"))
        return 16 * sizeof(cl_long);
    extensions = device_text(device, CL_DEVICE_EXTENSIONS);
    return 16 * (extensions && strstr(extensions, "cles_khr_int64") ? sizeof(cl_long) : sizeof(cl_int));
}

static void device_describe(cl_device_id device, struct memclient_svm_device *ret)
{
    cl_device_svm_capabilities capabilities;
    cl_ulong max_alloc_size;
    cl_bool is_little;

    device_get_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &max_alloc_size, sizeof(max_alloc_size));
    device_get_number(device, CL_DEVICE_SVM_CAPABILITIES, &capabilities, sizeof(capabilities));
    device_get_number(device, CL_DEVICE_ENDIAN_LITTLE, &is_little, sizeof(is_little));
    ret->max_alloc_size = max_alloc_size;
    ret->capabilities = capabilities;
    ret->largest_type = device_largest_type(device);
    ret->other_endian = is_little != host_is_little;
}

static bool device_is_processor(cl_device_id device)
{
    cl_device_type type;

    device_get_number(device, CL_DEVICE_TYPE, &type, sizeof(type));
    return type & CL_DEVICE_TYPE_CPU;
}

/* The release of PoCL, from "OpenCL 3.0 PoCL 3.1 ..."; 0: the driver is another. */
static unsigned long device_pocl_release(cl_device_id device)
{
    cl_platform_id platform = NULL;
    char version[256] = "";
    const char *pocl;

    if (layer_below->clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL) != CL_SUCCESS ||
        layer_below->clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(version) - 1, version, NULL) != CL_SUCCESS)
        return 0;
    pocl = strcasestr(version, "pocl ");
    return pocl ? strtoul(pocl + strlen("pocl "), NULL, 10) : 0;
}

/* Either each device says so, or it is known: of PoCL's processors, not of its other devices. */
static bool layer_takes_our_memory(const cl_device_id *ids, const struct layer_devices *devices)
{
    unsigned long pocl = device_pocl_release(ids[0]);

    if (pocl >= POCL_LOOKS_UP_SINCE)
        return false;
    for (size_t i = 0; i < devices->n; i++)
        if (!(devices->of[i].capabilities & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM) && !(pocl && device_is_processor(ids[i])))
            return false;
    return true;
}

cl_int layer_devices_get(cl_context context, struct layer_devices *devices)
{
    _cleanup_free_ cl_device_id *ids = NULL;
    size_t size = 0, n;

    if (!context || layer_below->clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &size) != CL_SUCCESS ||
        size < sizeof(*ids))
        return CL_INVALID_CONTEXT;
    n = size / sizeof(*ids);
    ids = calloc(n, sizeof(*ids));
    if (!ids)
        return CL_OUT_OF_HOST_MEMORY;
    if (layer_below->clGetContextInfo(context, CL_CONTEXT_DEVICES, size, ids, NULL) != CL_SUCCESS)
        return CL_INVALID_CONTEXT;
    devices->of = calloc(n, sizeof(*devices->of));
    if (!devices->of)
        return CL_OUT_OF_HOST_MEMORY;
    devices->n = n;
    for (size_t i = 0; i < n; i++)
        device_describe(ids[i], &devices->of[i]);
    devices->takes_our_memory = layer_takes_our_memory(ids, devices);
    return CL_SUCCESS;
}

void layer_devices_put(struct layer_devices *devices)
{
    free(devices->of);
    *devices = (struct layer_devices){0};
}
