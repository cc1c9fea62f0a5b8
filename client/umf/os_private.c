/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous memory of the process: mmap() and what belongs to it. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/align.h"
#include "umf/area.h"
#include "umf/os.h"

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

/* Of `length` + `more` bytes that were mapped there those are kept that begin at a multiple of the alignment. */
static void *cut_ends(char *at, uint64_t length, uint64_t more, uint64_t alignment)
{
    uint64_t skip = (alignment - (uintptr_t)at % alignment) % alignment;

    if (skip)
        (void)os_calls->munmap(at, (size_t)skip);
    if (more > skip)
        (void)os_calls->munmap(at + skip + length, (size_t)(more - skip));
    return at + skip;
}

/* Maps `length` bytes at a multiple of `alignment`, which is one of the page size: maps more, and cuts the ends off. */
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

umf_result_t os_private_alloc(struct os *os, size_t size, size_t alignment, void **ptr)
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

umf_result_t os_private_release(const struct area *taken)
{
    int number;

    if (!os_calls->munmap((void *)(uintptr_t)taken->start, (size_t)taken->length))
        return UMF_RESULT_SUCCESS;
    /* the kernel refuses where it would have to remember more ranges than it may */
    number = errno;
    area_put_back(taken);
    return os_fail(UMF_OS_RESULT_ERROR_FREE_FAILED, number);
}

umf_result_t os_private_purge(void *ptr, size_t size, int advice, umf_os_memory_provider_native_error_t error)
{
    return os_calls->madvise(ptr, size, advice) < 0 ? os_fail(error, errno) : UMF_RESULT_SUCCESS;
}
