/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory providers: sources of coarse-grained memory.
 *
 * Functions check that the handle is not NULL and that the provider has the operation. The provider checks all other
 * arguments, and its result is returned. If that is not SUCCESS, umfGetLastFailedMemoryProvider() returns this provider
 * in this thread. What is said of arguments below holds for the library's own providers.
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
 * Makes a provider. ops is copied. params is passed to its `initialize`, whose failure is returned. The caller destroys
 * the provider, unless a pool owns it.
 *     INVALID_ARGUMENT   ops or hProvider is NULL; one of the operations that every provider has is NULL; only one of
 *                        split and merge, or only some of the operations for sharing, are given
 *     NOT_SUPPORTED      ops->version has a higher major number than this library
 */
UMF_API umf_result_t umfMemoryProviderCreate(const umf_memory_provider_ops_t *ops, void *params,
                                             umf_memory_provider_handle_t *hProvider);

/* Destroys a provider, whose memory should have been freed. NULL is ignored. */
UMF_API void umfMemoryProviderDestroy(umf_memory_provider_handle_t hProvider);

/*
 * Allocates. alignment is a multiple or a divisor of the smallest page size, or 0 for none.
 *     INVALID_ARGUMENT            hProvider is NULL, or the alignment is neither
 *     MEMORY_PROVIDER_SPECIFIC    there is no such memory
 */
UMF_API umf_result_t umfMemoryProviderAlloc(umf_memory_provider_handle_t hProvider, size_t size, size_t alignment,
                                            void **ptr);

/* Frees an allocation of this size. INVALID_ARGUMENT: hProvider is NULL. */
UMF_API umf_result_t umfMemoryProviderFree(umf_memory_provider_handle_t hProvider, void *ptr, size_t size);

/* A number and a sentence about this thread's last MEMORY_PROVIDER_SPECIFIC. The sentence is valid until this thread's
 * next failing call. Lock-free. A NULL handle is ignored. */
UMF_API void umfMemoryProviderGetLastNativeError(umf_memory_provider_handle_t hProvider, const char **ppMessage,
                                                 int32_t *pError);

/* The best page size for an allocation of this size. INVALID_ARGUMENT: hProvider or pageSize is NULL. */
UMF_API umf_result_t umfMemoryProviderGetRecommendedPageSize(umf_memory_provider_handle_t hProvider, size_t size,
                                                             size_t *pageSize);

/* The page size of the memory at ptr, or the provider's smallest if ptr is NULL. INVALID_ARGUMENT: hProvider or
 * pageSize is NULL. */
UMF_API umf_result_t umfMemoryProviderGetMinPageSize(umf_memory_provider_handle_t hProvider, void *ptr,
                                                     size_t *pageSize);

/*
 * Declares that the contents of a range of pages are no longer needed. The pages may go now, later or never.
 *     INVALID_ARGUMENT    hProvider or ptr is NULL
 *     INVALID_ALIGNMENT   ptr or size is no multiple of the page size (see memclient-umf(3) on profiles)
 *     NOT_SUPPORTED
 */
UMF_API umf_result_t umfMemoryProviderPurgeLazy(umf_memory_provider_handle_t hProvider, void *ptr, size_t size);

/* The same, but the pages go before it returns, and read as zeros afterwards. */
UMF_API umf_result_t umfMemoryProviderPurgeForce(umf_memory_provider_handle_t hProvider, void *ptr, size_t size);

/* The size of a provider's handles for other processes. INVALID_ARGUMENT: an argument is NULL. NOT_SUPPORTED. */
UMF_API umf_result_t umfMemoryProviderGetIPCHandleSize(umf_memory_provider_handle_t hProvider, size_t *size);

/*
 * Writes a handle of the allocation at ptr, which has this size, to providerIpcData. Any transport may carry the bytes.
 *     INVALID_ARGUMENT   an argument is NULL, or ptr was not allocated by this provider, or not for sharing
 *     NOT_SUPPORTED
 */
UMF_API umf_result_t umfMemoryProviderGetIPCHandle(umf_memory_provider_handle_t hProvider, const void *ptr, size_t size,
                                                   void *providerIpcData);

/* Gives a handle back. INVALID_ARGUMENT: an argument is NULL, or it is not this provider's handle. NOT_SUPPORTED. */
UMF_API umf_result_t umfMemoryProviderPutIPCHandle(umf_memory_provider_handle_t hProvider, void *providerIpcData);

/*
 * Maps a handle's memory; *ptr gets the address. The broker's memory gets the address that it has in the other process,
 * if nothing else is there, even if parts of it are already open, by whatever provider. Each opening must be closed.
 *     INVALID_ARGUMENT   an argument is NULL, or the bytes are no handle, or its memory is gone
 *     NOT_SUPPORTED
 */
UMF_API umf_result_t umfMemoryProviderOpenIPCHandle(umf_memory_provider_handle_t hProvider, void *providerIpcData,
                                                    void **ptr);

/* Unmaps it. INVALID_ARGUMENT: an argument is NULL, or OpenIPCHandle did not return ptr. NOT_SUPPORTED. */
UMF_API umf_result_t umfMemoryProviderCloseIPCHandle(umf_memory_provider_handle_t hProvider, void *ptr, size_t size);

/* The provider's name; it lives as long as the provider. NULL for NULL. */
UMF_API const char *umfMemoryProviderGetName(umf_memory_provider_handle_t hProvider);

/* The provider whose call last failed in this thread; later successes do not change it. NULL: none has failed. If it
 * failed below a pool, it is the provider that the pool was created with. Lock-free. */
UMF_API umf_memory_provider_handle_t umfGetLastFailedMemoryProvider(void);

/*
 * Splits an allocation into one of firstSize and one of the rest, which are freed separately.
 *     INVALID_ARGUMENT   hProvider or ptr is NULL, firstSize is 0 or not less than totalSize, or there is no such
 *                        allocation
 *     NOT_SUPPORTED
 */
UMF_API umf_result_t umfMemoryProviderAllocationSplit(umf_memory_provider_handle_t hProvider, void *ptr,
                                                      size_t totalSize, size_t firstSize);

/*
 * Merges two adjacent allocations that were one before.
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
