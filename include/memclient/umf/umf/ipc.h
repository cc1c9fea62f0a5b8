/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing memory of pools with other processes.
 *
 * A handle is bytes, as many as the size that comes with it, which any transport may carry and which mean the same
 * in every process of the machine. It keeps nothing alive: the memory ends when it is freed, except for who has opened
 * it. With memory of memoryd a handle lets its bearer in, whoever he is, so treat the bytes as a key.
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
 * Bytes of the handles of a pool's memory: the same for all pools over providers of the same kind.
 *     INVALID_ARGUMENT   hPool or size is NULL
 *     NOT_SUPPORTED      the pool's provider cannot share
 */
UMF_API umf_result_t umfPoolGetIPCHandleSize(umf_memory_pool_handle_t hPool, size_t *size);

/*
 * Makes a handle of an allocation; ptr may be anywhere in it, and the other process gets the same place. It is given
 * back with umfPutIPCHandle(). For further allocations in what the pool got of its provider at once, no provider
 * is asked.
 *     INVALID_ARGUMENT   an argument is NULL, or ptr is in no tracked pool's memory, or in memory not for sharing
 *     NOT_SUPPORTED      the pool's provider cannot share
 */
UMF_API umf_result_t umfGetIPCHandle(const void *ptr, umf_ipc_handle_t *ipcHandle, size_t *size);

/* Gives back what umfGetIPCHandle() made; copies of its bytes go on being good. NULL is ignored. */
UMF_API umf_result_t umfPutIPCHandle(umf_ipc_handle_t ipcHandle);

/*
 * Opens a handle in a pool; *ptr gets the address of what it was made for. The pool's provider is of the kind that the
 * memory came from; the pool need not be tracked. Memory of memoryd lies at the same address in all processes where
 * that is free. What is open already is only counted: who is handed one allocation after the other, and keeps the last
 * one open until the next has come, asks nobody as long as they are of one slab.
 *     INVALID_ARGUMENT   an argument is NULL, the bytes are no handle, or of another kind of provider, or its memory
 *                        is gone
 *     NOT_SUPPORTED      the pool's provider cannot share
 */
UMF_API umf_result_t umfOpenIPCHandle(umf_memory_pool_handle_t hPool, umf_ipc_handle_t ipcHandle, void **ptr);

/* Undoes that; ptr may be anywhere in what was opened. INVALID_ARGUMENT: nothing is open there. */
UMF_API umf_result_t umfCloseIPCHandle(void *ptr);

#ifdef __cplusplus
}
#endif

#endif
