/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OS provider's operations. They check the arguments, and allocate anonymous memory here or shared memory in
 * shared.c.
 */
#include "umf/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/align.h"
#include "umf/area.h"
#include "umf/log.h"
#include "umf/native_error.h"

static __thread struct native_error last = {UMF_OS_RESULT_SUCCESS, "success"};

/* ---- native errors ----------------------------------------------------------------------------------------------- */

static const char *os_text_of(umf_os_memory_provider_native_error_t error)
{
    static const char *const texts[] = {
        "success",
        "memory allocation failed",
        "allocated address is not aligned",
        "binding memory to NUMA node failed",
        "memory deallocation failed",
        "lazy purging failed",
        "force purging failed",
        "HWLOC topology discovery failed", /* programs compare it, though there is no hwloc here */
    };

    return texts[error - UMF_OS_RESULT_SUCCESS];
}

/* Sets the thread's native error, with the text of an errno unless that is 0. */
static umf_result_t os_fail(umf_os_memory_provider_native_error_t error, int number)
{
    char text[128];

    native_error_set(&last, error, os_text_of(error), number ? strerror_r(number, text, sizeof(text)) : NULL);
    return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
}

/* The same with the text of memclient_error(). */
static umf_result_t os_fail_shared(umf_os_memory_provider_native_error_t error)
{
    native_error_set(&last, error, os_text_of(error), memclient_error());
    return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
}

static umf_result_t os_result_of(int r)
{
    umf_result_t result = shared_handle_result(r);

    log_because_of(r);
    return result == UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC ? os_fail_shared(UMF_OS_RESULT_ERROR_ALLOC_FAILED)
                                                               : result;
}

/* ---- anonymous memory of the process ----------------------------------------------------------------------------- */

static long call_mbind(void *address, unsigned long length, int mode, const unsigned long *nodes, unsigned long max,
                       unsigned flags)
{
    return syscall(SYS_mbind, address, length, mode, nodes, max, flags);
}

static long call_get_mempolicy(int *mode, unsigned long *nodes, unsigned long max, void *address, unsigned long flags)
{
    return syscall(SYS_get_mempolicy, mode, nodes, max, address, flags);
}

static const struct os_calls kernel = {
    .mmap = mmap,
    .munmap = munmap,
    .madvise = madvise,
    .mbind = call_mbind,
    .get_mempolicy = call_get_mempolicy,
};

const struct os_calls *os_calls = &kernel;

/* Of `length` + `more` mapped bytes, keeps `length` that begin at a multiple of the alignment. */
static void *cut_ends(char *at, uint64_t length, uint64_t more, uint64_t alignment)
{
    uint64_t skip = (alignment - (uintptr_t)at % alignment) % alignment;

    if (skip)
        (void)os_calls->munmap(at, (size_t)skip);
    if (more > skip)
        (void)os_calls->munmap(at + skip + length, (size_t)(more - skip));
    return at + skip;
}

/* Maps `length` bytes at a multiple of `alignment`, itself a multiple of the page size: maps more, and cuts the ends
 * off. */
static umf_result_t map_aligned(int protection, uint64_t length, uint64_t alignment, void **ptr)
{
    const uint64_t page = page_size(), more = alignment - page;
    uint64_t total;
    char *at;

    if (__builtin_add_overflow(length, more, &total) || total > SIZE_MAX)
        return os_fail(UMF_OS_RESULT_ERROR_ALLOC_FAILED, ENOMEM);
    at = os_calls->mmap(NULL, (size_t)total, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return os_fail(UMF_OS_RESULT_ERROR_ALLOC_FAILED, errno);
    if (!is_page_aligned((uintptr_t)at)) {
        (void)os_calls->munmap(at, (size_t)total);
        return os_fail(UMF_OS_RESULT_ERROR_ADDRESS_NOT_ALIGNED, 0);
    }
    *ptr = more ? cut_ends(at, length, more, alignment) : at;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t os_private_alloc(struct os *os, size_t size, size_t alignment, void **ptr)
{
    const uint64_t page = page_size();
    uint64_t length = size, before = 0;
    struct area area = {.owner = &os->shared};
    umf_result_t result;
    void *at = NULL;
    int r;

    if (!size)
        return os_fail(UMF_OS_RESULT_ERROR_ALLOC_FAILED, EINVAL);
    if (size > SIZE_MAX - page)
        return os_fail(UMF_OS_RESULT_ERROR_ALLOC_FAILED, ENOMEM);
    length = page_align_up(size);
    result = map_aligned(os->protection, length, alignment > page ? alignment : page, &at);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    if (os->mode == UMF_NUMA_MODE_INTERLEAVE)
        before = __atomic_fetch_add(&os->allocated, size, __ATOMIC_RELAXED);
    r = os_numa_bind(os, at, length, before);
    if (r) {
        (void)os_calls->munmap(at, (size_t)length);
        return os_fail(UMF_OS_RESULT_ERROR_BIND_FAILED, -r);
    }
    area.start = (uintptr_t)at;
    area.length = length;
    if (area_add(&area)) {
        (void)os_calls->munmap(at, (size_t)length);
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    *ptr = at;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t os_private_release(const struct area *taken)
{
    int number;

    if (!os_calls->munmap((void *)(uintptr_t)taken->start, (size_t)taken->length))
        return UMF_RESULT_SUCCESS;
    /* the kernel refuses if unmapping a part would make too many mappings */
    number = errno;
    area_put_back(taken);
    return os_fail(UMF_OS_RESULT_ERROR_FREE_FAILED, number);
}

static umf_result_t os_private_purge(void *ptr, size_t size, int advice, umf_os_memory_provider_native_error_t error)
{
    return os_calls->madvise(ptr, size, advice) < 0 ? os_fail(error, errno) : UMF_RESULT_SUCCESS;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static bool is_in(const unsigned *nodes, unsigned n, unsigned node)
{
    for (unsigned i = 0; i < n; i++)
        if (nodes[i] == node)
            return true;
    return false;
}

/* Partitions are checked in any mode, though only SPLIT uses them. */
static bool are_partitions_valid(const umf_os_memory_provider_params_t *params)
{
    if (params->partitions_len && !params->partitions)
        return false;
    for (unsigned i = 0; i < params->partitions_len; i++)
        if (!params->partitions[i].weight ||
            !is_in(params->numa_list, params->numa_list_len, params->partitions[i].target))
            return false;
    return true;
}

static bool is_numa_valid(const umf_os_memory_provider_params_t *params)
{
    if ((params->numa_list_len && !params->numa_list) || !are_partitions_valid(params))
        return false;
    switch (params->numa_mode) {
    case UMF_NUMA_MODE_DEFAULT:
    case UMF_NUMA_MODE_LOCAL:
        return !params->numa_list_len;
    case UMF_NUMA_MODE_BIND:
    case UMF_NUMA_MODE_INTERLEAVE:
    case UMF_NUMA_MODE_SPLIT:
        return params->numa_list_len;
    case UMF_NUMA_MODE_PREFERRED:
        return true;
    default:
        return false;
    }
}

static bool os_are_params_valid(const umf_os_memory_provider_params_t *params)
{
    const unsigned all = UMF_PROTECTION_NONE | UMF_PROTECTION_READ | UMF_PROTECTION_WRITE | UMF_PROTECTION_EXEC;

    return params && !(params->protection & ~all) &&
           (params->visibility == UMF_MEM_MAP_PRIVATE || params->visibility == UMF_MEM_MAP_SHARED) &&
           is_numa_valid(params);
}

static void os_finalize(void *provider)
{
    struct os *os = provider;

    shared_deinit(&os->shared);
    free(os->nodes);
    free(os->partitions);
    free((void *)(uintptr_t)os->shared.name);
    free(os);
}

/* By default each node gets an equal part. */
static int copy_partitions(struct os *os, const umf_os_memory_provider_params_t *params)
{
    os->n_partitions = params->partitions_len ? params->partitions_len : os->n_nodes;
    os->partitions = calloc(os->n_partitions, sizeof(*os->partitions));
    if (!os->partitions)
        return -ENOMEM;
    for (unsigned i = 0; i < os->n_partitions; i++)
        os->partitions[i] =
            params->partitions_len ? params->partitions[i] : (umf_numa_split_partition_t){1, os->nodes[i]};
    return 0;
}

static int copy_numa(struct os *os, const umf_os_memory_provider_params_t *params)
{
    os->mode = params->numa_mode;
    os->part_size = params->part_size;
    os->n_nodes = params->numa_list_len;
    if (os->n_nodes) {
        os->nodes = calloc(os->n_nodes, sizeof(*os->nodes));
        if (!os->nodes)
            return -ENOMEM;
        memcpy(os->nodes, params->numa_list, os->n_nodes * sizeof(*os->nodes));
    }
    return os->mode == UMF_NUMA_MODE_SPLIT ? copy_partitions(os, params) : 0;
}

/* Names for shm_open() begin with a slash, and the broker's do not. */
static int copy_name(struct os *os, const char *name)
{
    os->shared.name = strdup(name + strspn(name, "/"));
    return os->shared.name ? 0 : -ENOMEM;
}

static void set_protection(struct os *os, unsigned protection)
{
    os->protection = (protection & UMF_PROTECTION_READ ? PROT_READ : 0) |
                     (protection & UMF_PROTECTION_WRITE ? PROT_WRITE : 0) |
                     (protection & UMF_PROTECTION_EXEC ? PROT_EXEC : 0);
    if (os->protection & PROT_WRITE)
        os->shared.access = 0;
    else
        os->shared.access = os->protection ? MEMCLIENT_READ : MEMCLIENT_NO_ACCESS;
    os->shared.rights = os->protection & PROT_WRITE ? 0 : MEMCLIENT_READ;
    os->shared.protection = os->protection & PROT_EXEC ? os->protection : 0;
}

static umf_result_t os_initialize(void *arg, void **provider)
{
    const umf_os_memory_provider_params_t *params = arg;
    struct os *os;
    int r;

    if (!os_are_params_valid(params)) {
        log_because("the protection, visibility, NUMA mode, list of nodes or a partition is invalid");
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    }
    r = params->numa_mode == UMF_NUMA_MODE_DEFAULT ? 0 : os_numa_discover();
    if (r)
        return os_fail(UMF_OS_RESULT_ERROR_TOPO_DISCOVERY_FAILED, -r);
    os = calloc(1, sizeof(*os));
    if (!os)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    os->visibility = params->visibility;
    os->shared.profile = PROFILE_OS;
    os->shared.result_of = os_result_of;
    os->shared.release_private = os->visibility == UMF_MEM_MAP_PRIVATE ? os_private_release : NULL;
    os->shared.options.size = sizeof(os->shared.options);
    os->shared.options.pages = MEMCLIENT_PAGES_BASE; /* users split allocations, as they may with anonymous memory */
    os->shared.options.flags = MEMCLIENT_ALLOC_SHARED_SOON; /* such a provider is made for sharing */
    os->shared.maker = shared_new_maker();
    set_protection(os, params->protection);
    r = copy_numa(os, params);
    if (!r && params->shm_name && os->visibility == UMF_MEM_MAP_SHARED)
        r = copy_name(os, params->shm_name);
    if (r) {
        os_finalize(os);
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    os->shared.name_is_optional = true;
    *provider = os;
    return UMF_RESULT_SUCCESS;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool has_no_such_nodes(int r)
{
    return r == -ENXIO || r == -ENODEV;
}

static umf_result_t os_shared_alloc(struct os *os, size_t size, size_t alignment, void **ptr)
{
    uint64_t before = __atomic_fetch_add(&os->allocated, size, __ATOMIC_RELAXED);
    struct os_request request;
    int r = os_numa_request(os, before, &request);

    if (r)
        return os_fail(UMF_OS_RESULT_ERROR_BIND_FAILED, -r);
    do
        r = shared_alloc(&os->shared, size, alignment, &request.options, ptr);
    while (has_no_such_nodes(r) && os_numa_request_fewer(os, &request));
    if (!r)
        return UMF_RESULT_SUCCESS;
    return os_fail_shared(has_no_such_nodes(r) ? UMF_OS_RESULT_ERROR_BIND_FAILED : UMF_OS_RESULT_ERROR_ALLOC_FAILED);
}

static umf_result_t os_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    const size_t page = (size_t)page_size();
    struct os *os = provider;

    if (!ptr || (alignment && alignment % page && page % alignment))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    return os->visibility == UMF_MEM_MAP_SHARED ? os_shared_alloc(os, size, alignment, ptr)
                                                : os_private_alloc(os, size, alignment, ptr);
}

static umf_result_t os_free(void *provider, void *ptr, size_t size)
{
    const struct os *os = provider;

    if (!ptr)
        return UMF_RESULT_SUCCESS;
    if (!is_page_aligned((uintptr_t)ptr) || !size || size > SIZE_MAX - page_size())
        return os_fail(UMF_OS_RESULT_ERROR_FREE_FAILED, EINVAL);
    return shared_free(&os->shared, ptr, page_align_up(size));
}

static umf_result_t os_purge(struct os *os, void *ptr, size_t size, int advice,
                             umf_os_memory_provider_native_error_t error)
{
    int r;

    if (!ptr)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    if (!is_page_aligned((uintptr_t)ptr) || size % page_size()) {
        if (!profile_is_upstream(PROFILE_OS))
            return UMF_RESULT_ERROR_INVALID_ALIGNMENT;
        if (!is_page_aligned((uintptr_t)ptr) || size > SIZE_MAX - page_size())
            return os_fail(error, EINVAL);
        size = (size_t)page_align_up(size);
    }
    if (!size)
        return UMF_RESULT_SUCCESS;
    if (!area_covers(&os->shared, (uintptr_t)ptr, size))
        return os_fail(error, EFAULT);
    if (os->visibility == UMF_MEM_MAP_PRIVATE)
        return os_private_purge(ptr, size, advice, error);
    r = shared_purge(&os->shared, ptr, size);
    return r ? os_fail_shared(error) : UMF_RESULT_SUCCESS;
}

static umf_result_t os_purge_lazy(void *provider, void *ptr, size_t size)
{
    return os_purge(provider, ptr, size, MADV_FREE, UMF_OS_RESULT_ERROR_PURGE_LAZY_FAILED);
}

static umf_result_t os_purge_force(void *provider, void *ptr, size_t size)
{
    return os_purge(provider, ptr, size, MADV_DONTNEED, UMF_OS_RESULT_ERROR_PURGE_FORCE_FAILED);
}

/* Nothing needs to be done: a part can be freed at any time. */
static umf_result_t os_split(void *provider, void *ptr, size_t total, size_t first)
{
    const struct os *os = provider;

    return area_is_one(&os->shared, (uintptr_t)ptr, total) ? UMF_RESULT_SUCCESS : profile_for_unknown(PROFILE_OS);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static void os_get_last_native_error(void *provider, const char **message, int32_t *error)
{
    native_error_get(&last, message, error);
}

static umf_result_t os_get_min_page_size(void *provider, void *ptr, size_t *page_size_of)
{
    if (!page_size_of)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    *page_size_of = (size_t)page_size();
    return UMF_RESULT_SUCCESS;
}

/* As upstream, this provider does not ask for huge pages. */
static umf_result_t os_get_recommended_page_size(void *provider, size_t size, size_t *page_size_of)
{
    return os_get_min_page_size(provider, NULL, page_size_of);
}

static const char *os_get_name(void *provider)
{
    return "OS";
}

umf_memory_provider_ops_t *umfOsMemoryProviderOps(void)
{
    static umf_memory_provider_ops_t ops = {
        .version = UMF_VERSION_CURRENT,
        .initialize = os_initialize,
        .finalize = os_finalize,
        .alloc = os_alloc,
        .free = os_free,
        .get_last_native_error = os_get_last_native_error,
        .get_recommended_page_size = os_get_recommended_page_size,
        .get_min_page_size = os_get_min_page_size,
        .get_name = os_get_name,
        .ext = {os_purge_lazy, os_purge_force, shared_merge, os_split},
        .ipc = {shared_get_ipc_handle_size, shared_get_ipc_handle, shared_put_ipc_handle, shared_open_ipc_handle,
                shared_close_ipc_handle},
    };

    return &ops;
}
