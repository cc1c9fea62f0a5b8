/* SPDX-License-Identifier: Apache-2.0 */
/* See native_error.h. */
#include "umf/native_error.h"

#include <stdio.h>

void native_error_set(struct native_error *error, int32_t code, const char *beginning, const char *detail)
{
    error->code = code;
    if (detail && *detail)
        (void)snprintf(error->text, sizeof(error->text), "%s: %s", beginning, detail);
    else
        (void)snprintf(error->text, sizeof(error->text), "%s", beginning);
}

void native_error_get(const struct native_error *error, const char **message, int32_t *code)
{
    if (message)
        *message = error->text;
    if (code)
        *code = error->code;
}
