/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/umf/result.h"

#include <memclient/memclient.h>

static const char *name_of(enum umf_result_t result)
{
    switch (result) {
    case UMF_RESULT_SUCCESS:
        return "SUCCESS";
    case UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY:
        return "OUT_OF_HOST_MEMORY";
    case UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC:
        return "MEMORY_PROVIDER_SPECIFIC";
    case UMF_RESULT_ERROR_INVALID_ARGUMENT:
        return "INVALID_ARGUMENT";
    case UMF_RESULT_ERROR_INVALID_ALIGNMENT:
        return "INVALID_ALIGNMENT";
    case UMF_RESULT_ERROR_NOT_SUPPORTED:
        return "NOT_SUPPORTED";
    case UMF_RESULT_ERROR_UNKNOWN:
        return "UNKNOWN";
    }
    return "?";
}

void umf_assert_result(enum umf_result_t got, enum umf_result_t wanted, const char *call, const char *file, int line)
{
    umf_memory_provider_handle_t failed = umfGetLastFailedMemoryProvider();
    const char *text = "";

    if (got == wanted)
        return;
    if (failed && got == UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC)
        umfMemoryProviderGetLastNativeError(failed, &text, NULL);
    print_error("%s\n    gave   %d %s (%s; %s)\n    wanted %d %s\n", call, (int)got, name_of(got), text,
                memclient_error(), (int)wanted, name_of(wanted));
    _fail(file, line);
}
