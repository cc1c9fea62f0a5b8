/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that the process of a session has occupied by what other brokers gave it. */
#pragma once

#include <stdint.h>

#include "broker/operations.h"

struct session;

/* The session's process has these occupied, as far as they are in the arena and its limits allow. */
void session_occupies(struct broker *broker, struct session *session, const struct hello_args *args);
/* It wants an address in one of them: it has that no more. */
void session_vacates(struct broker *broker, struct session *session, uint64_t start, uint64_t size);
