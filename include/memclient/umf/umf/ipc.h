/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing memory of pools with other processes.
 *
 * A handle is a string of bytes, which has a size, and means the same in every process of the machine. Any transport
 * may carry it. A handle keeps nothing alive: the memory ends when it is freed, except for those who have it open. A
 * handle of memoryd's memory lets any bearer in, so treat it as a key.
 */
#ifndef UMF_IPC_H
#define UMF_IPC_H 1

#include "base.h"
#include "memory_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct umf_ipc_data_t *umf_ipc_handle_t;

/*
 * The size of the handles of a pool's memory. It is the same for all pools over providers of one kind.
 *     INVALID_ARGUMENT   hPool or size is NULL
 *     NOT_SUPPORTED      the pool's provider cannot share
 */
UMF_API umf_result_t umfPoolGetIPCHandleSize(umf_memory_pool_handle_t hPool, size_t *size);

/*
 * Makes a handle of an allocation. ptr may be anywhere in it, and the other process gets the same place. The handle
 * must be given back with umfPutIPCHandle(). The provider is called once for each of its own allocations, for example a
 * slab, whatever number of handles is made of it.
 *     INVALID_ARGUMENT   an argument is NULL, or ptr is in no tracked pool's memory, or in memory not for sharing
 *     NOT_SUPPORTED      the pool's provider cannot share
 */
UMF_API umf_result_t umfGetIPCHandle(const void *ptr, umf_ipc_handle_t *ipcHandle, size_t *size);

/* Gives back what umfGetIPCHandle() made; copies of its bytes remain valid. NULL is ignored. */
UMF_API umf_result_t umfPutIPCHandle(umf_ipc_handle_t ipcHandle);

/*
 * Opens a handle in a pool. *ptr gets the address that the handle was made for. The pool's provider must be of the same
 * kind as the one that the memory came from; the pool need not be tracked. Memory of memoryd has the same address in
 * all processes where that is free. Opening what is open already only counts. So a process that gets one allocation
 * after another, and keeps the last one open until the next has come, makes no call as long as they are in one slab.
 *     INVALID_ARGUMENT   an argument is NULL, the bytes are no handle, or of another kind of provider, or its memory
 *                        is gone
 *     NOT_SUPPORTED      the pool's provider cannot share
 */
UMF_API umf_result_t umfOpenIPCHandle(umf_memory_pool_handle_t hPool, umf_ipc_handle_t ipcHandle, void **ptr);

/* Closes what was opened once; ptr may be anywhere in it. INVALID_ARGUMENT: nothing is open there. */
UMF_API umf_result_t umfCloseIPCHandle(void *ptr);

#ifdef __cplusplus
}
#endif

#endif
