/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ..._get_info() functions hand out a value: just the bytes of the attribute's type, at an address that need
 * not be aligned, and SUCCESS.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <memclient/hsa/hsa/hsa.h>

static inline hsa_status_t answer(void *value, const void *bytes, size_t size)
{
    memcpy(value, bytes, size);
    return HSA_STATUS_SUCCESS;
}

static inline hsa_status_t answer_zeros(void *value, size_t size)
{
    memset(value, 0, size);
    return HSA_STATUS_SUCCESS;
}

static inline hsa_status_t answer_bool(void *value, bool is)
{
    return answer(value, &is, sizeof(is));
}

static inline hsa_status_t answer_u8(void *value, uint8_t number)
{
    return answer(value, &number, sizeof(number));
}

static inline hsa_status_t answer_u16(void *value, uint16_t number)
{
    return answer(value, &number, sizeof(number));
}

/* Also for enumerations, whose types have this size. */
static inline hsa_status_t answer_u32(void *value, uint32_t number)
{
    return answer(value, &number, sizeof(number));
}

static inline hsa_status_t answer_u64(void *value, uint64_t number)
{
    return answer(value, &number, sizeof(number));
}

static inline hsa_status_t answer_size(void *value, size_t size)
{
    return answer(value, &size, sizeof(size));
}
