/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session sees of a buffer.
 */
#pragma once

#include <stdbool.h>

#include "broker/operations.h"
#include "broker/state.h"

/* Of one that it may see. */
void list_fill_buffer(struct broker *broker, const struct session *session, const struct buffer *buffer,
                      struct buffer_info *info);
/* Afterwards: the hold of session `holder` is among those that are told, in place of the last one if need be. */
void list_fill_holder(struct broker *broker, const struct session *session, const struct buffer *buffer,
                      uint64_t holder, struct buffer_info *info);
