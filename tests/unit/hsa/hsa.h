/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of the HSA facade begin with: a broker of their own with two simulated nodes, HSA initialised, and its
 * agents and pools found as programs find them.
 *
 * They link libmemclient-hsa as programs do.
 */
#pragma once

#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>
#include <memclient/hsa/hsa/hsa_ext_memoryd.h>
#include <memclient/memclient.h>

#include "tests/integration/observer.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"

#define AGENTS 2

enum { FINE, KERNARG, COARSE, POOLS };

extern hsa_agent_t agents[AGENTS];
/* One value for both, of each kind and agent. */
extern hsa_amd_memory_pool_t pools[AGENTS][POOLS];
extern hsa_region_t regions[AGENTS][POOLS];

#define assert_status(call, wanted) hsa_assert_status((call), (hsa_status_t)(wanted), #call, __FILE__, __LINE__)
#define assert_success(call)        assert_status(call, HSA_STATUS_SUCCESS)

void hsa_assert_status(hsa_status_t got, hsa_status_t wanted, const char *call, const char *file, int line);

/* For cmocka's groups: a broker is started and HSA initialised; `hsa_config` is more of its configuration, or NULL. */
extern const char *hsa_config;
int hsa_group_setup(void **state);
/* HSA is shut down, and the broker must have nothing left. */
int hsa_group_teardown(void **state);

/* After each test: the broker has no buffer left, and its sums are right. */
int hsa_nothing_left(void **state);

/* Skips where the kernel takes more mappings of a process than that, or something takes fewer than the kernel. */
void hsa_skip_unless_few_mappings(unsigned most);
