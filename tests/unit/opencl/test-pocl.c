/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer where it belongs: between OpenCL's loader and PoCL, which computes on the processor. What the layer gave
 * out goes through every function that takes such pointers, and from process to process.
 *
 * Skipped where there is no loader, or no PoCL that the layer serves.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>

#include <memclient/cl_svm_memoryd.h>

#include "tests/support/child.h"
#include "tests/support/wait.h"
#include "tests/unit/opencl/opencl.h"

/* What is used of OpenCL. Nothing is linked, so that this is built where there is none. */
/* clang-format off */
#define FUNCTIONS(X) \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clCreateContext) X(clReleaseContext) \
    X(clGetContextInfo) X(clCreateCommandQueueWithProperties) X(clReleaseCommandQueue) X(clFinish) \
    X(clCreateProgramWithSource) X(clBuildProgram) X(clCreateKernel) X(clReleaseKernel) X(clReleaseProgram) \
    X(clSetKernelArg) X(clSetKernelArgSVMPointer) X(clSetKernelExecInfo) X(clEnqueueNDRangeKernel) \
    X(clSVMAlloc) X(clSVMFree) X(clEnqueueSVMFree) X(clEnqueueSVMMap) X(clEnqueueSVMUnmap) X(clEnqueueSVMMemFill) \
    X(clEnqueueSVMMemcpy) X(clEnqueueSVMMigrateMem) X(clCreateBuffer) X(clCreateSubBuffer) X(clReleaseMemObject) \
    X(clGetMemObjectInfo) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clCreateImage) X(clWaitForEvents) \
    X(clGetEventInfo) X(clReleaseEvent) X(clGetExtensionFunctionAddressForPlatform)
/* clang-format on */

static struct {
#define DECLARE(name) cl_api_##name name;
    FUNCTIONS(DECLARE)
} cl;

#define N 1024

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel twice;

#define assert_cl(call) assert_int_equal((call), CL_SUCCESS)

static bool find_functions(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
    void *address;

    if (!library)
        return false;
#define FIND(name)                   \
    address = dlsym(library, #name); \
    if (!address)                    \
        return false;                \
    memcpy(&cl.name, &address, sizeof(address));
    FUNCTIONS(FIND)
    return true;
}

/* As a user says it to a program that knows nothing. */
static void ask_for_the_layer(void)
{
    Dl_info info;

    assert_true(dladdr(dlsym(RTLD_DEFAULT, "memclient_svm_create"), &info));
    setenv("OPENCL_LAYERS", info.dli_fname, 1);
}

static bool find_pocl(void)
{
    cl_platform_id all[16];
    char version[256];
    cl_uint n = 0;

    if (cl.clGetPlatformIDs(16, all, &n) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < n && i < 16; i++) {
        const char *pocl;

        assert_cl(cl.clGetPlatformInfo(all[i], CL_PLATFORM_VERSION, sizeof(version), version, NULL));
        pocl = strcasestr(version, "pocl ");
        if (pocl && strtoul(pocl + strlen("pocl "), NULL, 10) < 6 &&
            cl.clGetDeviceIDs(all[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS) {
            platform = all[i];
            return true;
        }
    }
    return false;
}

static void skip_without_pocl(void)
{
    if (!platform)
        test_skip("no OpenCL loader with PoCL below release 6: install ocl-icd-libopencl1 and pocl-opencl-icd");
}

static void build(void)
{
    const char *source = "__kernel void twice(__global int *g) { g[get_global_id(0)] *= 2; }";

    context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    assert_non_null(context);
    queue = cl.clCreateCommandQueueWithProperties(context, device, NULL, NULL);
    assert_non_null(queue);
    program = cl.clCreateProgramWithSource(context, 1, &source, NULL, NULL);
    assert_cl(cl.clBuildProgram(program, 1, &device, "-cl-std=CL2.0", NULL, NULL));
    twice = cl.clCreateKernel(program, "twice", NULL);
    assert_non_null(twice);
}

static int group_setup(void **state)
{
    char cache[] = "/tmp/mdtest-pocl.XXXXXX";

    setenv("MEMORYD_OPENCL_SEPARATE", "1", 1);
    svm_group_setup(state);
    if (TEST_ASAN || TEST_TSAN)
        return 0;
    ask_for_the_layer();
    if (mkdtemp(cache))
        setenv("POCL_CACHE_DIR", cache, 1);
    if (find_functions() && find_pocl())
        build();
    return 0;
}

static int group_teardown(void **state)
{
    const char *cache = getenv("POCL_CACHE_DIR");
    char command[128];

    if (platform) {
        assert_cl(cl.clReleaseKernel(twice));
        assert_cl(cl.clReleaseProgram(program));
        assert_cl(cl.clReleaseCommandQueue(queue));
        assert_cl(cl.clReleaseContext(context));
    }
    if (cache) {
        (void)snprintf(command, sizeof(command), "rm -rf %s", cache);
        assert_int_equal(system(command), 0);
    }
    return svm_group_teardown(state);
}

static int *allocate(cl_svm_mem_flags flags)
{
    int *g = cl.clSVMAlloc(context, flags, N * sizeof(*g), 0);

    assert_non_null(g);
    assert_int_equal(svm_buffers(), 1);
    for (int i = 0; i < N; i++)
        g[i] = i;
    return g;
}

static void compute(int *g)
{
    size_t n = N;

    assert_cl(cl.clSetKernelArgSVMPointer(twice, 0, g));
    assert_cl(cl.clSetKernelExecInfo(twice, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(g), &g));
    assert_cl(cl.clEnqueueNDRangeKernel(queue, twice, 1, NULL, &n, NULL, 0, NULL, NULL));
    assert_cl(cl.clFinish(queue));
}

static cl_uint references(void)
{
    cl_uint n;

    assert_cl(cl.clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof(n), &n, NULL));
    return n;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void kernels_use_it_by_every_flag_word(void **state)
{
    static const cl_svm_mem_flags access[] = {0, CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_READ_ONLY};
    static const cl_svm_mem_flags sharing[] = {0, CL_MEM_SVM_FINE_GRAIN_BUFFER,
                                               CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS};

    skip_without_pocl();
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 3; j++) {
            int *g = allocate(access[i] | sharing[j]);

            compute(g);
            for (int k = 0; k < N; k++)
                assert_int_equal(g[k], 2 * k);
            cl.clSVMFree(context, g);
            assert_true(WAIT_UNTIL(svm_buffers() == 0));
        }
}

static void refuses_what_the_driver_would_give(void **state)
{
    static const cl_svm_mem_flags bad[] = {CL_MEM_USE_HOST_PTR,
                                           CL_MEM_ALLOC_HOST_PTR,
                                           CL_MEM_COPY_HOST_PTR,
                                           CL_MEM_HOST_NO_ACCESS,
                                           CL_MEM_KERNEL_READ_AND_WRITE,
                                           (cl_svm_mem_flags)1 << 40,
                                           CL_MEM_READ_WRITE | CL_MEM_READ_ONLY,
                                           CL_MEM_SVM_ATOMICS};

    skip_without_pocl();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_null(cl.clSVMAlloc(context, bad[i], 64, 0));
    assert_null(cl.clSVMAlloc(context, 0, 64, 256));
    assert_null(cl.clSVMAlloc(context, 0, 0, 0));
    assert_null(cl.clSVMAlloc(NULL, 0, 64, 0));
}

static void commands_use_it(void **state)
{
    int *g, *h, pattern = 7;

    skip_without_pocl();
    g = allocate(0);
    assert_cl(cl.clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, g + 1, 4, 0, NULL, NULL));
    g[1] = 100;
    assert_cl(cl.clEnqueueSVMUnmap(queue, g + 1, 0, NULL, NULL));
    assert_cl(cl.clFinish(queue));
    assert_int_equal(g[1], 100);

    h = cl.clSVMAlloc(context, 0, N * sizeof(*h), 0);
    assert_cl(cl.clEnqueueSVMMemFill(queue, h, &pattern, sizeof(pattern), N * sizeof(*h), 0, NULL, NULL));
    assert_cl(cl.clEnqueueSVMMemcpy(queue, CL_TRUE, h + 10, g + 10, 10 * sizeof(*g), 0, NULL, NULL));
    assert_int_equal(h[9], 7);
    assert_int_equal(h[10], 10);
    assert_int_equal(h[20], 7);
    assert_cl(cl.clEnqueueSVMMigrateMem(queue, 1, (const void **)(void *)&h, NULL, 0, 0, NULL, NULL));
    assert_cl(cl.clFinish(queue));
    cl.clSVMFree(context, h);
    cl.clSVMFree(context, g);
}

static void is_freed_by_queue(void **state)
{
    cl_command_type type = 0;
    cl_uint before;
    cl_event event;
    void *ptrs[3];

    skip_without_pocl();
    before = references();
    for (unsigned i = 0; i < 3; i++)
        ptrs[i] = cl.clSVMAlloc(context, 0, 5000 * (i + 1), 0);
    assert_int_equal(references(), before + 3);
    assert_cl(cl.clEnqueueSVMFree(queue, 3, ptrs, NULL, NULL, 0, NULL, &event));
    assert_cl(cl.clWaitForEvents(1, &event));
    assert_cl(cl.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
    assert_int_equal(type, CL_COMMAND_SVM_FREE);
    assert_cl(cl.clReleaseEvent(event));
    assert_cl(cl.clFinish(queue));
    assert_true(WAIT_UNTIL(svm_buffers() == 0));
    assert_true(WAIT_UNTIL(references() == before));
}

static void CL_CALLBACK free_in_callback(cl_command_queue from, cl_uint n, void *ptrs[], void *count)
{
    (void)from;
    for (cl_uint i = 0; i < n; i++)
        cl.clSVMFree(context, ptrs[i]);
    __atomic_add_fetch((unsigned *)count, n, __ATOMIC_RELEASE);
}

static void is_freed_by_callback(void **state)
{
    unsigned freed = 0;
    void *ptrs[50];

    skip_without_pocl();
    for (unsigned i = 0; i < 50; i++)
        ptrs[i] = cl.clSVMAlloc(context, 0, 1000 * i + 1, 0);
    assert_cl(cl.clEnqueueSVMFree(queue, 50, ptrs, free_in_callback, &freed, 0, NULL, NULL));
    assert_cl(cl.clFinish(queue));
    assert_true(WAIT_UNTIL(__atomic_load_n(&freed, __ATOMIC_ACQUIRE) == 50));
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static cl_bool uses_svm(cl_mem object)
{
    cl_bool uses = CL_FALSE;

    assert_cl(cl.clGetMemObjectInfo(object, CL_MEM_USES_SVM_POINTER, sizeof(uses), &uses, NULL));
    return uses;
}

static void buffers_are_over_it(void **state)
{
    const cl_buffer_region region = {2048, 1024};
    cl_mem buffer, part;
    cl_int error, value;
    size_t n = N;
    int *g;

    skip_without_pocl();
    g = allocate(0);
    assert_null(cl.clCreateBuffer(context, CL_MEM_USE_HOST_PTR, N * sizeof(*g) + 1, g, &error));
    assert_int_equal(error, CL_INVALID_BUFFER_SIZE);
    buffer = cl.clCreateBuffer(context, CL_MEM_USE_HOST_PTR, N * sizeof(*g), g, &error);
    assert_int_equal(error, CL_SUCCESS);
    assert_true(uses_svm(buffer));
    part = cl.clCreateSubBuffer(buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    assert_int_equal(error, CL_SUCCESS);
    assert_true(uses_svm(part));
    assert_cl(cl.clSetKernelArg(twice, 0, sizeof(buffer), &buffer));
    assert_cl(cl.clEnqueueNDRangeKernel(queue, twice, 1, NULL, &n, NULL, 0, NULL, NULL));
    assert_cl(cl.clEnqueueReadBuffer(queue, part, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
    assert_int_equal(value, 2 * 512);
    assert_int_equal(g[512], 2 * 512);
    value = -1;
    assert_cl(cl.clEnqueueWriteBuffer(queue, part, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
    assert_int_equal(g[512], -1);
    assert_cl(cl.clReleaseMemObject(part));
    assert_cl(cl.clReleaseMemObject(buffer));
    cl.clSVMFree(context, g);
}

static void images_are_of_such_buffers(void **state)
{
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT32};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = N / 4};
    cl_mem buffer, image;
    cl_int error;
    int *g;

    skip_without_pocl();
    g = allocate(0);
    buffer = cl.clCreateBuffer(context, CL_MEM_USE_HOST_PTR, N * sizeof(*g), g, NULL);
    desc.buffer = buffer;
    image = cl.clCreateImage(context, CL_MEM_READ_ONLY, &format, &desc, NULL, &error);
    if (image) {
        assert_true(uses_svm(image));
        assert_cl(cl.clReleaseMemObject(image));
    } else {
        print_message("this driver makes no image of a buffer: %d\n", (int)error);
    }
    assert_cl(cl.clReleaseMemObject(buffer));
    cl.clSVMFree(context, g);
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

/* Without OpenCL. */
static void consume(int channel, void *unused)
{
    cl_svm_handle_memoryd handle;
    struct memclient_token token;
    struct memclient_svm *svm;
    int *there, *g;

    (void)unused;
    CHECK(wait_readable(channel) && recv(channel, &handle, sizeof(handle), 0) == sizeof(handle));
    CHECK(wait_readable(channel) && recv(channel, &there, sizeof(there), 0) == sizeof(there));
    memcpy(token.bytes, handle.token, sizeof(token.bytes));
    CHECK(!memclient_svm_create(NULL, &svm));
    CHECK(!memclient_svm_open_token(svm, &token, handle.offset, handle.length, (void **)&g));
    CHECK(g == there);
    for (int i = 0; i < N; i++) {
        CHECK(g[i] == 2 * i);
        g[i] = 5 * i;
    }
    tell(channel);
    hear(channel);
    CHECK(g[N - 1] == 10 * (N - 1));
    CHECK(!memclient_svm_free(svm, g));
    memclient_svm_destroy(svm);
}

static void another_process_reads_what_a_kernel_wrote(void **state)
{
    cl_svm_handle_memoryd handle = {.type = CL_SVM_HANDLE_TOKEN_MEMORYD};
    clExportSVMMEMORYD_fn export_svm;
    struct child consumer;
    void *address;
    int *g;

    skip_without_pocl();
    child_need_malloc(); /* the driver has threads, whatever they do */
    child_start(&consumer, consume, NULL);
    address = cl.clGetExtensionFunctionAddressForPlatform(platform, "clExportSVMMEMORYD");
    assert_non_null(address);
    memcpy(&export_svm, &address, sizeof(export_svm));
    g = allocate(0);
    compute(g);
    assert_cl(export_svm(context, g, &handle));
    assert_int_equal(send(consumer.channel, &handle, sizeof(handle), MSG_NOSIGNAL), sizeof(handle));
    assert_int_equal(send(consumer.channel, &g, sizeof(g), MSG_NOSIGNAL), sizeof(g));
    child_hear(&consumer);
    /* and the other way round */
    compute(g);
    assert_int_equal(g[3], 30);
    cl.clSVMFree(context, g);
    tell(consumer.channel);
    child_finish(&consumer);
}

static void produce(int channel, void *unused)
{
    struct memclient_token token;
    struct memclient_svm *svm;
    uint64_t part[2];
    int *g;

    (void)unused;
    CHECK(!memclient_svm_create(NULL, &svm));
    CHECK(!memclient_svm_alloc(svm, MEMCLIENT_SVM_READ_WRITE, N * sizeof(*g), 0, (void **)&g));
    for (int i = 0; i < N; i++)
        g[i] = i + 1;
    CHECK(!memclient_svm_share(g, NULL, &token, &part[0], &part[1]));
    CHECK(send(channel, &token, sizeof(token), MSG_NOSIGNAL) == sizeof(token));
    CHECK(send(channel, part, sizeof(part), MSG_NOSIGNAL) == sizeof(part));
    hear(channel);
    for (int i = 0; i < N; i++)
        CHECK(g[i] == 2 * (i + 1));
    memclient_svm_destroy(svm);
}

static void kernels_use_what_another_process_allocated(void **state)
{
    cl_svm_handle_memoryd handle = {.type = CL_SVM_HANDLE_TOKEN_MEMORYD};
    clImportSVMMEMORYD_fn import_svm;
    struct child producer;
    uint64_t part[2];
    void *address;
    cl_int error;
    int *g;

    skip_without_pocl();
    child_need_malloc();
    child_start(&producer, produce, NULL);
    address = cl.clGetExtensionFunctionAddressForPlatform(platform, "clImportSVMMEMORYD");
    assert_non_null(address);
    memcpy(&import_svm, &address, sizeof(import_svm));
    assert_true(wait_readable(producer.channel));
    assert_int_equal(recv(producer.channel, handle.token, sizeof(handle.token), 0), sizeof(handle.token));
    assert_true(wait_readable(producer.channel));
    assert_int_equal(recv(producer.channel, part, sizeof(part), 0), sizeof(part));
    handle.offset = part[0];
    handle.length = part[1];
    g = import_svm(context, &handle, &error);
    assert_int_equal(error, CL_SUCCESS);
    compute(g);
    tell(producer.channel);
    child_finish(&producer);
    assert_int_equal(g[0], 2);
    cl.clSVMFree(context, g);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_teardown(function, svm_nothing_left)
    const struct CMUnitTest tests[] = {
        TEST(kernels_use_it_by_every_flag_word),
        TEST(refuses_what_the_driver_would_give),
        TEST(commands_use_it),
        TEST(is_freed_by_queue),
        TEST(is_freed_by_callback),
        TEST(buffers_are_over_it),
        TEST(images_are_of_such_buffers),
        TEST(another_process_reads_what_a_kernel_wrote),
        TEST(kernels_use_what_another_process_allocated),
    };

    return test_run(tests, group_setup, group_teardown);
}
