/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the broker in coarse allocations: what the OS provider's shared memory and the memoryd provider have in
 * common. An allocation is a buffer, mapped at its home; parts of it that are freed are unmapped, and their pages go
 * back as long as nobody else holds the buffer; with the last part the buffer goes.
 *
 * A handle for other processes is a token of the buffer, made once, and which part of it is meant.
 *
 * Functions that can fail return a negative errno, and memclient_error() has the sentence.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/memclient.h>
#include <memclient/umf/umf/base.h>

#include "umf/area.h"

/* ---- profiles -------------------------------------------------------------------------------------------- */

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
enum profile_provider { PROFILE_OS, PROFILE_MEMORYD };

/* As MEMORYD_UMF_PROFILE has it, or umfMemorydSetProfile(), or else by provider. */
bool profile_is_upstream(enum profile_provider provider);

/* The answer to a pointer that a provider does not know. It never touches what lies there. */
umf_result_t profile_for_unknown(enum profile_provider provider);

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* What a provider wants its memory to be like; the first member of its own struct, and the owner of its areas. */
struct shared {
    enum profile_provider profile;
    /* What a failure is for UMF, 0 included, noted as this thread's native error. */
    umf_result_t (*result_of)(int r);
    /* Of a provider of the process's private memory, which has no handles; NULL: the memory is the broker's. */
    umf_result_t (*release_private)(const struct area *taken);
    struct memclient *ctx;
    struct memclient_alloc_options options; /* what it points to is the provider's */
    unsigned access;     /* of mappings: 0 = what the rights allow, MEMCLIENT_READ, MEMCLIENT_NO_ACCESS */
    int protection;      /* of mappings, for mprotect(): what no access of memclient's is; 0 = nothing to add */
    unsigned rights;     /* that handles grant, as memclient_share() has it */
    uint64_t keep_ms;    /* for how long a handle keeps the memory; 0 = it does not */
    const char *name;    /* buffers are NAME/1 and so on; NULL = they have no names */
    bool name_is_optional; /* another's name is no reason to fail */
    uint64_t names;      /* given so far */
    uint64_t maker;      /* which provider made a handle */
};

/* A number for a provider, unlike that of any other of this process or another. */
uint64_t shared_new_maker(void);

/* options: instead of the provider's own, or NULL. alignment: any multiple or divisor of the granule, 0 = none. */
int shared_alloc(struct shared *shared, uint64_t size, uint64_t alignment,
                 const struct memclient_alloc_options *options, void **ptr);
/* Frees whole pages at ptr, of one allocation or several, as far as they are this provider's. */
umf_result_t shared_free(const struct shared *shared, void *ptr, uint64_t length);
/* All that it has is freed. */
void shared_deinit(const struct shared *shared);
/* Gives the pages back. -EFAULT: a part of it is not this provider's. */
int shared_purge(const struct shared *shared, void *ptr, uint64_t length);
/* The pages of what is there. 0 if that is not this provider's. */
uint64_t shared_page_size(const struct shared *shared, const void *ptr);

/* Makes known what was mapped, with the count of the buffer, on success; else unmaps it. */
int shared_note(struct shared *shared, enum area_kind kind, void *ptr, uint64_t length, uint64_t offset,
                struct shared_buffer *buffer);

/* ---- handles --------------------------------------------------------------------------------------------- */

#define SHARED_HANDLE_SIZE 64

/* A handle of a part of a buffer. maker 0: no provider has made it, and none takes it back. */
void shared_make_handle(const struct memclient_token *token, uint64_t offset, uint64_t length, uint64_t maker,
                        void *data);
/* What such a failure is, for UMF. */
umf_result_t shared_handle_result(int r);

/* ---- operations of the provider whose struct begins with a struct shared ----------------------------------- */

umf_result_t shared_merge(void *provider, void *low, void *high, size_t total);
umf_result_t shared_get_ipc_handle_size(void *provider, size_t *size);
umf_result_t shared_get_ipc_handle(void *provider, const void *ptr, size_t size, void *data);
umf_result_t shared_put_ipc_handle(void *provider, void *data);
umf_result_t shared_open_ipc_handle(void *provider, void *data, void **ptr);
umf_result_t shared_close_ipc_handle(void *provider, void *ptr, size_t size);
