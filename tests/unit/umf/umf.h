/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of tests of the UMF facade: readable failures, and for tests that share memory a broker of their own
 * with two simulated nodes, which the process-wide context finds.
 *
 * The tests link libmemclient-umf as programs do.
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

/* Checks that the call gives MEMORY_PROVIDER_SPECIFIC, and that the provider then has this number and a text with this
 * beginning. */
#define assert_native(provider, call, number, beginning)                                 \
    do {                                                                                 \
        assert_result(call, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);                  \
        umf_assert_native((provider), (number), (beginning), #call, __FILE__, __LINE__); \
    } while (0)

void umf_assert_native(umf_memory_provider_handle_t provider, int32_t number, const char *beginning, const char *call,
                       const char *file, int line);

/* For cmocka's groups: starts a broker. `umf_config` is added to its configuration, or NULL. */
extern const char *umf_config;
int umf_group_setup(void **state);
/* Checks that the broker has nothing left. */
int umf_group_teardown(void **state);

/* After each test: checks that the broker has no buffer left, and that its sums are right. */
int umf_nothing_left(void **state);

/* Checks that memory of the providers that `make` makes can be read and written as their umf_mem_protection_flags_t
 * say. */
void umf_check_protections(umf_memory_provider_handle_t (*make)(unsigned protection));

/* Selects the results of upstream's releases or of the document for the rest of the process. */
void umf_profile(enum umf_memoryd_profile_t profile);
