/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One broker and one context of it, for all tests of a program:
 *
 *     return test_run(tests, context_setup, context_teardown);
 */
#pragma once

#include "tests/integration/clients.h"

extern struct broker_process broker;
extern struct memclient_context *ctx;

int context_setup(void **state);
int context_teardown(void **state);

/* A buffer of the context's, with MEMCLIENT_... flags of its allocation. */
struct memclient_buffer *make(uint64_t size, unsigned flags);
