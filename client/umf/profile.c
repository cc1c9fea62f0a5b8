/* SPDX-License-Identifier: Apache-2.0 */
/* The environment is looked at once, when the answer is first needed. */
#include "umf/profile.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/umf/umf/providers/provider_memoryd.h>

/* Beside enum umf_memoryd_profile_t. */
enum { NOT_LOOKED_AT = -2, NOBODY_CHOSE = -1 };

static atomic_int profile = NOT_LOOKED_AT;

static int of_environment(void)
{
    const char *text = secure_getenv("MEMORYD_UMF_PROFILE");

    if (text && !strcmp(text, "document"))
        return UMF_MEMORYD_PROFILE_DOCUMENT;
    if (text && !strcmp(text, "upstream"))
        return UMF_MEMORYD_PROFILE_UPSTREAM;
    return NOBODY_CHOSE;
}

bool profile_is_upstream(enum profile_provider provider)
{
    int now = atomic_load_explicit(&profile, memory_order_relaxed), not_yet = NOT_LOOKED_AT;

    if (now == NOT_LOOKED_AT) {
        /* unless somebody has chosen meanwhile */
        (void)atomic_compare_exchange_strong(&profile, &not_yet, of_environment());
        now = atomic_load_explicit(&profile, memory_order_relaxed);
    }
    return now == NOBODY_CHOSE ? provider == PROFILE_OS : now == UMF_MEMORYD_PROFILE_UPSTREAM;
}

umf_result_t profile_for_unknown(enum profile_provider provider)
{
    return profile_is_upstream(provider) ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

umf_result_t umfMemorydSetProfile(enum umf_memoryd_profile_t wanted)
{
    if (wanted != UMF_MEMORYD_PROFILE_DOCUMENT && wanted != UMF_MEMORYD_PROFILE_UPSTREAM)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    atomic_store_explicit(&profile, (int)wanted, memory_order_relaxed);
    return UMF_RESULT_SUCCESS;
}
