/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's memory in coarse allocations, for the OS provider's shared memory and the memoryd provider. An
 * allocation is a buffer, mapped at its home address. Freeing a part unmaps it, and discards its pages unless somebody
 * else holds the buffer. Freeing the last part frees the buffer.
 *
 * A handle for other processes is a token of the buffer, made once, with an offset and a length.
 *
 * Functions that can fail return a negative errno; memclient_error() explains it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/memclient.h>
#include <memclient/umf/umf/base.h>

#include "umf/area.h"

/* ---- profiles ---------------------------------------------------------------------------------------------------- */

/*
 * UMF's document and its 0.9 releases disagree in some cases where no answer can satisfy both:
 *
 *                                                   document            upstream
 *     purge of a range that is not whole pages      INVALID_ALIGNMENT   the kernel's answer
 *     handle of the OS provider's private memory    NOT_SUPPORTED       INVALID_ARGUMENT
 *     provider-level close of an unknown pointer    INVALID_ARGUMENT    SUCCESS
 *     freeing an unknown aligned pointer there,     INVALID_ARGUMENT    SUCCESS
 *     splitting or merging unknown memory
 *
 * By default the OS provider answers as upstream's does, since programs were written for it. The memoryd provider,
 * which upstream does not have, follows the document.
 */
enum profile_provider { PROFILE_OS, PROFILE_MEMORYD };

/* As MEMORYD_UMF_PROFILE or umfMemorydSetProfile() says; else the provider's default. */
bool profile_is_upstream(enum profile_provider provider);

/* The result for a pointer that the provider does not know. It never touches the memory there. */
umf_result_t profile_for_unknown(enum profile_provider provider);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The provider's settings: the first member of its struct, and the owner of its areas. */
struct shared {
    enum profile_provider profile;
    /* Turns 0 or a negative errno into a result, and sets the thread's native error. */
    umf_result_t (*result_of)(int r);
    /* Of the OS provider with private memory, which has no handles; NULL: the memory is the broker's. */
    umf_result_t (*release_private)(const struct area *taken);
    struct memclient_context *ctx;
    struct memclient_alloc_options options; /* the provider owns what it points to */
    unsigned access;       /* of mappings: 0 (as the rights allow), MEMCLIENT_READ or MEMCLIENT_NO_ACCESS */
    int protection;        /* of mappings, for mprotect() where `access` cannot say it; 0: nothing to add */
    unsigned rights;       /* that handles grant, as for memclient_share() */
    uint64_t keep_ms;      /* how long a handle keeps the memory; 0: it does not */
    const char *name;      /* buffers are named NAME/1 and so on; NULL: not at all */
    bool name_is_optional; /* a name that is taken is no failure */
    uint64_t names;        /* number of the last name */
    uint64_t maker;        /* the provider's number in its handles */
};

/* Returns a number that no other provider has, in this process or another. */
uint64_t shared_new_maker(void);

/* options NULL: the provider's own. alignment: a multiple or divisor of the granule; 0: none. */
int shared_alloc(struct shared *shared, uint64_t size, uint64_t alignment,
                 const struct memclient_alloc_options *options, void **ptr);
/* Frees whole pages of one allocation or several, as far as they are this provider's. */
umf_result_t shared_free(const struct shared *shared, void *ptr, uint64_t length);
/* Frees all that the provider has. */
void shared_deinit(const struct shared *shared);
/* Discards the pages. -EFAULT: a part of the range is not this provider's. */
int shared_purge(const struct shared *shared, void *ptr, uint64_t length);
/* The page size of the memory there; 0 if it is not this provider's. */
uint64_t shared_page_size(const struct shared *shared, const void *ptr);

/* Adds an area for what was mapped, and takes the reference to the buffer. Unmaps it on failure. */
int shared_note(struct shared *shared, enum area_kind kind, void *ptr, uint64_t length, uint64_t offset,
                struct shared_buffer *buffer);

/* ---- handles ----------------------------------------------------------------------------------------------------- */

#define SHARED_HANDLE_SIZE 64

/* Writes a handle of a part of a buffer. maker 0: no provider made it, so none takes it back. */
void shared_make_handle(const struct memclient_token *token, uint64_t offset, uint64_t length, uint64_t maker,
                        void *data);
/* The result for an errno of a handle operation. */
umf_result_t shared_handle_result(int r);

/* ---- operations of the provider whose struct begins with a struct shared ----------------------------------------- */

umf_result_t shared_merge(void *provider, void *low, void *high, size_t total);
umf_result_t shared_get_ipc_handle_size(void *provider, size_t *size);
umf_result_t shared_get_ipc_handle(void *provider, const void *ptr, size_t size, void *data);
umf_result_t shared_put_ipc_handle(void *provider, void *data);
umf_result_t shared_open_ipc_handle(void *provider, void *data, void **ptr);
umf_result_t shared_close_ipc_handle(void *provider, void *ptr, size_t size);
