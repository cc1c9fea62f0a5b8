/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number and sentence of a provider's last MEMORY_PROVIDER_SPECIFIC result. Each kind of provider has one for each
 * thread, so no lock is needed.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct native_error {
    int32_t code;
    char text[512];
};

/* Sets "beginning: detail", or only the beginning if there is no detail. */
static inline void native_error_set(struct native_error *error, int32_t code, const char *beginning, const char *detail)
{
    error->code = code;
    if (detail && *detail)
        (void)snprintf(error->text, sizeof(error->text), "%s: %s", beginning, detail);
    else
        (void)snprintf(error->text, sizeof(error->text), "%s", beginning);
}

/* Either pointer may be NULL. */
static inline void native_error_get(const struct native_error *error, const char **message, int32_t *code)
{
    if (message)
        *message = error->text;
    if (code)
        *code = error->code;
}
