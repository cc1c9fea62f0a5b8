/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of OpenCL that is just a table of functions, with devices as a test wants them, under the real layer: what
 * comes down to it is counted, and what no machine's driver would say, it says.
 */
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <stddef.h>

struct fake_device {
    cl_ulong max_alloc;
    cl_device_svm_capabilities capabilities; /* 0: it does not know the question */
    const char *profile;
    const char *extensions;
    cl_bool little_endian;
    cl_device_type type;
};

/* A whole one: 2 GiB, everything that PoCL can. */
extern const struct fake_device fake_full;

/* What the platform says of itself. */
extern const char *fake_version;

struct fake_seen {
    unsigned allocs, frees, enqueued_frees, callbacks, retains, releases, buffers;
};
extern struct fake_seen fake_seen;

/* The functions with the layer over the driver. */
extern struct _cl_icd_dispatch cl;

/* Puts the layer onto the driver. */
void fake_start(void);

cl_context fake_context(size_t n, const struct fake_device *devices);
cl_command_queue fake_queue(cl_context context);
/* The next command fails with this, once. */
extern cl_int fake_failure;

/* What was enqueued to be freed is so now, in another thread, as drivers do. */
void fake_execute(void);
