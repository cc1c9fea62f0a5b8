/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that replace the driver's. The driver must not see our pointers where it would look them up: when they
 * are freed, and when it is asked what a buffer consists of.
 *
 * As in drivers, each allocation has a reference to its context.
 */
#include <errno.h>
#include <stdlib.h>

#include "opencl/error.h"
#include "opencl/layer.h"
#include "opencl/svm.h"
#include "opencl/table.h"

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* 0, or a negative errno with its sentence. The driver's own allocation may be NULL without one. */
static int layer_allocate(cl_context context, const struct layer_devices *devices, cl_svm_mem_flags flags, size_t size,
                          cl_uint alignment, void **ptr)
{
    int r = memclient_svm_check(devices->n, devices->of, flags, size, alignment, NULL);

    if (r)
        return r;
    if (!layer_heap())
        return svm_fail(-ENOMEM, "no memory for the records of a heap");
    if (!layer_has_broker()) {
        *ptr = layer_below->clSVMAlloc(context, flags, size, alignment);
        return 0;
    }
    if (!alignment)
        alignment = svm_largest_type(devices->of, devices->n);
    r = svm_alloc(layer_heap(), context, flags, size, alignment, ptr);
    if (!r)
        (void)layer_below->clRetainContext(context);
    return r;
}

static void *CL_API_CALL svm_alloc_call(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct layer_devices devices = {0};
    void *ptr = NULL;
    int r = 0;

    if (layer_devices_get(context, &devices) != CL_SUCCESS) {
        r = svm_fail(-EINVAL, "the context is invalid, or the driver does not list its devices");
    } else if (devices.takes_our_memory) {
        r = layer_allocate(context, &devices, flags, size, alignment, &ptr);
    } else {
        layer_say(&said, "this driver takes no memory but its own, so that it allocates shared virtual memory itself");
        ptr = layer_below->clSVMAlloc(context, flags, size, alignment);
    }
    if (r)
        layer_explain("clSVMAlloc");
    layer_devices_put(&devices);
    return ptr;
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

static bool layer_is_ours(const void *ptr)
{
    return table_left(ptr) > 0;
}

/* Ignores a pointer of ours that is no allocation of this context, as drivers ignore what they do not know. */
static void CL_API_CALL svm_free_call(cl_context context, void *ptr)
{
    if (!ptr)
        return;
    if (!layer_is_ours(ptr))
        layer_below->clSVMFree(context, ptr);
    else if (!svm_free(layer_heap(), context, ptr))
        (void)layer_below->clReleaseContext(context);
}

/* The driver calls this when the command runs, instead of freeing itself. */
static void CL_CALLBACK layer_free_them(cl_command_queue queue, cl_uint n, void *ptrs[], void *data)
{
    for (cl_uint i = 0; i < n; i++)
        svm_free_call(data, ptrs[i]);
}

static bool layer_has_ours(cl_uint n, void *const ptrs[])
{
    for (cl_uint i = 0; i < n; i++)
        if (layer_is_ours(ptrs[i]))
            return true;
    return false;
}

static cl_int CL_API_CALL enqueue_svm_free_call(cl_command_queue queue, cl_uint n, void *ptrs[],
                                                void(CL_CALLBACK *pfn)(cl_command_queue, cl_uint, void **, void *),
                                                void *data, cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    cl_context context = NULL;
    cl_int r;

    /* a program that gives a function frees in that, by clSVMFree() */
    if (pfn || !ptrs || !layer_has_ours(n, ptrs))
        return layer_below->clEnqueueSVMFree(queue, n, ptrs, pfn, data, n_waits, waits, event);
    r = layer_below->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
    if (r != CL_SUCCESS)
        return r;
    /* the queue holds its context until the command has run */
    return layer_below->clEnqueueSVMFree(queue, n, ptrs, layer_free_them, context, n_waits, waits, event);
}

/* ---- buffers over pointers --------------------------------------------------------------------------------------- */

/* Refuses a buffer that is larger than what the pointer's allocation has from there on. */
static bool layer_refuses_buffer(cl_mem_flags flags, size_t size, const void *ptr, cl_int *error)
{
    size_t left = flags & CL_MEM_USE_HOST_PTR ? table_left(ptr) : 0;

    if (!left || size <= left)
        return false;
    if (error)
        *error = CL_INVALID_BUFFER_SIZE;
    return true;
}

static cl_mem CL_API_CALL create_buffer_call(cl_context context, cl_mem_flags flags, size_t size, void *ptr,
                                             cl_int *error)
{
    return layer_refuses_buffer(flags, size, ptr, error)
               ? NULL
               : layer_below->clCreateBuffer(context, flags, size, ptr, error);
}

static cl_mem CL_API_CALL create_buffer_with_properties_call(cl_context context, const cl_mem_properties *properties,
                                                             cl_mem_flags flags, size_t size, void *ptr, cl_int *error)
{
    return layer_refuses_buffer(flags, size, ptr, error)
               ? NULL
               : layer_below->clCreateBufferWithProperties(context, properties, flags, size, ptr, error);
}

/* Is it a buffer with such a pointer, or a part or an image of one? */
static bool layer_is_over_ours(cl_mem object)
{
    while (object) {
        cl_mem_flags flags = 0;
        cl_mem parent = NULL;
        void *ptr = NULL;

        if (layer_below->clGetMemObjectInfo(object, CL_MEM_FLAGS, sizeof(flags), &flags, NULL) == CL_SUCCESS &&
            flags & CL_MEM_USE_HOST_PTR &&
            layer_below->clGetMemObjectInfo(object, CL_MEM_HOST_PTR, sizeof(ptr), &ptr, NULL) == CL_SUCCESS &&
            layer_is_ours(ptr))
            return true;
        if (layer_below->clGetMemObjectInfo(object, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, NULL) !=
            CL_SUCCESS)
            return false;
        object = parent;
    }
    return false;
}

static cl_int CL_API_CALL get_mem_object_info_call(cl_mem object, cl_mem_info what, size_t value_size, void *value,
                                                   size_t *size_ret)
{
    cl_int r = layer_below->clGetMemObjectInfo(object, what, value_size, value, size_ret);

    if (r == CL_SUCCESS && what == CL_MEM_USES_SVM_POINTER && value && layer_is_over_ours(object))
        *(cl_bool *)value = CL_TRUE;
    return r;
}

/* ---- extensions -------------------------------------------------------------------------------------------------- */

static void *CL_API_CALL get_extension_call(cl_platform_id platform, const char *name)
{
    void *ours = name ? layer_extension(name) : NULL;

    return ours ? ours : layer_below->clGetExtensionFunctionAddressForPlatform(platform, name);
}

void layer_fill(struct _cl_icd_dispatch *table, cl_uint n)
{
    table->clSVMAlloc = svm_alloc_call;
    table->clSVMFree = svm_free_call;
    table->clEnqueueSVMFree = enqueue_svm_free_call;
    table->clCreateBuffer = create_buffer_call;
    table->clGetMemObjectInfo = get_mem_object_info_call;
    table->clGetExtensionFunctionAddressForPlatform = get_extension_call;
    if (n > offsetof(struct _cl_icd_dispatch, clCreateBufferWithProperties) / sizeof(void *) &&
        layer_below->clCreateBufferWithProperties)
        table->clCreateBufferWithProperties = create_buffer_with_properties_call;
}
