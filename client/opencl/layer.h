/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer's parts. Between a program and its OpenCL driver the loader puts this layer's table of functions; where an
 * entry of it is NULL, the driver's own is called. What the layer asks itself, it asks below it, by layer_below.
 */
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <memclient/cl_svm_memoryd.h>
#include <memclient/svm.h>

/* What is below: the loader keeps it as long as the process lives. */
extern const struct _cl_icd_dispatch *layer_below;

/* ---- layer_devices.c: what is below, in our words ---------------------------------------------------------- */

struct layer_devices {
    size_t n;
    struct memclient_svm_device *of;
    bool takes_our_memory; /* the driver works with memory that it has not allocated itself */
};

/* CL_SUCCESS, or why not: CL_INVALID_CONTEXT, CL_OUT_OF_HOST_MEMORY. */
cl_int layer_devices_get(cl_context context, struct layer_devices *devices);
void layer_devices_put(struct layer_devices *devices);

/* ---- layer_memory.c: allocations of contexts ---------------------------------------------------------------- */

/* The heap of all contexts; NULL without memory. */
struct memclient_svm *layer_heap(void);
/* The broker's memory is used; false: the driver has to serve, now and from now on, which has been said. */
bool layer_has_broker(void);
/* Why this function of OpenCL's or ours has failed, if somebody wants to know: the last sentence of svm_fail(). */
void layer_explain(const char *function);
/* Once in a process: `said` is that sentence's. */
void layer_say(atomic_flag *said, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* ---- layer_share.c ------------------------------------------------------------------------------------------ */

/* Of our extension; NULL: it has no such function. */
void *layer_extension(const char *name);

/* ---- layer_calls.c: what stands in for the driver's functions ----------------------------------------------- */

void layer_fill(struct _cl_icd_dispatch *table, cl_uint n);
