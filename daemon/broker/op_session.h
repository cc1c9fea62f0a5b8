/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that another broker left. */
#pragma once

struct broker;
struct session;

/* It goes on, with its claims. 0 or a negative errno. */
int session_restore(struct broker *broker, struct session *session);
