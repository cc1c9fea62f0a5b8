/* SPDX-License-Identifier: Apache-2.0 */
/* The environment is looked at once, when the answer is first needed. */
#include "umf/profile.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/umf/umf/providers/provider_memoryd.h>

static atomic_int profile = -1; /* -1: not looked at yet */

bool profile_is_upstream(void)
{
    int now = atomic_load_explicit(&profile, memory_order_relaxed);
    const char *text;

    if (now >= 0)
        return now == UMF_MEMORYD_PROFILE_UPSTREAM;
    text = secure_getenv("MEMORYD_UMF_PROFILE");
    now = text && !strcmp(text, "upstream") ? UMF_MEMORYD_PROFILE_UPSTREAM : UMF_MEMORYD_PROFILE_DOCUMENT;
    /* unless somebody has chosen meanwhile */
    (void)atomic_compare_exchange_strong(&profile, &(int){-1}, now);
    return atomic_load_explicit(&profile, memory_order_relaxed) == UMF_MEMORYD_PROFILE_UPSTREAM;
}

umf_result_t profile_for_unknown(void)
{
    return profile_is_upstream() ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

umf_result_t umfMemorydSetProfile(enum umf_memoryd_profile_t wanted)
{
    if (wanted != UMF_MEMORYD_PROFILE_DOCUMENT && wanted != UMF_MEMORYD_PROFILE_UPSTREAM)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    atomic_store_explicit(&profile, (int)wanted, memory_order_relaxed);
    return UMF_RESULT_SUCCESS;
}
