/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the families of serve functions share.
 */

#include "broker/verbs.h"
#include "proto/memoryd.pb-c.h"

/* WRITE implies READ. */
uint32_t complete_rights(uint32_t rights);

/* Of a message that was validated. */
void name_args_from(struct name_args *args, const Memoryd__V1__NameBindRequest *message);

/* A message that points into `info`, which stays where it is until the message is packed. */
void buffer_info_message(Memoryd__V1__BufferInfo *message, struct buffer_info *info);
