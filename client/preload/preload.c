/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmemclient-umf-proxy.so: with it in LD_PRELOAD, a program gets malloc() and the like from a jemalloc pool of this
 * library.
 *
 * The pool uses the same functions, so what it and anything that it calls allocate comes from the C library (`inside`).
 * So does what is allocated before there is a pool, by a thread that ends, and when the pool has no room. All memory of
 * the pool lies in one reserved range, so the address alone tells whose it is, without a lock or a search.
 *
 * Pages of the range become accessible when they are given out. Else mlockall() would allocate all of them, a core file
 * would contain them, and the limits of data and of committed memory would count them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/resource.h>

#include <memclient/umf/umf/memory_pool.h>
#include <memclient/umf/umf/memory_provider_ops.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>

#include "base/align.h"

#define EXPORT __attribute__((__visibility__("default")))

/* Half as much is tried where the kernel refuses, or RLIMIT_AS would leave little to threads' stacks and others. */
#define RESERVED_MOST  ((size_t)1 << 40)
#define RESERVED_LEAST ((size_t)64 << 20)

/* The C library's own. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *ptr);
/* Runs before the destructors of pthread_key_create(), which are the pool's. */
int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso);
extern void *__dso_handle __attribute__((__visibility__("hidden")));

static uintptr_t base, end;
static atomic_uintptr_t next; /* the first page that was not given out yet */
static _Atomic(umf_memory_pool_handle_t) pool;

/* In a library that a program starts with this costs no call. */
#define OF_THREAD static __thread __attribute__((__tls_model__("initial-exec")))
OF_THREAD bool inside, known, ending;

/* ---- the pool's provider: pages from the range, which are never given back but purged ---------------------------- */

static umf_result_t provider_initialize(void *params, void **provider)
{
    *provider = params;
    return UMF_RESULT_SUCCESS;
}

static void provider_finalize(void *provider) {}

static umf_result_t provider_alloc(void *provider, size_t size, size_t alignment, void **ptr)
{
    uintptr_t start, after, at = atomic_load_explicit(&next, memory_order_relaxed);

    if (alignment < page_size())
        alignment = (size_t)page_size();
    do {
        start = at + (alignment - at % alignment) % alignment;
        if (start < at || start > end || size > end - start)
            return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        after = start + (uintptr_t)page_align_up(size);
    } while (!atomic_compare_exchange_weak(&next, &at, after));
    if (mprotect((void *)start, after - start, PROT_READ | PROT_WRITE)) {
        /* given back, unless another thread has got what comes after it */
        (void)atomic_compare_exchange_strong(&next, &after, at);
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    *ptr = (void *)start;
    return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_free(void *provider, void *ptr, size_t size)
{
    return UMF_RESULT_ERROR_NOT_SUPPORTED;
}

static void provider_get_last_native_error(void *provider, const char **message, int32_t *error)
{
    *message = "";
    *error = 0;
}

static umf_result_t provider_get_page_size(void *provider, size_t size, size_t *page)
{
    *page = (size_t)page_size();
    return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_get_min_page_size(void *provider, void *ptr, size_t *page)
{
    return provider_get_page_size(provider, (size_t)!ptr, page);
}

static const char *provider_get_name(void *provider)
{
    return "preload";
}

static umf_result_t provider_purge_lazy(void *provider, void *ptr, size_t size)
{
    return madvise(ptr, size, MADV_FREE) ? UMF_RESULT_ERROR_UNKNOWN : UMF_RESULT_SUCCESS;
}

static umf_result_t provider_purge_force(void *provider, void *ptr, size_t size)
{
    return madvise(ptr, size, MADV_DONTNEED) ? UMF_RESULT_ERROR_UNKNOWN : UMF_RESULT_SUCCESS;
}

static umf_result_t provider_merge(void *provider, void *low, void *high, size_t total)
{
    return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_split(void *provider, void *ptr, size_t total, size_t first)
{
    return UMF_RESULT_SUCCESS;
}

static const umf_memory_provider_ops_t provider_ops = {
    .version = UMF_VERSION_CURRENT,
    .initialize = provider_initialize,
    .finalize = provider_finalize,
    .alloc = provider_alloc,
    .free = provider_free,
    .get_last_native_error = provider_get_last_native_error,
    .get_recommended_page_size = provider_get_page_size,
    .get_min_page_size = provider_get_min_page_size,
    .get_name = provider_get_name,
    .ext = {provider_purge_lazy, provider_purge_force, provider_merge, provider_split},
};

/* ---- the pool, or the C library ---------------------------------------------------------------------------------- */

static bool preload_owns(const void *ptr)
{
    return (uintptr_t)ptr - base < end - base;
}

static void preload_thread_ends(void *unused)
{
    ending = true;
}

/* The pool for an allocation, and pool_leave() after it; NULL: the C library is asked. */
static umf_memory_pool_handle_t pool_enter(void)
{
    umf_memory_pool_handle_t now = atomic_load_explicit(&pool, memory_order_acquire);

    if (inside || ending || !now)
        return NULL;
    inside = true;
    if (!known) {
        known = true;
        (void)__cxa_thread_atexit_impl(preload_thread_ends, NULL, &__dso_handle);
    }
    return now;
}

static void *pool_leave(void *ptr)
{
    inside = false;
    return ptr;
}

/* ---- the functions ----------------------------------------------------------------------------------------------- */

EXPORT void *malloc(size_t size)
{
    umf_memory_pool_handle_t from = pool_enter();
    void *ptr = from ? pool_leave(umfPoolMalloc(from, size)) : NULL;

    return ptr ? ptr : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
    umf_memory_pool_handle_t from = pool_enter();
    void *ptr = from ? pool_leave(umfPoolCalloc(from, n, size)) : NULL;

    return ptr ? ptr : __libc_calloc(n, size);
}

/* The C library rounds an alignment that is no power of two up to the next one; the pool refuses it. */
EXPORT void *memalign(size_t alignment, size_t size)
{
    bool is_odd = alignment & (alignment - 1);
    umf_memory_pool_handle_t from = is_odd ? NULL : pool_enter();
    void *ptr = from ? pool_leave(umfPoolAlignedMalloc(from, size, alignment)) : NULL;

    return ptr ? ptr : __libc_memalign(alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
    int number = errno;
    void *ptr;

    if (!is_power_of_two(alignment) || alignment % sizeof(void *))
        return EINVAL;
    ptr = memalign(alignment, size);
    errno = number;
    if (!ptr)
        return ENOMEM;
    *ret = ptr;
    return 0;
}

EXPORT void *valloc(size_t size)
{
    return memalign((size_t)page_size(), size);
}

EXPORT void *pvalloc(size_t size)
{
    if (size > SIZE_MAX - page_size()) {
        errno = ENOMEM;
        return NULL;
    }
    return memalign((size_t)page_size(), (size_t)page_align_up(size));
}

EXPORT void free(void *ptr)
{
    bool was = inside;
    int number = errno;

    inside = true;
    if (preload_owns(ptr))
        (void)umfPoolFree(atomic_load_explicit(&pool, memory_order_acquire), ptr);
    else
        __libc_free(ptr);
    inside = was;
    errno = number;
}

/* Moves to the C library what the pool has no room for. */
static void *preload_move_out(void *ptr, size_t size)
{
    void *to = __libc_malloc(size);

    if (to) {
        memcpy(to, ptr, MIN(size, malloc_usable_size(ptr)));
        free(ptr);
    }
    return to;
}

EXPORT void *realloc(void *ptr, size_t size)
{
    bool was = inside;
    void *to;

    if (!ptr)
        return malloc(size);
    if (!preload_owns(ptr))
        return __libc_realloc(ptr, size);
    inside = true;
    to = umfPoolRealloc(atomic_load_explicit(&pool, memory_order_acquire), ptr, size);
    inside = was;
    return to || !size ? to : preload_move_out(ptr, size);
}

EXPORT size_t malloc_usable_size(void *ptr)
{
    size_t (*of_libc)(void *ptr);
    void *address;

    if (!ptr)
        return 0;
    if (preload_owns(ptr))
        return umfPoolMallocUsableSize(atomic_load_explicit(&pool, memory_order_acquire), ptr);
    address = dlsym(RTLD_NEXT, "malloc_usable_size");
    memcpy(&of_libc, &address, sizeof(of_libc));
    return of_libc ? of_libc(ptr) : 0;
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

static bool preload_reserve(void)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    (void)getrlimit(RLIMIT_AS, &limit);
    for (size_t size = RESERVED_MOST; size >= RESERVED_LEAST; size /= 2) {
        void *at = MAP_FAILED;

        if (size <= limit.rlim_cur / 2)
            at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at != MAP_FAILED) {
            base = (uintptr_t)at;
            end = base + size;
            atomic_store(&next, base);
            return true;
        }
    }
    return false;
}

/* Without a pool the C library is used, which is said. */
__attribute__((__constructor__)) static void preload_loaded(void)
{
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t made;
    umf_jemalloc_pool_params_t params = {.disable_provider_free = true};

    inside = true;
    if (preload_reserve() && umfMemoryProviderCreate(&provider_ops, NULL, &provider) == UMF_RESULT_SUCCESS &&
        umfPoolCreate(umfJemallocPoolOps(), provider, &params, UMF_POOL_CREATE_FLAG_DISABLE_TRACKING, &made) ==
            UMF_RESULT_SUCCESS)
        atomic_store_explicit(&pool, made, memory_order_release);
    else
        (void)fputs("memclient-umf-proxy: no pool can be made; the C library's malloc() is used\n", stderr);
    if (secure_getenv("UMF_PROXY"))
        (void)fputs("memclient-umf-proxy: UMF_PROXY is ignored: all memory is private, whatever its size\n", stderr);
    inside = false;
}
