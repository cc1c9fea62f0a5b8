/* SPDX-License-Identifier: Apache-2.0 */
/* The memoryd provider: the broker's memory with all its options. shared.c does most of the work. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/memclient.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "umf/area.h"
#include "umf/log.h"
#include "umf/native_error.h"
#include "umf/shared.h"

#define THP "/sys/kernel/mm/transparent_hugepage/"

static __thread struct native_error last = {UMF_MEMORYD_RESULTS_START_FROM, "success"};

struct memoryd {
    struct shared shared;     /* the provider owns all that it points to */
    _Atomic uint64_t granule; /* of the pool named in the options; 0: not known yet */
};

static umf_result_t memoryd_fail(int r)
{
    log_because_of(r);
    native_error_set(&last, UMF_MEMORYD_RESULTS_START_FROM - r, memclient_error(), NULL);
    return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
}

/* Sets the native error for any failure, whatever the result. */
static umf_result_t result_of_alloc(int r)
{
    if (!r)
        return UMF_RESULT_SUCCESS;
    (void)memoryd_fail(r);
    switch (-r) {
    case ENOMEM:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    case EOPNOTSUPP:
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    default:
        return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
    }
}

static umf_result_t result_of_handle(int r)
{
    if (r)
        (void)memoryd_fail(r);
    return shared_handle_result(r);
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static bool memoryd_are_params_valid(const umf_memoryd_memory_provider_params_t *params)
{
    const unsigned both = MEMCLIENT_READ | MEMCLIENT_WRITE;

    return params->placement <= MEMCLIENT_PLACEMENT_LOCAL && params->pages <= MEMCLIENT_PAGES_HUGETLB &&
           !(params->flags & ~(unsigned)MEMCLIENT_ALLOC_PUBLISHABLE) && (!params->n_nodes || params->nodes) &&
           (!params->access || params->access == MEMCLIENT_READ || params->access == both ||
            params->access == MEMCLIENT_NO_ACCESS) &&
           (!params->shared_rights || params->shared_rights == MEMCLIENT_READ || params->shared_rights == both) &&
           (!params->page_size || is_power_of_two(params->page_size));
}

static void memoryd_finalize(void *provider)
{
    struct memoryd *memoryd = provider;

    shared_deinit(&memoryd->shared);
    free((void *)(uintptr_t)memoryd->shared.options.pool);
    free((void *)(uintptr_t)memoryd->shared.options.nodes);
    free((void *)(uintptr_t)memoryd->shared.options.weights);
    free((void *)(uintptr_t)memoryd->shared.name);
    free(memoryd);
}

/* Sets *failed if there is no memory for the copy. */
static const char *copy_text(const char *from, bool *failed)
{
    const char *to = from ? strdup(from) : NULL;

    *failed |= from && !to;
    return to;
}

static const uint32_t *copy_array(const uint32_t *from, size_t n, bool *failed)
{
    uint32_t *to = from && n ? calloc(n, sizeof(*to)) : NULL;

    if (to)
        memcpy(to, from, n * sizeof(*to));
    *failed |= from && n && !to;
    return to;
}

static bool copy_params(struct memoryd *memoryd, const umf_memoryd_memory_provider_params_t *params)
{
    bool failed = false;

    memoryd->shared = (struct shared){
        .profile = PROFILE_MEMORYD,
        .result_of = result_of_handle,
        .ctx = params->context,
        .access = params->access,
        .rights = params->shared_rights,
        .keep_ms = params->keep_ms,
        .maker = shared_new_maker(),
        .name = copy_text(params->name, &failed),
        .options =
            {
                .size = sizeof(memoryd->shared.options),
                .pool = copy_text(params->pool, &failed),
                .nodes = copy_array(params->nodes, params->n_nodes, &failed),
                .n_nodes = params->n_nodes,
                .placement = params->placement,
                .part_size = params->part_size,
                .weights = copy_array(params->weights, params->n_nodes, &failed),
                /* users of a pool split what it allocates, and have been told the size of its pages */
                .pages = params->pool || params->pages ? params->pages : MEMCLIENT_PAGES_BASE,
                .page_size = params->page_size,
                .flags = params->flags,
                .wait_ms = params->wait_ms,
            },
    };
    return !failed;
}

static umf_result_t memoryd_initialize(void *arg, void **provider)
{
    umf_memoryd_memory_provider_params_t params;
    struct memoryd *memoryd;

    if (sized_read(&params, sizeof(params), arg) || !memoryd_are_params_valid(&params))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    memoryd = calloc(1, sizeof(*memoryd));
    if (!memoryd)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    if (!copy_params(memoryd, &params)) {
        memoryd_finalize(memoryd);
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    *provider = memoryd;
    return UMF_RESULT_SUCCESS;
}

/* ---- pages, as files of the kernel have them at the moment ------------------------------------------------------- */

/* Parses the size of a page, after blanks; 0 if the text has none. */
static uint64_t size_in(const char *text, uint64_t unit)
{
    uint64_t n;

    errno = 0;
    n = strtoull(text, NULL, 10);
    return errno || n > UINT32_MAX || !is_power_of_two(n) ? 0 : n * unit;
}

/* The size of transparent huge pages, or 0 if the kernel makes none. */
static uint64_t pages_transparent(void)
{
    char line[64];

    if (!textfile_line(line, sizeof(line), THP "enabled") || strstr(line, "[never]"))
        return 0;
    return textfile_line(line, sizeof(line), THP "hpage_pmd_size") ? size_in(line, 1) : 0;
}

/* The default size of hugetlb pages, or 0. */
static uint64_t pages_huge(void)
{
    static const char label[] = "Hugepagesize:";
    _cleanup_fclose_ FILE *file = fopen("/proc/meminfo", "re");
    char line[256];

    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, label, sizeof(label) - 1))
            return size_in(line + sizeof(label) - 1, 1024);
    return 0;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static int note_granule(const struct memclient_pool_info *pool, void *data)
{
    struct memoryd *memoryd = data;

    if (!strcmp(pool->name, memoryd->shared.options.pool))
        memoryd->granule = pool->granule;
    return 0;
}

/*
 * The smallest page of what the provider allocates. The broker is asked only for a pool by name, and only once, since
 * a pool's granule never changes.
 */
static uint64_t granule_of(struct memoryd *memoryd)
{
    const struct memclient_alloc_options *options = &memoryd->shared.options;
    uint64_t huge = options->page_size;

    if (options->pages == MEMCLIENT_PAGES_HUGETLB) {
        if (!huge)
            huge = pages_huge();
        return huge ? huge : page_size();
    }
    if (!options->pool || options->pages != MEMCLIENT_PAGES_ANY)
        return page_size();
    if (!memoryd->granule)
        (void)memclient_list_pools(memoryd->shared.ctx, note_granule, memoryd);
    return memoryd->granule ? memoryd->granule : page_size();
}

static void memoryd_get_last_native_error(void *provider, const char **message, int32_t *error)
{
    native_error_get(&last, message, error);
}

static umf_result_t memoryd_get_recommended_page_size(void *provider, size_t size, size_t *page_size_of)
{
    struct memoryd *memoryd = provider;
    uint64_t page = granule_of(memoryd), huge = 0;

    if (!page_size_of)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (memoryd->shared.options.pages == MEMCLIENT_PAGES_THP)
        huge = pages_transparent();
    *page_size_of = (size_t)(huge > page && size >= huge ? huge : page);
    return UMF_RESULT_SUCCESS;
}

static umf_result_t memoryd_get_min_page_size(void *provider, void *ptr, size_t *page_size_of)
{
    struct memoryd *memoryd = provider;
    uint64_t page = ptr ? shared_page_size(&memoryd->shared, ptr) : granule_of(memoryd);

    if (!page_size_of || !page)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    *page_size_of = (size_t)page;
    return UMF_RESULT_SUCCESS;
}

static const char *memoryd_get_name(void *provider)
{
    return "memoryd";
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static umf_result_t memoryd_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    struct memoryd *memoryd = provider;
    uint64_t page = page_size();

    if (!ptr)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (alignment > page)
        page = granule_of(memoryd);
    if (alignment && alignment % page && page % alignment)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    return result_of_alloc(shared_alloc(&memoryd->shared, size, alignment, NULL, ptr));
}

/* The length of the range in whole pages; 0 if ptr or size is wrong. */
static uint64_t whole_pages(const struct memoryd *memoryd, const void *ptr, size_t size)
{
    uint64_t page = shared_page_size(&memoryd->shared, ptr);

    return page && is_aligned((uintptr_t)ptr, page) && size && size <= UINT64_MAX - page ? align_up(size, page) : 0;
}

static umf_result_t memoryd_free(void *provider, void *ptr, size_t size)
{
    const struct memoryd *memoryd = provider;
    uint64_t length;

    if (!ptr)
        return UMF_RESULT_SUCCESS;
    if (!is_page_aligned((uintptr_t)ptr) || !size)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    length = whole_pages(memoryd, ptr, size);
    return length ? shared_free(&memoryd->shared, ptr, length) : profile_for_unknown(PROFILE_MEMORYD);
}

static umf_result_t memoryd_purge_force(void *provider, void *ptr, size_t size)
{
    struct memoryd *memoryd = provider;
    uint64_t page;
    int r;

    if (!ptr)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    page = shared_page_size(&memoryd->shared, ptr);
    if (!page || !area_covers(&memoryd->shared, (uintptr_t)ptr, size ? size : 1))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if ((uintptr_t)ptr % page || (size % page && !profile_is_upstream(PROFILE_MEMORYD)))
        return UMF_RESULT_ERROR_INVALID_ALIGNMENT;
    if (!size)
        return UMF_RESULT_SUCCESS;
    r = shared_purge(&memoryd->shared, ptr, align_up(size, page));
    if (r == -EOPNOTSUPP)
        return UMF_RESULT_ERROR_NOT_SUPPORTED;
    return r ? memoryd_fail(r) : UMF_RESULT_SUCCESS;
}

/* The pages may stay if the system cannot discard them. */
static umf_result_t memoryd_purge_lazy(void *provider, void *ptr, size_t size)
{
    umf_result_t result = memoryd_purge_force(provider, ptr, size);

    return result == UMF_RESULT_ERROR_NOT_SUPPORTED ? UMF_RESULT_SUCCESS : result;
}

static umf_result_t memoryd_split(void *provider, void *ptr, size_t total, size_t first)
{
    const struct memoryd *memoryd = provider;

    if (!area_is_one(&memoryd->shared, (uintptr_t)ptr, total))
        return profile_for_unknown(PROFILE_MEMORYD);
    return first % shared_page_size(&memoryd->shared, ptr) ? UMF_RESULT_ERROR_INVALID_ALIGNMENT : UMF_RESULT_SUCCESS;
}

umf_memory_provider_ops_t *umfMemorydMemoryProviderOps(void)
{
    static umf_memory_provider_ops_t ops = {
        .version = UMF_VERSION_CURRENT,
        .initialize = memoryd_initialize,
        .finalize = memoryd_finalize,
        .alloc = memoryd_alloc,
        .free = memoryd_free,
        .get_last_native_error = memoryd_get_last_native_error,
        .get_recommended_page_size = memoryd_get_recommended_page_size,
        .get_min_page_size = memoryd_get_min_page_size,
        .get_name = memoryd_get_name,
        .ext = {memoryd_purge_lazy, memoryd_purge_force, shared_merge, memoryd_split},
        .ipc = {shared_get_ipc_handle_size, shared_get_ipc_handle, shared_put_ipc_handle, shared_open_ipc_handle,
                shared_close_ipc_handle},
    };

    return &ops;
}
