/* SPDX-License-Identifier: Apache-2.0 */
/* See fake.h. */
#include "tests/unit/opencl/fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

struct _cl_context {
    size_t n;
    struct fake_device devices[4];
    int refs;
};

struct _cl_command_queue {
    cl_context context;
};

struct _cl_mem {
    cl_mem_flags flags;
    void *ptr;
    cl_mem parent;
};

const struct fake_device fake_full = {
    .max_alloc = (cl_ulong)2 << 30,
    .capabilities = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS,
    .profile = "FULL_PROFILE",
    .extensions = "",
    .little_endian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
    .type = CL_DEVICE_TYPE_CPU,
};

const char *fake_version = "OpenCL 3.0 PoCL 3.1+test";
struct fake_seen fake_seen;
struct _cl_icd_dispatch cl;
cl_int fake_failure = CL_SUCCESS;

static char driver_memory[100]; /* what it allocates itself */
static struct {
    cl_command_queue queue;
    cl_uint n;
    void *ptrs[16];
    void(CL_CALLBACK *pfn)(cl_command_queue, cl_uint, void **, void *);
    void *data;
} enqueued;

/* ---- questions --------------------------------------------------------------------------------------------------- */

static cl_int answer(const void *value, size_t size, size_t room, void *to, size_t *size_ret)
{
    if (to && room < size)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, value, size);
    if (size_ret)
        *size_ret = size;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL get_platform_info(cl_platform_id platform, cl_platform_info what, size_t room, void *to,
                                            size_t *size_ret)
{
    (void)platform;
    assert_int_equal(what, CL_PLATFORM_VERSION);
    return answer(fake_version, strlen(fake_version) + 1, room, to, size_ret);
}

static cl_int CL_API_CALL get_context_info(cl_context context, cl_context_info what, size_t room, void *to,
                                           size_t *size_ret)
{
    cl_device_id ids[4];

    /* as a driver that knows its own by a mark in them */
    if (!context || !context->n || context->refs <= 0)
        return CL_INVALID_CONTEXT;
    assert_int_equal(what, CL_CONTEXT_DEVICES);
    for (size_t i = 0; i < context->n; i++)
        ids[i] = (cl_device_id)(void *)&context->devices[i];
    return answer(ids, context->n * sizeof(*ids), room, to, size_ret);
}

static cl_int CL_API_CALL get_device_info(cl_device_id id, cl_device_info what, size_t room, void *to, size_t *size_ret)
{
    const struct fake_device *device = (const struct fake_device *)(void *)id;
    cl_platform_id platform = NULL;

    switch (what) {
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return answer(&device->max_alloc, sizeof(device->max_alloc), room, to, size_ret);
    case CL_DEVICE_SVM_CAPABILITIES:
        return device->capabilities ? answer(&device->capabilities, sizeof(device->capabilities), room, to, size_ret)
                                    : CL_INVALID_VALUE;
    case CL_DEVICE_PROFILE:
        return answer(device->profile, strlen(device->profile) + 1, room, to, size_ret);
    case CL_DEVICE_EXTENSIONS:
        return answer(device->extensions, strlen(device->extensions) + 1, room, to, size_ret);
    case CL_DEVICE_ENDIAN_LITTLE:
        return answer(&device->little_endian, sizeof(device->little_endian), room, to, size_ret);
    case CL_DEVICE_TYPE:
        return answer(&device->type, sizeof(device->type), room, to, size_ret);
    case CL_DEVICE_PLATFORM:
        return answer(&platform, sizeof(platform), room, to, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL get_queue_info(cl_command_queue queue, cl_command_queue_info what, size_t room, void *to,
                                         size_t *size_ret)
{
    if (!queue)
        return CL_INVALID_COMMAND_QUEUE;
    assert_int_equal(what, CL_QUEUE_CONTEXT);
    return answer(&queue->context, sizeof(queue->context), room, to, size_ret);
}

static cl_int CL_API_CALL retain(cl_context context)
{
    __atomic_add_fetch(&context->refs, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&fake_seen.retains, 1, __ATOMIC_RELAXED);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release(cl_context context)
{
    __atomic_sub_fetch(&context->refs, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&fake_seen.releases, 1, __ATOMIC_RELAXED);
    return CL_SUCCESS;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void *CL_API_CALL driver_alloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
    (void)context;
    (void)flags;
    (void)alignment;
    fake_seen.allocs++;
    return size <= sizeof(driver_memory) ? driver_memory : NULL;
}

static void CL_API_CALL driver_free(cl_context context, void *ptr)
{
    (void)context;
    (void)ptr;
    fake_seen.frees++;
}

static cl_int CL_API_CALL enqueue_free(cl_command_queue queue, cl_uint n, void *ptrs[],
                                       void(CL_CALLBACK *pfn)(cl_command_queue, cl_uint, void **, void *), void *data,
                                       cl_uint n_waits, const cl_event *waits, cl_event *event)
{
    cl_int failure = fake_failure;

    (void)n_waits;
    (void)waits;
    (void)event;
    fake_failure = CL_SUCCESS;
    if (failure != CL_SUCCESS)
        return failure;
    if (!n || !ptrs || n > 16)
        return CL_INVALID_VALUE;
    fake_seen.enqueued_frees++;
    enqueued.queue = queue;
    enqueued.n = n;
    memcpy(enqueued.ptrs, ptrs, n * sizeof(*ptrs));
    enqueued.pfn = pfn;
    enqueued.data = data;
    return CL_SUCCESS;
}

static void *run_enqueued(void *unused)
{
    (void)unused;
    if (enqueued.pfn) {
        fake_seen.callbacks++;
        enqueued.pfn(enqueued.queue, enqueued.n, enqueued.ptrs, enqueued.data);
    } else {
        for (cl_uint i = 0; i < enqueued.n; i++)
            driver_free(enqueued.queue->context, enqueued.ptrs[i]);
    }
    return NULL;
}

void fake_execute(void)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run_enqueued, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    memset(&enqueued, 0, sizeof(enqueued));
}

static cl_mem object_new(cl_mem_flags flags, void *ptr, cl_mem parent)
{
    cl_mem object = calloc(1, sizeof(*object));

    assert_non_null(object);
    object->flags = flags;
    object->ptr = ptr;
    object->parent = parent;
    fake_seen.buffers++;
    return object;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t size, void *ptr, cl_int *error)
{
    (void)context;
    (void)size;
    if (error)
        *error = CL_SUCCESS;
    return object_new(flags, ptr, NULL);
}

static cl_mem CL_API_CALL create_buffer_with_properties(cl_context context, const cl_mem_properties *properties,
                                                        cl_mem_flags flags, size_t size, void *ptr, cl_int *error)
{
    (void)properties;
    return create_buffer(context, flags, size, ptr, error);
}

/* A part, or an image: they know what they are of, and have no pointer here. */
static cl_mem CL_API_CALL create_sub_buffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                            const void *region, cl_int *error)
{
    (void)type;
    (void)region;
    if (error)
        *error = CL_SUCCESS;
    return object_new(flags, NULL, buffer);
}

static cl_int CL_API_CALL get_mem_info(cl_mem object, cl_mem_info what, size_t room, void *to, size_t *size_ret)
{
    const cl_bool no = CL_FALSE;

    if (!object)
        return CL_INVALID_MEM_OBJECT;
    switch (what) {
    case CL_MEM_FLAGS:
        return answer(&object->flags, sizeof(object->flags), room, to, size_ret);
    case CL_MEM_HOST_PTR:
        return answer(&object->ptr, sizeof(object->ptr), room, to, size_ret);
    case CL_MEM_ASSOCIATED_MEMOBJECT:
        return answer(&object->parent, sizeof(object->parent), room, to, size_ret);
    case CL_MEM_USES_SVM_POINTER:
        return answer(&no, sizeof(no), room, to, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL release_mem(cl_mem object)
{
    free(object);
    return CL_SUCCESS;
}

static void *CL_API_CALL get_extension(cl_platform_id platform, const char *name)
{
    (void)platform;
    return strcmp(name, "clDriverHasThis") ? NULL : driver_memory;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

void fake_start(void)
{
    static struct _cl_icd_dispatch driver;
    const struct _cl_icd_dispatch *layer;
    void *const *from, **to = (void **)(void *)&cl;
    cl_uint n = sizeof(driver) / sizeof(void *), got = 0;

    driver.clGetPlatformInfo = get_platform_info;
    driver.clGetContextInfo = get_context_info;
    driver.clGetDeviceInfo = get_device_info;
    driver.clGetCommandQueueInfo = get_queue_info;
    driver.clRetainContext = retain;
    driver.clReleaseContext = release;
    driver.clSVMAlloc = driver_alloc;
    driver.clSVMFree = driver_free;
    driver.clEnqueueSVMFree = enqueue_free;
    driver.clCreateBuffer = create_buffer;
    driver.clCreateBufferWithProperties = create_buffer_with_properties;
    driver.clCreateSubBuffer = create_sub_buffer;
    driver.clGetMemObjectInfo = get_mem_info;
    driver.clReleaseMemObject = release_mem;
    driver.clGetExtensionFunctionAddressForPlatform = get_extension;
    assert_int_equal(clInitLayer(n, &driver, &got, &layer), CL_SUCCESS);

    /* as loaders do: what the layer has not is the driver's */
    cl = driver;
    from = (void *const *)(const void *)layer;
    for (cl_uint i = 0; i < got; i++)
        if (from[i])
            to[i] = from[i];
}

cl_context fake_context(size_t n, const struct fake_device *devices)
{
    cl_context context = calloc(1, sizeof(*context));

    assert_non_null(context);
    context->n = n;
    context->refs = 1;
    memcpy(context->devices, devices, n * sizeof(*devices));
    return context;
}

cl_command_queue fake_queue(cl_context context)
{
    cl_command_queue queue = calloc(1, sizeof(*queue));

    assert_non_null(queue);
    queue->context = context;
    return queue;
}
