/* SPDX-License-Identifier: Apache-2.0 */
/* The check value of providers' handles: against bytes that were damaged on their way, not against those who forge. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* FNV-1a. */
static inline uint32_t check_value(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint32_t check = UINT32_C(2166136261);

    for (size_t i = 0; i < size; i++)
        check = (check ^ bytes[i]) * UINT32_C(16777619);
    return check;
}
