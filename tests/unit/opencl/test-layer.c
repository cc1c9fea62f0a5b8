/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer over a driver that is a table of functions: what clSVMAlloc() gives and refuses, sentence by sentence of
 * its document, what goes down to the driver and what does not, and memory shared between processes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memclient/cl_svm_memoryd.h>

#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/opencl/fake.h"
#include "tests/unit/opencl/opencl.h"

static cl_context context;
static clExportSVMMEMORYD_fn export_svm;
static clImportSVMMEMORYD_fn import_svm;

static int set_up(void **state)
{
    context = fake_context(1, &fake_full);
    fake_seen = (struct fake_seen){0};
    fake_version = "OpenCL 3.0 PoCL 3.1+test";
    return 0;
}

/* Nothing went to the driver that is ours, and contexts are held no longer. */
static int clean_up(void **state)
{
    assert_int_equal(fake_seen.retains, fake_seen.releases);
    free(context);
    return svm_nothing_left(state);
}

static void *extension(const char *name)
{
    return cl.clGetExtensionFunctionAddressForPlatform(NULL, name);
}

static int group_setup(void **state)
{
    void *address;

    /* so that what is freed is seen to be gone */
    setenv("MEMORYD_OPENCL_SEPARATE", "1", 1);
    fake_start();
    address = extension("clExportSVMMEMORYD");
    memcpy(&export_svm, &address, sizeof(export_svm));
    address = extension("clImportSVMMEMORYD");
    memcpy(&import_svm, &address, sizeof(import_svm));
    return svm_group_setup(state);
}

static bool gives(cl_context from, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
    void *ptr = cl.clSVMAlloc(from, flags, size, alignment);

    if (!ptr)
        return false;
    assert_int_equal((uintptr_t)ptr % (alignment ? alignment : 128), 0);
    memset(ptr, 1, size < 4096 ? size : 4096);
    cl.clSVMFree(from, ptr);
    return true;
}

/* ---- what it is to a loader -------------------------------------------------------------------------------------- */

static void tells_loaders_what_it_is(void **state)
{
    const struct _cl_icd_dispatch none = {0}, *table = NULL;
    cl_layer_api_version version = 0;
    cl_uint n = 0;
    size_t size;
    char name[64];

    assert_int_equal(clGetLayerInfo(CL_LAYER_API_VERSION, sizeof(version), &version, &size), CL_SUCCESS);
    assert_int_equal(version, CL_LAYER_API_VERSION_100);
    assert_int_equal(size, sizeof(version));
    assert_int_equal(clGetLayerInfo(CL_LAYER_API_VERSION, 1, &version, NULL), CL_INVALID_VALUE);
    assert_int_equal(clGetLayerInfo(CL_LAYER_NAME, sizeof(name), name, &size), CL_SUCCESS);
    assert_int_equal(size, strlen(name) + 1);
    assert_int_equal(clGetLayerInfo(CL_LAYER_NAME, 0, NULL, &size), CL_SUCCESS);
    assert_int_equal(clGetLayerInfo(0x4242, sizeof(name), name, &size), CL_INVALID_VALUE);
    /* a loader of OpenCL 1.2 */
    assert_int_equal(clInitLayer(80, &none, &n, &table), CL_INVALID_VALUE);
    assert_int_equal(clInitLayer(200, NULL, &n, &table), CL_INVALID_VALUE);
    /* named twice in OPENCL_LAYERS: it would be below itself */
    assert_int_equal(clInitLayer(200, &cl, &n, &table), CL_INVALID_OPERATION);
    assert_null(table);
}

/* ---- clSVMAlloc() ------------------------------------------------------------------------------------------------ */

/* clSVMAlloc's flags: the table's, and nothing else. */
static void gives_by_the_twelve_flag_words(void **state)
{
    for (cl_svm_mem_flags flags = 0; flags < 1 << 13; flags++) {
        cl_svm_mem_flags access = flags & 7, sharing = flags & ~(cl_svm_mem_flags)7;
        bool allowed = !(access & (access - 1)) && (!sharing || sharing == CL_MEM_SVM_FINE_GRAIN_BUFFER ||
                                                    sharing == (CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS));

        assert_int_equal(gives(context, flags, 64, 0), allowed);
    }
    assert_false(gives(context, (cl_svm_mem_flags)1 << 40, 64, 0));
    assert_int_equal(fake_seen.allocs, 0);
    assert_int_equal(fake_seen.frees, 0);
}

/* clSVMAlloc: "context is not a valid context". */
static void refuses_contexts_that_are_none(void **state)
{
    struct fake_device without = fake_full;
    cl_context none = fake_context(0, &fake_full), old;

    without.capabilities = 0;
    old = fake_context(1, &without);
    assert_false(gives(NULL, 0, 64, 0));
    assert_false(gives(none, 0, 64, 0));
    assert_false(gives(old, 0, 64, 0));
    free(none);
    free(old);
}

/* clSVMAlloc: "not supported by at least one device in context"; size "for any device in context". */
static void asks_all_devices(void **state)
{
    struct fake_device devices[] = {fake_full, fake_full, fake_full};
    cl_context mixed;

    devices[1].capabilities = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    devices[2].max_alloc = 100000;
    mixed = fake_context(3, devices);
    assert_true(gives(mixed, CL_MEM_READ_WRITE, 100000, 0));
    assert_false(gives(mixed, CL_MEM_READ_WRITE, 100001, 0));
    assert_false(gives(mixed, CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0));
    assert_false(gives(mixed, 0, 0, 0));
    free(mixed);
}

/* clSVMAlloc's alignment: "a power of two up to the largest data type supported by the OpenCL device". */
static void aligns_up_to_the_largest_type(void **state)
{
    struct fake_device embedded = fake_full, with_long = fake_full;
    cl_context small, large;

    embedded.profile = with_long.profile = "EMBEDDED_PROFILE";
    with_long.extensions = "cl_khr_fp16 cles_khr_int64";
    small = fake_context(1, &embedded);
    large = fake_context(1, &with_long);
    for (cl_uint alignment = 1; alignment <= 512; alignment++) {
        bool is_power = !(alignment & (alignment - 1));

        assert_int_equal(gives(context, 0, 10, alignment), is_power && alignment <= 128);
        assert_int_equal(gives(large, 0, 10, alignment), is_power && alignment <= 128);
        assert_int_equal(gives(small, 0, 10, alignment), is_power && alignment <= 64);
    }
    free(small);
    free(large);
}

/* clSVMAlloc with mixed endianness "will fail and return NULL". */
static void refuses_mixed_byte_orders(void **state)
{
    struct fake_device devices[] = {fake_full, fake_full};
    cl_context mixed;

    devices[1].little_endian = !devices[1].little_endian;
    mixed = fake_context(2, devices);
    assert_false(gives(mixed, 0, 64, 0));
    free(mixed);
}

/* clSVMAlloc: "There was a failure to allocate resources." */
static void returns_null_where_there_is_no_memory(void **state)
{
    struct fake_device large = fake_full;
    cl_context all;

    large.max_alloc = UINT64_MAX;
    all = fake_context(1, &large);
    assert_false(gives(all, 0, (size_t)1 << 46, 0));
    assert_false(gives(all, 0, SIZE_MAX, 0));
    assert_true(gives(all, 0, 64, 0));
    free(all);
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

static void holds_the_context_of_each_allocation(void **state)
{
    void *one, *two;

    one = cl.clSVMAlloc(context, 0, 100, 0);
    two = cl.clSVMAlloc(context, 0, 100, 0);
    assert_int_equal(fake_seen.retains, 2);
    cl.clSVMFree(context, one);
    assert_int_equal(fake_seen.releases, 1);
    cl.clSVMFree(context, two);
}

static void frees_only_in_its_own_context(void **state)
{
    cl_context other = fake_context(1, &fake_full);
    char *ptr = cl.clSVMAlloc(context, 0, 100, 0);

    cl.clSVMFree(other, ptr);
    cl.clSVMFree(context, ptr + 1);
    cl.clSVMFree(context, NULL);
    assert_int_equal(fake_seen.releases, 0);
    cl.clSVMFree(context, ptr);
    assert_int_equal(fake_seen.releases, 1);
    assert_int_equal(fake_seen.frees, 0);
    /* what is not ours is the driver's */
    cl.clSVMFree(context, ptr);
    assert_int_equal(fake_seen.frees, 1);
    free(other);
}

static void frees_by_queue(void **state)
{
    cl_command_queue queue = fake_queue(context);
    char of_the_driver[10];
    void *ptrs[3];

    ptrs[0] = cl.clSVMAlloc(context, 0, 100, 0);
    ptrs[1] = of_the_driver;
    ptrs[2] = cl.clSVMAlloc(context, 0, 1 << 20, 0);
    assert_int_equal(cl.clEnqueueSVMFree(queue, 3, ptrs, NULL, NULL, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(fake_seen.releases, 0);
    fake_execute();
    assert_int_equal(fake_seen.releases, 2);
    assert_int_equal(fake_seen.frees, 1);
    /* nothing of ours: nothing of our business */
    assert_int_equal(cl.clEnqueueSVMFree(queue, 1, ptrs + 1, NULL, NULL, 0, NULL, NULL), CL_SUCCESS);
    fake_execute();
    assert_int_equal(fake_seen.callbacks, 1);
    assert_int_equal(fake_seen.frees, 2);
    free(queue);
}

static void CL_CALLBACK free_in_callback(cl_command_queue queue, cl_uint n, void *ptrs[], void *data)
{
    (void)queue;
    for (cl_uint i = 0; i < n; i++)
        cl.clSVMFree(data, ptrs[i]);
}

static void leaves_freeing_to_a_callback(void **state)
{
    cl_command_queue queue = fake_queue(context);
    void *ptr = cl.clSVMAlloc(context, 0, 100, 0);

    assert_int_equal(cl.clEnqueueSVMFree(queue, 1, &ptr, free_in_callback, context, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(fake_seen.releases, 0);
    fake_execute();
    assert_int_equal(fake_seen.releases, 1);
    free(queue);
}

static void frees_nothing_when_enqueueing_fails(void **state)
{
    cl_command_queue queue = fake_queue(context);
    void *ptr = cl.clSVMAlloc(context, 0, 100, 0);

    fake_failure = CL_OUT_OF_RESOURCES;
    assert_int_equal(cl.clEnqueueSVMFree(queue, 1, &ptr, NULL, NULL, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
    assert_int_equal(cl.clEnqueueSVMFree(NULL, 1, &ptr, NULL, NULL, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
    assert_int_equal(cl.clEnqueueSVMFree(queue, 0, &ptr, NULL, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(cl.clEnqueueSVMFree(queue, 1, NULL, NULL, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(fake_seen.releases, 0);
    cl.clSVMFree(context, ptr);
    free(queue);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static cl_bool uses_svm(cl_mem object)
{
    cl_bool uses = CL_FALSE;

    assert_int_equal(cl.clGetMemObjectInfo(object, CL_MEM_USES_SVM_POINTER, sizeof(uses), &uses, NULL), CL_SUCCESS);
    return uses;
}

static void buffers_over_pointers_are_no_larger(void **state)
{
    char *ptr = cl.clSVMAlloc(context, 0, 1000, 0);
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
    cl_mem buffer, part, image;
    cl_int error = 1;

    assert_null(cl.clCreateBuffer(context, flags, 1001, ptr, &error));
    assert_int_equal(error, CL_INVALID_BUFFER_SIZE);
    assert_null(cl.clCreateBufferWithProperties(context, NULL, flags, 901, ptr + 100, NULL));
    assert_int_equal(fake_seen.buffers, 0);

    buffer = cl.clCreateBuffer(context, flags, 1000, ptr, &error);
    assert_int_equal(error, CL_SUCCESS);
    assert_true(uses_svm(buffer));
    part = cl.clCreateSubBuffer(buffer, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, NULL, NULL);
    image = cl.clCreateSubBuffer(part, CL_MEM_READ_ONLY, 0, NULL, NULL);
    assert_true(uses_svm(part));
    assert_true(uses_svm(image));
    cl.clReleaseMemObject(image);
    cl.clReleaseMemObject(part);
    cl.clReleaseMemObject(buffer);

    buffer = cl.clCreateBufferWithProperties(context, NULL, flags, 900, ptr + 100, &error);
    assert_true(uses_svm(buffer));
    cl.clReleaseMemObject(buffer);
    cl.clSVMFree(context, ptr);
}

static void other_buffers_are_left_alone(void **state)
{
    char own[100], *ptr = cl.clSVMAlloc(context, 0, 50, 0);
    cl_mem buffer;

    buffer = cl.clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 100, own, NULL);
    assert_false(uses_svm(buffer));
    cl.clReleaseMemObject(buffer);
    /* copied, not used */
    buffer = cl.clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, 50, ptr, NULL);
    assert_false(uses_svm(buffer));
    cl.clReleaseMemObject(buffer);
    assert_int_equal(cl.clGetMemObjectInfo(NULL, CL_MEM_USES_SVM_POINTER, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    cl.clSVMFree(context, ptr);
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

static void only_our_extension_is_ours(void **state)
{
    assert_non_null(export_svm);
    assert_non_null(import_svm);
    assert_non_null(extension("clDriverHasThis"));
    assert_null(extension("clNobodyHasThis"));
}

static void consume(int channel, void *unused)
{
    cl_svm_handle_memoryd handle, broken;
    cl_int error = 1;
    char *ptr, *again;
    uintptr_t there;

    (void)unused;
    CHECK(wait_readable(channel) && recv(channel, &handle, sizeof(handle), 0) == sizeof(handle));
    CHECK(wait_readable(channel) && recv(channel, &there, sizeof(there), 0) == sizeof(there));
    if (handle.type == CL_SVM_HANDLE_FD_MEMORYD)
        handle.fd = fd_receive_one(channel);
    broken = handle;
    broken.offset = (uint64_t)1 << 50;
    CHECK(!import_svm(context, &broken, &error) && error == CL_INVALID_VALUE);
    CHECK(!import_svm(NULL, &handle, &error) && error == CL_INVALID_CONTEXT);
    broken.type = 7;
    CHECK(!import_svm(context, &broken, &error) && error == CL_INVALID_VALUE);
    ptr = import_svm(context, &handle, &error);
    CHECK(error == CL_SUCCESS && (uintptr_t)ptr == there);
    CHECK(!strcmp(ptr, "from the producer"));
    again = import_svm(context, &handle, NULL);
    CHECK(again == ptr);
    cl.clSVMFree(context, again);
    (void)snprintf(ptr, 100, "from the consumer");
    tell(channel);
    hear(channel);
    CHECK(!strcmp(ptr, "from the consumer"));
    cl.clSVMFree(context, ptr);
    CHECK(fake_seen.frees == 0 && fake_seen.retains == fake_seen.releases);
}

static void share(uint32_t type, size_t size)
{
    cl_svm_handle_memoryd handle = {.type = type};
    struct child consumer;
    char *ptr;

    /* before there is anything to inherit */
    child_start(&consumer, consume, NULL);
    ptr = cl.clSVMAlloc(context, 0, size, 0);
    (void)snprintf(ptr, size, "from the producer");
    assert_int_equal(export_svm(context, ptr, &handle), CL_SUCCESS);
    assert_int_equal(handle.length, size);
    assert_int_equal(send(consumer.channel, &handle, sizeof(handle), MSG_NOSIGNAL), sizeof(handle));
    assert_int_equal(send(consumer.channel, &ptr, sizeof(ptr), MSG_NOSIGNAL), sizeof(ptr));
    if (type == CL_SVM_HANDLE_FD_MEMORYD) {
        assert_int_equal(fd_send_one(consumer.channel, handle.fd), 1);
        close(handle.fd);
    }
    child_hear(&consumer);
    assert_string_equal(ptr, "from the consumer");
    cl.clSVMFree(context, ptr);
    tell(consumer.channel);
    child_finish(&consumer);
}

/* cl_svm_handle_memoryd, clExportSVMMEMORYD_fn, clImportSVMMEMORYD_fn: type, fd, offset, length. */
static void shares_by_descriptor(void **state)
{
    share(CL_SVM_HANDLE_FD_MEMORYD, 1000);
    share(CL_SVM_HANDLE_FD_MEMORYD, 1 << 20);
}

/* cl_svm_handle_memoryd, clExportSVMMEMORYD_fn, clImportSVMMEMORYD_fn: type, token. */
static void shares_by_token(void **state)
{
    share(CL_SVM_HANDLE_TOKEN_MEMORYD, 1000);
    share(CL_SVM_HANDLE_TOKEN_MEMORYD, 1 << 20);
}

/* Imports what comes, and hands it on as the other type. */
static void hand_on(int channel, void *unused)
{
    cl_svm_handle_memoryd handle, next = {0};
    cl_int error = 1;
    char *ptr;

    (void)unused;
    CHECK(wait_readable(channel) && recv(channel, &handle, sizeof(handle), 0) == sizeof(handle));
    if (handle.type == CL_SVM_HANDLE_FD_MEMORYD)
        handle.fd = fd_receive_one(channel);
    ptr = import_svm(context, &handle, &error);
    CHECK(ptr && error == CL_SUCCESS);
    next.type = !handle.type;
    CHECK(export_svm(context, ptr, &next) == CL_SUCCESS);
    /* the same type too */
    CHECK(export_svm(context, ptr, &handle) == CL_SUCCESS);
    CHECK(send(channel, &next, sizeof(next), MSG_NOSIGNAL) == sizeof(next));
    if (next.type == CL_SVM_HANDLE_FD_MEMORYD)
        CHECK(fd_send_one(channel, next.fd) == 1);
    hear(channel);
    cl.clSVMFree(context, ptr);
}

static void relay(struct child *from, struct child *to, cl_svm_handle_memoryd *handle)
{
    if (from) {
        assert_true(wait_readable(from->channel));
        assert_int_equal(recv(from->channel, handle, sizeof(*handle), 0), sizeof(*handle));
        if (handle->type == CL_SVM_HANDLE_FD_MEMORYD)
            handle->fd = fd_receive_one(from->channel);
    }
    assert_int_equal(send(to->channel, handle, sizeof(*handle), MSG_NOSIGNAL), sizeof(*handle));
    if (handle->type == CL_SVM_HANDLE_FD_MEMORYD) {
        assert_int_equal(fd_send_one(to->channel, handle->fd), 1);
        close(handle->fd);
    }
}

/* Along a chain of processes, each of which knows the memory only by what the one before it made of its import. */
static void pass_along(uint32_t type)
{
    cl_svm_handle_memoryd handle = {.type = type};
    struct child first, second, last;
    char *ptr;

    child_start(&first, hand_on, NULL);
    child_start(&second, hand_on, NULL);
    child_start(&last, consume, NULL);
    ptr = cl.clSVMAlloc(context, 0, 1000, 0);
    (void)snprintf(ptr, 1000, "from the producer");
    assert_int_equal(export_svm(context, ptr, &handle), CL_SUCCESS);
    relay(NULL, &first, &handle);
    relay(&first, &second, &handle);
    assert_true(wait_readable(second.channel));
    assert_int_equal(recv(second.channel, &handle, sizeof(handle), 0), sizeof(handle));
    assert_int_equal(handle.type, type);
    assert_int_equal(send(last.channel, &handle, sizeof(handle), MSG_NOSIGNAL), sizeof(handle));
    assert_int_equal(send(last.channel, &ptr, sizeof(ptr), MSG_NOSIGNAL), sizeof(ptr));
    if (type == CL_SVM_HANDLE_FD_MEMORYD) {
        handle.fd = fd_receive_one(second.channel);
        assert_int_equal(fd_send_one(last.channel, handle.fd), 1);
        close(handle.fd);
    }
    child_hear(&last);
    assert_string_equal(ptr, "from the consumer");
    tell(last.channel);
    child_finish(&last);
    tell(second.channel);
    child_finish(&second);
    tell(first.channel);
    child_finish(&first);
    cl.clSVMFree(context, ptr);
}

/* cl_svm_handle_memoryd: type. */
static void importers_share_on(void **state)
{
    pass_along(CL_SVM_HANDLE_FD_MEMORYD);
    pass_along(CL_SVM_HANDLE_TOKEN_MEMORYD);
}

/* In one process, what one context exports another may import: each has its own, and frees its own. */
static void contexts_of_one_process_share(void **state)
{
    cl_svm_handle_memoryd handle = {.type = CL_SVM_HANDLE_TOKEN_MEMORYD}, part;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
    cl_context other = fake_context(1, &fake_full);
    char *ptr = cl.clSVMAlloc(context, 0, 8192, 0), *again;
    cl_mem buffer;
    cl_int error = 1;

    assert_int_equal(export_svm(context, ptr, &handle), CL_SUCCESS);
    part = handle;
    part.offset += 1024;
    part.length = 100;
    handle.length = 100;
    assert_ptr_equal(import_svm(other, &part, &error), ptr + 1024);
    again = import_svm(other, &handle, &error);
    assert_ptr_equal(again, ptr);

    /* the first one's is as large as ever, and its own to export */
    buffer = cl.clCreateBuffer(context, flags, 8192, ptr, &error);
    assert_int_equal(error, CL_SUCCESS);
    cl.clReleaseMemObject(buffer);
    assert_null(cl.clCreateBuffer(context, flags, 8192 - 2048 + 1, ptr + 2048, &error));
    assert_int_equal(error, CL_INVALID_BUFFER_SIZE);
    buffer = cl.clCreateBuffer(context, flags, 8192 - 2048, ptr + 2048, &error);
    assert_true(uses_svm(buffer));
    cl.clReleaseMemObject(buffer);
    assert_int_equal(export_svm(context, ptr + 1050, &handle), CL_SUCCESS);
    assert_int_equal(handle.length, 8192);
    assert_int_equal(export_svm(other, ptr + 1050, &handle), CL_SUCCESS);
    assert_int_equal(handle.length, 100);
    assert_int_equal(handle.offset, 1024);
    assert_int_equal(export_svm(other, ptr + 4096, &handle), CL_INVALID_VALUE);

    cl.clSVMFree(other, ptr + 1024);
    cl.clSVMFree(other, again);
    cl.clSVMFree(context, ptr);
    free(other);
}

static void refuses_handles_that_are_none(void **state)
{
    cl_svm_handle_memoryd handle = {.type = CL_SVM_HANDLE_TOKEN_MEMORYD};
    cl_context other = fake_context(1, &fake_full);
    char *ptr = cl.clSVMAlloc(context, 0, 1000, 0);
    cl_int error = 1;
    int variable;

    assert_int_equal(export_svm(NULL, ptr, &handle), CL_INVALID_CONTEXT);
    assert_int_equal(export_svm(other, ptr, &handle), CL_INVALID_VALUE);
    assert_int_equal(export_svm(context, &variable, &handle), CL_INVALID_VALUE);
    assert_int_equal(export_svm(context, ptr, NULL), CL_INVALID_VALUE);
    handle.type = 2;
    assert_int_equal(export_svm(context, ptr, &handle), CL_INVALID_VALUE);
    handle.type = CL_SVM_HANDLE_TOKEN_MEMORYD;
    assert_null(import_svm(context, &handle, &error));
    assert_int_equal(error, CL_INVALID_VALUE);
    handle.type = CL_SVM_HANDLE_FD_MEMORYD;
    handle.fd = -1;
    assert_null(import_svm(context, &handle, &error));
    assert_int_equal(error, CL_INVALID_VALUE);
    assert_null(import_svm(context, NULL, &error));
    assert_int_equal(error, CL_INVALID_VALUE);
    cl.clSVMFree(context, ptr);
    free(other);
}

/* Whether that is what was said last, and nothing else since the last time. */
static bool explained(FILE *said, const char *wanted)
{
    char line[1024] = "";
    bool yes = fgets(line, sizeof(line), said) && strstr(line, wanted);

    if (!yes)
        (void)printf("wanted \"%s\", said \"%s\"\n", wanted, line);
    yes &= !fgets(line, sizeof(line), said);
    clearerr(said);
    return yes;
}

/* MEMORYD_OPENCL_EXPLAIN=1: each function of the layer that fails says why, once. */
static void explain(int channel, void *unused)
{
    char file[] = "/tmp/mdtest-explain.XXXXXX";
    cl_svm_handle_memoryd handle = {.type = CL_SVM_HANDLE_TOKEN_MEMORYD}, broken;
    int fd = mkstemp(file), kept = dup(STDERR_FILENO);
    FILE *said = fopen(file, "re");
    int variable;
    char *ptr;

    (void)channel;
    (void)unused;
    CHECK(fd >= 0 && kept >= 0 && said && !unlink(file));
    CHECK(dup2(fd, STDERR_FILENO) >= 0 && !setvbuf(stderr, NULL, _IONBF, 0));
    CHECK(!import_svm(context, &handle, NULL));
    CHECK(fgetc(said) == EOF);
    clearerr(said);
    CHECK(!setenv("MEMORYD_OPENCL_EXPLAIN", "1", 1));
    CHECK(!cl.clSVMAlloc(NULL, 0, 64, 0) && explained(said, "clSVMAlloc() fails: the context"));
    CHECK(!cl.clSVMAlloc(context, 1 << 5, 64, 0) && explained(said, "clSVMAlloc() fails: "));
    CHECK(!import_svm(NULL, &handle, NULL) && explained(said, "clImportSVMMEMORYD() fails: the context"));
    CHECK(!import_svm(context, NULL, NULL) && explained(said, "clImportSVMMEMORYD() fails: the handle is NULL"));
    CHECK(!import_svm(context, &handle, NULL) && explained(said, "clImportSVMMEMORYD() fails: "));
    broken = handle;
    broken.type = CL_SVM_HANDLE_FD_MEMORYD;
    broken.fd = -1;
    CHECK(!import_svm(context, &broken, NULL) && explained(said, "clImportSVMMEMORYD() fails: "));
    ptr = cl.clSVMAlloc(context, 0, 1000, 0);
    CHECK(ptr && export_svm(context, ptr, &handle) == CL_SUCCESS);
    broken = handle;
    broken.offset = (uint64_t)1 << 50;
    CHECK(!import_svm(context, &broken, NULL) && explained(said, "clImportSVMMEMORYD() fails: offset and length"));
    CHECK(export_svm(context, &variable, &handle) && explained(said, "clExportSVMMEMORYD() fails: no allocation has"));
    CHECK(export_svm(NULL, ptr, &handle) && explained(said, "clExportSVMMEMORYD() fails: the context is NULL"));
    fake_version = "OpenCL 3.0 Some GPU";
    CHECK(!import_svm(context, &handle, NULL) && explained(said, "clImportSVMMEMORYD() fails: the driver takes no"));
    fake_version = "OpenCL 3.0 PoCL 3.1+test";
    cl.clSVMFree(context, ptr);
    CHECK(dup2(kept, STDERR_FILENO) >= 0);
}

static void explains_what_fails(void **state)
{
    child_run(explain, NULL);
}

/* ---- drivers that want their own, and no broker ------------------------------------------------------------------ */

static void forward(int channel, void *version)
{
    cl_svm_handle_memoryd handle = {0};
    cl_int error = 0;
    void *ptr;

    (void)channel;
    fake_version = version;
    ptr = cl.clSVMAlloc(context, 0, 64, 0);
    CHECK(ptr && fake_seen.allocs == 1);
    cl.clSVMFree(context, ptr);
    CHECK(fake_seen.frees == 1);
    CHECK(!import_svm(context, &handle, &error) && error == CL_INVALID_OPERATION);
}

static void leaves_other_drivers_their_memory(void **state)
{
    static char newer[] = "OpenCL 3.0 PoCL 6.0  Linux", ten[] = "OpenCL 3.0 PoCL 10.2";
    static char another[] = "OpenCL 3.0 Some GPU";

    child_run(forward, newer);
    child_run(forward, ten);
    child_run(forward, another);
}

/* As the table of PoCL has it with a graphics card: host memory is not that device's. */
static void leaves_other_devices_of_pocl_their_memory(void **state)
{
    struct fake_device devices[2] = {fake_full, fake_full};
    cl_context both;
    void *ptr;

    devices[1].type = CL_DEVICE_TYPE_GPU;
    both = fake_context(2, devices);
    ptr = cl.clSVMAlloc(both, 0, 64, 0);
    assert_non_null(ptr);
    assert_int_equal(fake_seen.allocs, 1);
    cl.clSVMFree(both, ptr);
    assert_int_equal(fake_seen.frees, 1);
    free(both);
}

static void serves_drivers_that_take_any_memory(void **state)
{
    struct fake_device system = fake_full;
    cl_context any;

    system.capabilities |= CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
    any = fake_context(1, &system);
    fake_version = "OpenCL 3.0 Some CPU";
    assert_true(gives(any, CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0));
    assert_int_equal(fake_seen.allocs, 0);
    free(any);
}

/* The child's default context is its own, and finds nobody. */
static void without_broker(int channel, void *wanted)
{
    void *ptr;

    (void)channel;
    CHECK(!setenv("MEMORYD_SOCKET", "/nonexistent/memoryd.sock", 1));
    CHECK(!setenv("MEMORYD_OPENCL_FALLBACK", wanted, 1));
    CHECK(!cl.clSVMAlloc(context, 1 << 5, 64, 0));
    ptr = cl.clSVMAlloc(context, 0, 64, 0);
    if (!strcmp(wanted, "fail")) {
        CHECK(!ptr && fake_seen.allocs == 0);
    } else {
        CHECK(ptr && fake_seen.allocs == 1);
        cl.clSVMFree(context, ptr);
        CHECK(fake_seen.frees == 1);
    }
}

/* First of all: later this process has a connection. */
static void without_a_broker_the_driver_serves_or_nobody(void **state)
{
    static char driver[] = "driver", fail[] = "fail";

    child_run(without_broker, driver);
    child_run(without_broker, fail);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, clean_up)
    const struct CMUnitTest tests[] = {
        TEST(without_a_broker_the_driver_serves_or_nobody),
        TEST(tells_loaders_what_it_is),
        TEST(gives_by_the_twelve_flag_words),
        TEST(refuses_contexts_that_are_none),
        TEST(asks_all_devices),
        TEST(aligns_up_to_the_largest_type),
        TEST(refuses_mixed_byte_orders),
        TEST(returns_null_where_there_is_no_memory),
        TEST(holds_the_context_of_each_allocation),
        TEST(frees_only_in_its_own_context),
        TEST(frees_by_queue),
        TEST(leaves_freeing_to_a_callback),
        TEST(frees_nothing_when_enqueueing_fails),
        TEST(buffers_over_pointers_are_no_larger),
        TEST(other_buffers_are_left_alone),
        TEST(only_our_extension_is_ours),
        TEST(shares_by_descriptor),
        TEST(shares_by_token),
        TEST(importers_share_on),
        TEST(contexts_of_one_process_share),
        TEST(refuses_handles_that_are_none),
        TEST(explains_what_fails),
        TEST(leaves_other_drivers_their_memory),
        TEST(leaves_other_devices_of_pocl_their_memory),
        TEST(serves_drivers_that_take_any_memory),
    };

    return test_run(tests, group_setup, svm_group_teardown);
}
