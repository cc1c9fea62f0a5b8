/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory providers: where coarse-grained memory comes from.
 *
 * Functions check that the handle is not NULL and that the provider has the operation; all other arguments are the
 * provider's to check. What it returns is returned; if that is not SUCCESS, umfGetLastFailedMemoryProvider() of this
 * thread is this provider. What is said below of arguments holds for the providers that come with the library.
 */
#ifndef UMF_MEMORY_PROVIDER_H
#define UMF_MEMORY_PROVIDER_H 1

#include "base.h"
#include "memory_provider_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct umf_memory_provider_t *umf_memory_provider_handle_t;

/*
 * Makes a provider. ops is copied; params is for its `initialize`, whose failure is returned. It is the caller's to
 * destroy, unless a pool owns it.
 *     INVALID_ARGUMENT   ops or hProvider is NULL; one of the operations that every provider has is NULL; only one of
 *                        split and merge, or only some of the operations for sharing, are given
 *     NOT_SUPPORTED      ops->version has a higher major number than this library
 */
UMF_API umf_result_t umfMemoryProviderCreate(const umf_memory_provider_ops_t *ops, void *params,
                                             umf_memory_provider_handle_t *hProvider);

/* Ends a provider. Its memory is to be freed before. NULL is ignored. */
UMF_API void umfMemoryProviderDestroy(umf_memory_provider_handle_t hProvider);

/*
 * Allocates. alignment is a multiple or a divisor of the least page size, 0 = none.
 *     INVALID_ARGUMENT            hProvider is NULL, or the alignment is neither
 *     MEMORY_PROVIDER_SPECIFIC    there is no such memory
 */
UMF_API umf_result_t umfMemoryProviderAlloc(umf_memory_provider_handle_t hProvider, size_t size, size_t alignment,
                                            void **ptr);

/* Frees it, size as it was allocated. INVALID_ARGUMENT: hProvider is NULL. */
UMF_API umf_result_t umfMemoryProviderFree(umf_memory_provider_handle_t hProvider, void *ptr, size_t size);

/*
 * What the provider has to say of this thread's last MEMORY_PROVIDER_SPECIFIC: a number and a sentence, which is valid
 * until this thread's next failing call. Lock-free. A NULL handle is ignored.
 */
UMF_API void umfMemoryProviderGetLastNativeError(umf_memory_provider_handle_t hProvider, const char **ppMessage,
                                                 int32_t *pError);

/* Pages that suit an allocation of this size best. INVALID_ARGUMENT: hProvider or pageSize is NULL. */
UMF_API umf_result_t umfMemoryProviderGetRecommendedPageSize(umf_memory_provider_handle_t hProvider, size_t size,
                                                             size_t *pageSize);

/*
 * Pages of the memory at ptr, or the smallest that the provider has if ptr is NULL.
 * INVALID_ARGUMENT: hProvider or pageSize is NULL.
 */
UMF_API umf_result_t umfMemoryProviderGetMinPageSize(umf_memory_provider_handle_t hProvider, void *ptr,
                                                     size_t *pageSize);

/*
 * Tells that the contents of a range of pages are not needed any more; the pages may go now, later or never.
 *     INVALID_ARGUMENT    hProvider or ptr is NULL
 *     INVALID_ALIGNMENT   ptr or size is no multiple of the page size (see memclient-umf(3) on profiles)
 *     NOT_SUPPORTED
 */
UMF_API umf_result_t umfMemoryProviderPurgeLazy(umf_memory_provider_handle_t hProvider, void *ptr, size_t size);

/* Likewise, but the pages go before it returns, and read as zeros afterwards. */
UMF_API umf_result_t umfMemoryProviderPurgeForce(umf_memory_provider_handle_t hProvider, void *ptr, size_t size);

/* Bytes that a provider's handle for other processes needs. INVALID_ARGUMENT: an argument is NULL. NOT_SUPPORTED. */
UMF_API umf_result_t umfMemoryProviderGetIPCHandleSize(umf_memory_provider_handle_t hProvider, size_t *size);

/*
 * Fills in a handle of the allocation at ptr, of which size is the whole; providerIpcData has room for it. Any
 * transport may carry the bytes.
 *     INVALID_ARGUMENT   an argument is NULL, or ptr was not allocated by this provider, or not for sharing
 *     NOT_SUPPORTED
 */
UMF_API umf_result_t umfMemoryProviderGetIPCHandle(umf_memory_provider_handle_t hProvider, const void *ptr,
                                                   size_t size, void *providerIpcData);

/* Gives a handle back. INVALID_ARGUMENT: an argument is NULL, or it is no handle of this provider's. NOT_SUPPORTED. */
UMF_API umf_result_t umfMemoryProviderPutIPCHandle(umf_memory_provider_handle_t hProvider, void *providerIpcData);

/*
 * Maps the memory of a handle; *ptr gets where: of the broker's memory the address that it has in the other process, if
 * nothing else is there here, also where parts of it are open already, by whatever provider. Each open is closed.
 *     INVALID_ARGUMENT   an argument is NULL, or the bytes are no handle, or its memory is gone
 *     NOT_SUPPORTED
 */
UMF_API umf_result_t umfMemoryProviderOpenIPCHandle(umf_memory_provider_handle_t hProvider, void *providerIpcData,
                                                    void **ptr);

/* Unmaps it. INVALID_ARGUMENT: an argument is NULL, or ptr was not given by OpenIPCHandle. NOT_SUPPORTED. */
UMF_API umf_result_t umfMemoryProviderCloseIPCHandle(umf_memory_provider_handle_t hProvider, void *ptr, size_t size);

/* The provider's name; it lives as long as the provider. NULL for NULL. */
UMF_API const char *umfMemoryProviderGetName(umf_memory_provider_handle_t hProvider);

/*
 * The provider that returned something else than SUCCESS last, in this thread; successes do not change it. NULL before
 * the first. Where it failed under a pool, it is the provider that the pool was made with. Lock-free.
 */
UMF_API umf_memory_provider_handle_t umfGetLastFailedMemoryProvider(void);

/*
 * Makes two allocations of one, of firstSize and the rest, each to be freed by itself.
 *     INVALID_ARGUMENT   hProvider or ptr is NULL, firstSize is 0 or not less than totalSize, or there is no such
 *                        allocation
 *     NOT_SUPPORTED
 */
UMF_API umf_result_t umfMemoryProviderAllocationSplit(umf_memory_provider_handle_t hProvider, void *ptr,
                                                      size_t totalSize, size_t firstSize);

/*
 * Makes one allocation of two that follow each other and were one before.
 *     INVALID_ARGUMENT   an argument is NULL or 0, highPtr is not behind lowPtr and within totalSize of it, or there
 *                        are no such allocations
 *     NOT_SUPPORTED
 */
UMF_API umf_result_t umfMemoryProviderAllocationMerge(umf_memory_provider_handle_t hProvider, void *lowPtr,
                                                      void *highPtr, size_t totalSize);

#ifdef __cplusplus
}
#endif

#endif
