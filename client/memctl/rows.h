/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of each listing.
 */
#pragma once

#include <jansson.h>
#include <memclient/memclient.h>

#include "memctl/output.h"

/* The sums over all nodes, and over pools of huge pages. */
struct capacity {
    uint64_t capacity, used;           /* base pages and transparent huge ones */
    uint64_t huge_capacity, huge_used; /* reserved huge pages */
};

struct status_row {
    struct memclient_broker_info status;
    struct memclient_context_info connection;
    struct capacity capacity;
};

/* of a struct status_row, and of what the library's listings give */
extern const struct column status_columns[];
extern const struct column node_columns[];
extern const struct column pool_columns[];
extern const struct column buffer_columns[];
extern const struct column leak_columns[]; /* of a buffer; maker's program and openers are null until they are known */
extern const struct column session_columns[];
extern const struct column reservation_columns[];
extern const struct column name_columns[];
extern const struct column token_columns[];
extern const struct column check_columns[]; /* of a struct memclient_check_result */
