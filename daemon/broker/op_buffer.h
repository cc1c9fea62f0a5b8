/* SPDX-License-Identifier: Apache-2.0 */
/* What may be told of a buffer, and to whom. */
#pragma once

#include <stdbool.h>

#include "broker/operations.h"

struct buffer;
struct session;

void fill_info(struct broker *broker, const struct session *session, const struct buffer *buffer,
               struct buffer_info *info);
bool may_see_buffer(const struct broker *broker, const struct session *session, const struct buffer *buffer);
