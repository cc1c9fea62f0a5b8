/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of our providers' handles: their kind, and a checksum of the rest. It detects damage, not forgery. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct check {
    uint32_t magic;
    uint32_t value;
};

/* FNV-1a of all behind struct check, in a handle of `size` bytes. */
static inline uint32_t check_value(const void *handle, size_t size)
{
    const uint8_t *bytes = handle;
    uint32_t value = UINT32_C(2166136261);

    for (size_t i = sizeof(struct check); i < size; i++)
        value = (value ^ bytes[i]) * UINT32_C(16777619);
    return value;
}

/* Call this last, when the rest is complete. */
static inline void check_seal(void *handle, size_t size, uint32_t magic)
{
    *(struct check *)handle = (struct check){.magic = magic, .value = check_value(handle, size)};
}

/* Copies a handle. False: it is NULL, of another kind, or damaged. */
static inline bool check_read(void *handle, size_t size, uint32_t magic, const void *data)
{
    const struct check *check = handle;

    if (!data)
        return false;
    memcpy(handle, data, size);
    return check->magic == magic && check->value == check_value(handle, size);
}
