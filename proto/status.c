/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, errnos and texts of the wire's statuses, expanded from the one list in status.h.
 */
#include "proto/status.h"

#include <errno.h>
#include <stddef.h>

static const struct status_row {
    int error;
    const char *name;
    const char *text;
} rows[] = {
#define X(name, number, err, text) [number] = {err, #name, text},
    MEMORYD_STATUSES(X)
#undef X
};

static const struct status_row *status_row(unsigned status)
{
    return &rows[status < sizeof(rows) / sizeof(rows[0]) ? status : STATUS_REFUSED];
}

int status_errno(unsigned status)
{
    return status_row(status)->error;
}

const char *status_name(unsigned status)
{
    return status_row(status)->name;
}

const char *status_text(unsigned status)
{
    return status_row(status)->text;
}
