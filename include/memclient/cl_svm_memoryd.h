/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing OpenCL's shared virtual memory between processes: what the layer libmemclient-opencl adds to OpenCL, see
 * memclient-opencl(3). Both functions are found as those of extensions are:
 *
 *     clExportSVMMEMORYD_fn export_svm =
 *         (clExportSVMMEMORYD_fn)clGetExtensionFunctionAddressForPlatform(platform, "clExportSVMMEMORYD");
 *
 * NULL: the layer is not there. Including this needs no OpenCL; int32_t is cl_int, struct _cl_context * is cl_context.
 */
#ifndef MEMCLIENT_CL_SVM_MEMORYD_H
#define MEMCLIENT_CL_SVM_MEMORYD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct _cl_context;

/* How a handle is passed on: as a descriptor, by a socket or to a child; or as bytes, by whatever way. */
#define CL_SVM_HANDLE_FD_MEMORYD    0u
#define CL_SVM_HANDLE_TOKEN_MEMORYD 1u

typedef struct cl_svm_handle_memoryd {
    uint32_t type;     /* one of the above */
    int32_t fd;        /* FD: a shareable handle of memclient(3), the caller's to close; else -1 */
    uint8_t token[32]; /* TOKEN: one of memclient(3); it keeps nothing alive */
    uint64_t offset;   /* of the allocation, in the buffer that it lies in */
    uint64_t length;   /* of the allocation; for importing, 0 = to the buffer's end */
} cl_svm_handle_memoryd;

/*
 * Makes a handle, of the type that handle->type asks for, of the allocation or import that svm_pointer is in. In what
 * the handle leads to, other small allocations of this process may lie, and also where svm_pointer was, once that is
 * freed: importers should free theirs before. See memclient-opencl(3).
 *     CL_INVALID_CONTEXT    context is NULL
 *     CL_INVALID_VALUE      the type is none, handle is NULL, or the layer has not allocated svm_pointer in context
 *     CL_OUT_OF_RESOURCES   the broker refuses
 */
typedef int32_t (*clExportSVMMEMORYD_fn)(struct _cl_context *context, const void *svm_pointer,
                                         cl_svm_handle_memoryd *handle);

/*
 * Opens one, at the address that it has in the process that exported it; from then on it is as if clSVMAlloc() had
 * given it out, clSVMFree() included. The handle stays the caller's. NULL and *errcode_ret, unless that is NULL:
 *     CL_INVALID_CONTEXT                 context is not valid
 *     CL_INVALID_OPERATION               the driver takes no memory that is not its own
 *     CL_INVALID_VALUE                   it is no such handle, or offset and length go beyond its end
 *     CL_INVALID_HOST_PTR                something else is at that address in this process
 *     CL_OUT_OF_RESOURCES                the broker refuses: the memory has ended, or is not for this user
 */
typedef void *(*clImportSVMMEMORYD_fn)(struct _cl_context *context, const cl_svm_handle_memoryd *handle,
                                       int32_t *errcode_ret);

#ifdef __cplusplus
}
#endif

#endif
