/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ..._get_info() functions, as tables of attributes. A value is the bytes of the attribute's type, at an address
 * that need not be aligned.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <memclient/hsa/hsa/hsa.h>

#define MACHINE_MODEL (sizeof(void *) == 8 ? HSA_MACHINE_MODEL_LARGE : HSA_MACHINE_MODEL_SMALL)

struct info {
    uint32_t attribute;
    uint32_t size;                                        /* of the value */
    const void *constant;                                 /* the value, if it is the same for all objects */
    size_t offset;                                        /* or where it is in the object */
    hsa_status_t (*put)(const void *object, void *value); /* or how to compute it */
};

/* clang-format off */
#define INFO_CONSTANT(name, type, number) \
    {.attribute = (name), .size = sizeof(type), .constant = &(const __typeof__(type)){number}}
#define INFO_FIELD(name, object, member) \
    {.attribute = (name), .size = sizeof(((struct object *)NULL)->member), .offset = offsetof(struct object, member)}
#define INFO_FUNCTION(name, function) {.attribute = (name), .put = (function)}
/* clang-format on */

/*
 * All of a ..._get_info() function. It fails with NOT_INITIALIZED if HSA is not up, with INVALID_ARGUMENT without a
 * value or if the table of n lacks the attribute, and with `no_object` if the object is NULL.
 */
hsa_status_t info_put(const struct info *table, size_t n, uint32_t attribute, const void *object,
                      hsa_status_t no_object, void *value);

#define INFO_PUT(table, attribute, object, no_object, value) \
    info_put(table, sizeof(table) / sizeof((table)[0]), (uint32_t)(attribute), object, no_object, value)
