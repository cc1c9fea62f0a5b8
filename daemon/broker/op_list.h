/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may see a buffer, and what of it.
 */
#pragma once

#include <stdbool.h>

#include "broker/operations.h"
#include "broker/state.h"

bool list_may_see_buffer(const struct broker *broker, const struct session *session, const struct buffer *buffer);
/* Of one that it may see. */
void list_fill_buffer(struct broker *broker, const struct session *session, const struct buffer *buffer,
                      struct buffer_info *info);
