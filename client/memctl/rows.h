/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON object of each kind of thing. NULL only for want of memory. What is absent is null; a list may be empty.
 */
#pragma once

#include <jansson.h>
#include <memclient/memclient.h>

#include "memctl/output.h"

/* The sums of what all nodes, or pools, have. */
struct capacity {
    uint64_t capacity, used;           /* base pages and transparent huge ones */
    uint64_t huge_capacity, huge_used; /* huge pages that are set aside */
};

extern const struct column buffer_columns[];

json_t *row_status(const struct memclient_broker_status *status,
                   const struct memclient_connection_info *connection, const struct capacity *capacity);
json_t *row_node(const struct memclient_node *node);
json_t *row_pool(const struct memclient_pool *pool);
json_t *row_buffer(const struct memclient_buffer_info *info);
/* of a buffer whose maker's program is not known yet */
json_t *row_leak(const struct memclient_buffer_info *info);
json_t *row_session(const struct memclient_session *session);
json_t *row_reservation(const struct memclient_reservation_info *reservation);
json_t *row_name(const struct memclient_name *name);
json_t *row_token(const struct memclient_token_info *token);
json_t *row_reload(const struct memclient_reload_result *result);
json_t *row_upgrade(const struct memclient_broker_status *before, const struct memclient_broker_status *now,
                    uint64_t ms);
json_t *row_check(const struct memclient_check_result *result);
/* what rm was given, and what that is: a name, a buffer or a token */
json_t *row_removed(const char *kind, const char *given);

