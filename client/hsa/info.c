/* SPDX-License-Identifier: Apache-2.0 */
/* See info.h. */
#include "hsa/info.h"

#include "hsa/runtime.h"

hsa_status_t info_put(const struct info *table, size_t n, uint32_t attribute, const void *object,
                      hsa_status_t no_object, void *value)
{
    hsa_status_t status = check(value, object ? HSA_STATUS_SUCCESS : no_object);

    if (status)
        return status;
    for (const struct info *info = table; info < table + n; info++) {
        if (info->attribute != attribute)
            continue;
        if (info->put)
            return info->put(object, value);
        memcpy(value, info->constant ? info->constant : (const char *)object + info->offset, info->size);
        return HSA_STATUS_SUCCESS;
    }
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
