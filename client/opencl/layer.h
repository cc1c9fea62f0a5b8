/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer's parts. The loader puts this layer's table of functions between a program and its OpenCL driver. Where an
 * entry is NULL, the loader calls the driver's. The layer itself calls OpenCL by layer_below.
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

/* The functions below the layer. The loader keeps them as long as the process lives. */
extern const struct _cl_icd_dispatch *layer_below;

/* ---- layer_devices.c: the devices of a context ------------------------------------------------------------------- */

struct layer_devices {
    size_t n;
    struct memclient_svm_device *of;
    bool takes_our_memory; /* their driver works with memory that it has not allocated itself */
};

/* CL_SUCCESS, CL_INVALID_CONTEXT or CL_OUT_OF_HOST_MEMORY. */
cl_int layer_devices_get(cl_context context, struct layer_devices *devices);
void layer_devices_put(struct layer_devices *devices);

/* ---- layer_memory.c: allocations of contexts --------------------------------------------------------------------- */

/* The heap of all contexts; NULL without memory. */
struct memclient_svm *layer_heap(void);
/* Does the broker serve allocations? If not, the driver does from now on, and a message has said so. */
bool layer_has_broker(void);
/* Prints why a function of OpenCL or the extension has failed, by svm_fail(), if the environment asks for that. */
void layer_explain(const char *function);
/* Prints a sentence once in a process: `said` belongs to it. */
void layer_say(atomic_flag *said, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* ---- layer_share.c ----------------------------------------------------------------------------------------------- */

/* A function of the extension; NULL: it has none of that name. */
void *layer_extension(const char *name);

/* ---- layer_calls.c: the functions that replace the driver's ------------------------------------------------------ */

void layer_fill(struct _cl_icd_dispatch *table, cl_uint n);
