/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of what history.c and holders.c show.
 */
#pragma once

#include "memctl/output.h"

extern const struct column history_columns[]; /* of a struct memclient_history_entry */
extern const struct column limit_columns[];   /* of a struct memclient_limit_info */
extern const struct column holder_columns[];  /* of rows that are made already */

/* A sentence for people about a struct memclient_history_entry. */
void history_describe(const void *entry, char *text, size_t size);
