/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which answer is given where UMF's document and what its 0.9 releases do differ, and no answer could be both:
 *
 *                                                   document            upstream
 *     purge of a range that is no number of pages   INVALID_ALIGNMENT   as the kernel has it
 *     a handle of private memory of the OS          NOT_SUPPORTED       INVALID_ARGUMENT
 *     closing an unknown pointer at a provider      INVALID_ARGUMENT    SUCCESS
 *     freeing an unknown aligned pointer there,     INVALID_ARGUMENT    SUCCESS
 *     splitting or merging what it does not have
 *
 * Where nobody chooses, the OS provider answers as upstream's does, since programs are written to that, and the memoryd
 * provider, which upstream does not have, by the document.
 */
#pragma once

#include <stdbool.h>

#include <memclient/umf/umf/base.h>

enum profile_provider { PROFILE_OS, PROFILE_MEMORYD };

/* As MEMORYD_UMF_PROFILE has it, or umfMemorydSetProfile(), or else by provider. */
bool profile_is_upstream(enum profile_provider provider);

/* The answer to a pointer that a provider does not know. It never touches what lies there. */
umf_result_t profile_for_unknown(enum profile_provider provider);
