/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a result, and names the one it was instead. */
#pragma once

#include <memclient/umf/umf/memory_provider.h>

#include "tests/support/test.h"

#define assert_result(call, wanted) umf_assert_result((call), (wanted), #call, __FILE__, __LINE__)
#define assert_success(call)        assert_result(call, UMF_RESULT_SUCCESS)

void umf_assert_result(enum umf_result_t got, enum umf_result_t wanted, const char *call, const char *file, int line);
