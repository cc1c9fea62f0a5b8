/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares OpenCL's shared virtual memory between processes: an extension of OpenCL by the layer libmemclient-opencl, see
 * memclient-opencl(3). Programs find both functions like those of other extensions:
 *
 *     clExportSVMMEMORYD_fn export_svm =
 *         (clExportSVMMEMORYD_fn)clGetExtensionFunctionAddressForPlatform(platform, "clExportSVMMEMORYD");
 *
 * NULL: there is no layer. This header needs no OpenCL; int32_t is cl_int, and struct _cl_context * is cl_context.
 */
#ifndef MEMCLIENT_CL_SVM_MEMORYD_H
#define MEMCLIENT_CL_SVM_MEMORYD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct _cl_context;

/* A handle is a descriptor, to be passed over a socket or to a child, or a token, whose bytes may travel any way. */
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
 * Makes a handle, of type handle->type, of the allocation or import that holds svm_pointer. Its buffer may have other
 * small allocations of this process, and another one in this place once this one is freed: importers should free first.
 * See memclient-opencl(3).
 *     CL_INVALID_CONTEXT    context is NULL
 *     CL_INVALID_VALUE      the type is unknown, handle is NULL, or the layer has not allocated svm_pointer in context
 *     CL_OUT_OF_RESOURCES   the broker refuses
 */
typedef int32_t (*clExportSVMMEMORYD_fn)(struct _cl_context *context, const void *svm_pointer,
                                         cl_svm_handle_memoryd *handle);

/*
 * Imports by a handle, at the address of the exporting process. The memory is then like an allocation of clSVMAlloc(),
 * to be freed by clSVMFree(). The handle stays the caller's. On failure NULL, and *errcode_ret, unless that is NULL:
 *     CL_INVALID_CONTEXT                 context is not valid
 *     CL_INVALID_OPERATION               the driver takes no memory that is not its own
 *     CL_INVALID_VALUE                   it is no handle, or offset and length go beyond its buffer's end
 *     CL_INVALID_HOST_PTR                this process has something else at that address
 *     CL_OUT_OF_RESOURCES                the broker refuses: the memory is gone, or this user has no right to it
 */
typedef void *(*clImportSVMMEMORYD_fn)(struct _cl_context *context, const cl_svm_handle_memoryd *handle,
                                       int32_t *errcode_ret);

#ifdef __cplusplus
}
#endif

#endif
