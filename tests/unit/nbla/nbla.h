/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of the nbla facade begin with: readable failures, and for those that need one a broker with two simulated
 * nodes. They link libmemclient-nbla as programs do.
 */
#pragma once

#include <memclient/nbla.h>

#include "tests/integration/observer.h"
#include "tests/support/test.h"

/* The call gives just this; a failure has a sentence. */
#define assert_gives(call, wanted) nbla_assert_gives((call), (wanted), #call, __FILE__, __LINE__)
/* The call gives NULL or 0, and says why by nbla_error_code(). */
#define assert_fails(call, wanted) nbla_assert_fails((call) != 0, (wanted), #call, __FILE__, __LINE__)

void nbla_assert_gives(int got, int wanted, const char *call, const char *file, int line);
void nbla_assert_fails(bool worked, int wanted, const char *call, const char *file, int line);

/* For cmocka's groups: a broker is started; `nbla_config` is more of its configuration, or NULL. */
extern const char *nbla_config;
int nbla_group_setup(void **state);
int nbla_group_teardown(void **state);
/* After each test: the broker has nothing left. */
int nbla_nothing_left(void **state);

/* A memory that has been allocated; a chunk; a virtual memory of n chunks that is bound. They work. */
nbla_memory *nbla_allocated(size_t bytes);
nbla_physical_memory *nbla_chunk(size_t bytes);
nbla_memory *nbla_bound(size_t n, nbla_physical_memory *const *chunks);
