/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ..._get_info() functions answer, as tables of attributes. A value is just the bytes of the attribute's type,
 * at an address that need not be aligned.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <memclient/hsa/hsa/hsa.h>

#define MACHINE_MODEL (sizeof(void *) == 8 ? HSA_MACHINE_MODEL_LARGE : HSA_MACHINE_MODEL_SMALL)

struct info {
    uint32_t attribute;
    uint32_t size;        /* of the value */
    const void *constant; /* it, if it is the same for all objects */
    size_t offset;        /* else where it is in the object */
    hsa_status_t (*put)(const void *object, void *value); /* or what finds it out */
};

#define INFO_CONSTANT(name, type, number) \
    {.attribute = (name), .size = sizeof(type), .constant = &(const __typeof__(type)){number}}
#define INFO_FIELD(name, object, member) \
    {.attribute = (name), .size = sizeof(((struct object *)NULL)->member), .offset = offsetof(struct object, member)}
#define INFO_FUNCTION(name, function) {.attribute = (name), .put = (function)}

/*
 * A whole ..._get_info() function. HSA must be up. The status is INVALID_ARGUMENT without a value or if the table of n
 * has no such attribute, and `no_object` if the object is NULL.
 */
hsa_status_t info_put(const struct info *table, size_t n, uint32_t attribute, const void *object,
                      hsa_status_t no_object, void *value);

#define INFO_PUT(table, attribute, object, no_object, value) \
    info_put(table, sizeof(table) / sizeof((table)[0]), (uint32_t)(attribute), object, no_object, value)
