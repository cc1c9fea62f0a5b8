/* SPDX-License-Identifier: Apache-2.0 */
/* See info.h. */
#include "hsa/info.h"

hsa_status_t info_put(const struct info *table, size_t n, uint32_t attribute, const void *object, void *value)
{
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
