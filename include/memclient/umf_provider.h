/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's memory as a provider for UMF's own library, release 1.x, for programs that stay with libumf, and need to
 * share memory in ways that its providers cannot.
 *
 *     #include <umf.h>                        // libumf's
 *     #include <memclient/umf_provider.h>
 *
 *     struct memclient_umf_params params = MEMCLIENT_UMF_PARAMS_INIT;
 *     umf_memory_provider_handle_t provider;
 *
 *     umfMemoryProviderCreate(memclient_umf_provider_ops(), &params, &provider);
 *
 * Build with `pkg-config --cflags --libs memclient-umf-provider`. That library exports none of UMF's functions, so it
 * can be used with libumf in one process. This header needs neither libumf's headers nor ours. In memclient-umf the
 * same provider is umfMemorydMemoryProviderOps().
 */
#ifndef MEMCLIENT_UMF_PROVIDER_H
#define MEMCLIENT_UMF_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#define MEMCLIENT_UMF_API __attribute__((__visibility__("default")))

#ifdef __cplusplus
extern "C" {
#endif

struct memclient_context;
struct umf_memory_provider_ops_t;

/*
 * The memory that the provider allocates. Initialise it with MEMCLIENT_UMF_PARAMS_INIT: new versions add fields at the
 * end. If the program is older than the library, these are zero, the default. If it is newer, what the library does not
 * have must be zero (UMF_RESULT_ERROR_INVALID_ARGUMENT). Strings and arrays are copied when the provider is created.
 * Numbers are those of <memclient/memclient.h>.
 */
struct memclient_umf_params {
    size_t size; /* of this struct */
    struct memclient_context
        *context;            /* whose session to use; NULL: the process-wide one. It must outlive the provider */
    const char *pool;        /* a pool of the broker by name; NULL: chosen by nodes and pages */
    const uint32_t *nodes;   /* node numbers */
    size_t n_nodes;          /* 0: any */
    unsigned placement;      /* enum memclient_placement */
    uint64_t part_size;      /* of interleaving */
    const uint32_t *weights; /* of splitting, n_nodes of them; NULL: equal parts */
    unsigned pages;          /* enum memclient_pages; MEMCLIENT_PAGES_ANY without a pool: base pages */
    uint64_t page_size;      /* of MEMCLIENT_PAGES_HUGETLB; 0: the default huge page */
    unsigned flags;          /* MEMCLIENT_ALLOC_PUBLISHABLE */
    unsigned access;         /* of mappings: 0 (reading and writing), MEMCLIENT_READ or MEMCLIENT_NO_ACCESS */
    unsigned shared_rights;  /* what handles for other processes grant: 0 (reading and writing) or MEMCLIENT_READ */
    uint64_t wait_ms;        /* how long to wait for room if the pool is full */
    const char *name;        /* buffers are named "NAME/1", "NAME/2", ... until they are freed; NULL: not at all */
    uint64_t keep_ms;        /* a handle keeps its memory for so long after it was made first, even if this process
                                 * ends; freeing ends that. 0 = it opens as long as somebody has the memory */
};
#define MEMCLIENT_UMF_PARAMS_INIT                                                                       \
    {                                                                                                   \
        sizeof(struct memclient_umf_params), NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, 0, 0, 0, 0, NULL, 0 \
    }

/*
 * The operations as of version 1.0 of UMF's ops, which later releases 1.x accept: a static table, never NULL.
 * Parameters are a struct memclient_umf_params, or NULL for the defaults. The broker is not called before memory is
 * needed.
 *
 * Creating a provider fails with UMF_RESULT_ERROR_INVALID_ARGUMENT if the size is invalid or a number is not in its
 * enum. Native errors are 3000 + errno, with memclient_error()'s text. Handles for other processes have 64 bytes, and
 * are the same as memclient-umf's, so either side may use either.
 */
MEMCLIENT_UMF_API const struct umf_memory_provider_ops_t *memclient_umf_provider_ops(void);

#ifdef __cplusplus
}
#endif

#endif
