/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's extension, by which contexts of several processes share memory. See <memclient/cl_svm_memoryd.h>. */
#include <errno.h>
#include <string.h>

#include "opencl/error.h"
#include "opencl/layer.h"
#include "opencl/svm.h"

static const char no_handle[] = "the handle is NULL, or its type is neither a descriptor nor a token";

/* Explains a refusal of the layer's own. */
static cl_int refuse_share(const char *function, cl_int error, const char *why)
{
    (void)svm_fail(-EINVAL, "%s", why);
    layer_explain(function);
    return error;
}

static cl_int layer_export_svm(cl_context context, const void *ptr, cl_svm_handle_memoryd *handle)
{
    cl_svm_handle_memoryd made = {.fd = -1};
    struct memclient_token token;
    int r;

    if (!context)
        return refuse_share("clExportSVMMEMORYD", CL_INVALID_CONTEXT, "the context is NULL");
    if (!handle || handle->type > CL_SVM_HANDLE_TOKEN_MEMORYD)
        return refuse_share("clExportSVMMEMORYD", CL_INVALID_VALUE, no_handle);
    made.type = handle->type;
    if (made.type == CL_SVM_HANDLE_FD_MEMORYD) {
        r = svm_export_fd(context, ptr, 0, &made.fd, &made.offset, &made.length);
    } else {
        r = svm_share(context, ptr, NULL, &token, &made.offset, &made.length);
        if (!r)
            memcpy(made.token, token.bytes, sizeof(made.token));
    }
    if (r) {
        layer_explain("clExportSVMMEMORYD");
        return r == -EFAULT ? CL_INVALID_VALUE : CL_OUT_OF_RESOURCES;
    }
    *handle = made;
    return CL_SUCCESS;
}

static cl_int layer_error_of(int r)
{
    switch (-r) {
    case 0:
        return CL_SUCCESS;
    case EADDRINUSE:
    case EADDRNOTAVAIL:
        return CL_INVALID_HOST_PTR;
    case EOVERFLOW:
    case EBADF:
    case EBADMSG:
    case EREMOTE:
        return CL_INVALID_VALUE;
    default:
        return CL_OUT_OF_RESOURCES;
    }
}

static int layer_open_handle(const cl_svm_handle_memoryd *handle, struct memclient_buffer **buf)
{
    struct memclient_token token;

    if (handle->type == CL_SVM_HANDLE_FD_MEMORYD)
        return svm_native(memclient_import_fd(NULL, handle->fd, buf));
    memcpy(token.bytes, handle->token, sizeof(token.bytes));
    return svm_native(memclient_open_token(NULL, &token, 0, buf));
}

static cl_int layer_import_into(cl_context context, const cl_svm_handle_memoryd *handle, void **ptr)
{
    struct layer_devices devices = {0};
    struct memclient_buffer *buf;
    bool takes;
    cl_int error = layer_devices_get(context, &devices);
    int r;

    takes = devices.takes_our_memory;
    layer_devices_put(&devices);
    if (error != CL_SUCCESS)
        return refuse_share("clImportSVMMEMORYD", error,
                            "the context is invalid, or the driver does not list its devices");
    if (!handle || handle->type > CL_SVM_HANDLE_TOKEN_MEMORYD)
        return refuse_share("clImportSVMMEMORYD", CL_INVALID_VALUE, no_handle);
    if (!takes)
        return refuse_share("clImportSVMMEMORYD", CL_INVALID_OPERATION, "the driver takes no memory but its own");
    if (!layer_heap())
        return refuse_share("clImportSVMMEMORYD", CL_OUT_OF_HOST_MEMORY, "no memory for the records of a heap");
    r = layer_open_handle(handle, &buf);
    if (!r)
        r = svm_import(layer_heap(), context, buf, handle->offset, handle->length, ptr);
    if (!r)
        (void)layer_below->clRetainContext(context);
    else
        layer_explain("clImportSVMMEMORYD");
    return layer_error_of(r);
}

static void *layer_import_svm(cl_context context, const cl_svm_handle_memoryd *handle, cl_int *error_ret)
{
    void *ptr = NULL;
    cl_int error = layer_import_into(context, handle, &ptr);

    if (error_ret)
        *error_ret = error;
    return ptr;
}

void *layer_extension(const char *name)
{
    const clExportSVMMEMORYD_fn export_function = layer_export_svm;
    const clImportSVMMEMORYD_fn import_function = layer_import_svm;
    void *address = NULL;

    /* POSIX, unlike C, has the address of a function as one of data */
    if (!strcmp(name, "clExportSVMMEMORYD"))
        memcpy(&address, &export_function, sizeof(address));
    else if (!strcmp(name, "clImportSVMMEMORYD"))
        memcpy(&address, &import_function, sizeof(address));
    return address;
}
