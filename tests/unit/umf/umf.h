/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of the UMF facade begin with: readable failures, and for those that share memory a broker of their own
 * with two simulated nodes, which the process-wide context finds.
 *
 * They link libmemclient-umf as programs do.
 */
#pragma once

#include <memclient/memclient.h>
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>

#include "tests/integration/observer.h"
#include "tests/support/test.h"
#include "tests/unit/umf/result.h"

/* The call gives MEMORY_PROVIDER_SPECIFIC, and the provider this number and a text that begins so. */
#define assert_native(provider, call, number, beginning) \
    do { \
        assert_result(call, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC); \
        umf_assert_native((provider), (number), (beginning), #call, __FILE__, __LINE__); \
    } while (0)

void umf_assert_native(umf_memory_provider_handle_t provider, int32_t number, const char *beginning, const char *call,
                       const char *file, int line);

/* For cmocka's groups: a broker is started; `umf_config` is more of its configuration, or NULL. */
extern const char *umf_config;
int umf_group_setup(void **state);
/* The broker must have nothing left. */
int umf_group_teardown(void **state);

/* After each test: the broker has no buffer left, and its sums are right. */
int umf_nothing_left(void **state);

/* Memory of a provider that `make` makes can be read and written as its umf_mem_protection_flags_t say. */
void umf_check_protections(umf_memory_provider_handle_t (*make)(unsigned protection));

/* The rest of the process has the answers of upstream's releases, or of the document. */
void umf_profile(enum umf_memoryd_profile_t profile);
