/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda.h. What is here of CUDA are names and types of its stable ABI, so that nothing of it is needed to build. */
#include "memctl/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memctl/library.h"

#define CUDA_FILE "libcuda.so.1"

struct cuda {
    int (*cuInit)(unsigned flags);
    int (*cuGetErrorString)(int error, const char **text);
    int (*cuDeviceGet)(int *device, int ordinal);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuDevicePrimaryCtxRelease_v2)(int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuMemHostRegister_v2)(void *memory, size_t bytes, unsigned flags);
    int (*cuMemHostUnregister)(void *memory);
    int (*cuMemHostAlloc)(void **memory, size_t bytes, unsigned flags);
    int (*cuMemFreeHost)(void *memory);
    int (*cuMemAlloc_v2)(unsigned long long *memory, size_t bytes);
    int (*cuMemFree_v2)(unsigned long long memory);
    int (*cuMemcpyHtoD_v2)(unsigned long long to, const void *from, size_t bytes);
};

/* What is measured with. */
struct cuda_trial {
    struct cuda cuda;
    void *memory;
    void *unregistered;
    unsigned long long device_memory;
    size_t bytes;
    int error; /* of the first call that failed */
};

static bool cuda_find_functions(void *library, struct cuda *cuda)
{
    static const char *const names[] = {"cuInit",
                                        "cuGetErrorString",
                                        "cuDeviceGet",
                                        "cuDevicePrimaryCtxRetain",
                                        "cuDevicePrimaryCtxRelease_v2",
                                        "cuCtxSetCurrent",
                                        "cuMemHostRegister_v2",
                                        "cuMemHostUnregister",
                                        "cuMemHostAlloc",
                                        "cuMemFreeHost",
                                        "cuMemAlloc_v2",
                                        "cuMemFree_v2",
                                        "cuMemcpyHtoD_v2"};

    _Static_assert(sizeof(*cuda) == sizeof(names), "a name for each function");
    return library_find(library, names, sizeof(names) / sizeof(names[0]), cuda);
}

/* Seconds since then, unless the call failed. */
static double cuda_since(struct cuda_trial *trial, double begin, int error)
{
    if (!error)
        return measure_now() - begin;
    if (!trial->error)
        trial->error = error;
    return -1;
}

static double cuda_time_register(void *data)
{
    struct cuda_trial *trial = data;
    double begin = measure_now(),
           seconds = cuda_since(trial, begin, trial->cuda.cuMemHostRegister_v2(trial->memory, trial->bytes, 0));

    if (seconds >= 0)
        (void)trial->cuda.cuMemHostUnregister(trial->memory);
    return seconds;
}

static double cuda_time_allocate(void *data)
{
    struct cuda_trial *trial = data;
    void *memory = NULL;
    double begin = measure_now(),
           seconds = cuda_since(trial, begin, trial->cuda.cuMemHostAlloc(&memory, trial->bytes, 0));

    if (seconds >= 0)
        (void)trial->cuda.cuMemFreeHost(memory);
    return seconds;
}

static double cuda_time_copy(struct cuda_trial *trial, const void *from)
{
    double begin = measure_now();

    return cuda_since(trial, begin, trial->cuda.cuMemcpyHtoD_v2(trial->device_memory, from, trial->bytes));
}

static double cuda_time_copy_registered(void *data)
{
    struct cuda_trial *trial = data;

    return cuda_time_copy(trial, trial->memory);
}

static double cuda_time_copy_unregistered(void *data)
{
    struct cuda_trial *trial = data;

    return cuda_time_copy(trial, trial->unregistered);
}

/* False: it stays unmeasured. */
static bool cuda_measure_copies(struct cuda_trial *trial, struct measured_ways *ret)
{
    const struct cuda *cuda = &trial->cuda;
    bool ok = false;

    trial->unregistered = malloc(trial->bytes);
    if (!trial->unregistered)
        return false;
    memset(trial->unregistered, 1, trial->bytes);
    if (!cuda->cuMemAlloc_v2(&trial->device_memory, trial->bytes)) {
        if (!cuda->cuMemHostRegister_v2(trial->memory, trial->bytes, 0)) {
            ok = measure_ways(cuda_time_copy_registered, cuda_time_copy_unregistered, trial, ret);
            (void)cuda->cuMemHostUnregister(trial->memory);
        }
        (void)cuda->cuMemFree_v2(trial->device_memory);
    }
    free(trial->unregistered);
    return ok;
}

static enum cuda_outcome cuda_try(struct cuda_trial *trial, struct measured_ways *registered,
                                  struct measured_ways *copied)
{
    const struct cuda *cuda = &trial->cuda;
    void *context = NULL;
    int device = 0;
    bool ok;

    *copied = (struct measured_ways){.good = 0};
    trial->error = cuda->cuInit(0);
    if (!trial->error)
        trial->error = cuda->cuDeviceGet(&device, 0);
    if (!trial->error)
        trial->error = cuda->cuDevicePrimaryCtxRetain(&context, device);
    if (trial->error)
        return CUDA_NOT_READY;
    trial->error = cuda->cuCtxSetCurrent(context);
    ok = !trial->error && measure_ways(cuda_time_register, cuda_time_allocate, trial, registered);
    if (ok)
        (void)cuda_measure_copies(trial, copied);
    (void)cuda->cuDevicePrimaryCtxRelease_v2(device);
    return ok ? CUDA_REGISTERED : CUDA_REFUSED;
}

enum cuda_outcome cuda_register(void *memory, size_t bytes, struct measured_ways *registered,
                                struct measured_ways *copied, char *why, size_t size)
{
    struct cuda_trial trial = {.memory = memory, .bytes = bytes};
    void *library = dlopen(CUDA_FILE, RTLD_LAZY | RTLD_LOCAL);
    enum cuda_outcome outcome;
    const char *text = NULL;

    if (!library || !cuda_find_functions(library, &trial.cuda)) {
        (void)snprintf(why, size, "%s", library ? CUDA_FILE " lacks a function" : dlerror());
        return CUDA_NO_LIBRARY;
    }
    outcome = cuda_try(&trial, registered, copied);
    if (outcome != CUDA_REGISTERED && (trial.cuda.cuGetErrorString(trial.error, &text) || !text))
        text = "it gives no reason";
    (void)snprintf(why, size, "%s", text ? text : "");
    return outcome;
}
