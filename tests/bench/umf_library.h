/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UMF as rows need it, ours or upstream's: the functions of one library. Upstream's is loaded, from the folder that
 * $BENCH_UMF names or its lib, libumf.so.0 or libumf.so, and libdisjoint_pool.so and libjemalloc_pool.so beside it, so
 * that nothing of it is found where ours is looked for, nor the other way round; and each is used
 * in a process of its own, which this program is again, so that one's threads, caches and preloaded things are none of
 * the other's.
 */
#pragma once

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/ipc.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct umf_library {
    umf_result_t (*provider_create)(const umf_memory_provider_ops_t *ops, void *params,
                                    umf_memory_provider_handle_t *provider);
    void (*provider_destroy)(umf_memory_provider_handle_t provider);
    umf_result_t (*provider_alloc)(umf_memory_provider_handle_t provider, size_t size, size_t alignment, void **ptr);
    umf_result_t (*provider_free)(umf_memory_provider_handle_t provider, void *ptr, size_t size);
    umf_result_t (*pool_create)(const umf_memory_pool_ops_t *ops, umf_memory_provider_handle_t provider, void *params,
                                umf_pool_create_flags_t flags, umf_memory_pool_handle_t *pool);
    void (*pool_destroy)(umf_memory_pool_handle_t pool);
    void *(*pool_malloc)(umf_memory_pool_handle_t pool, size_t size);
    umf_result_t (*pool_free)(umf_memory_pool_handle_t pool, void *ptr);
    umf_result_t (*get_handle)(const void *ptr, umf_ipc_handle_t *handle, size_t *size);
    umf_result_t (*put_handle)(umf_ipc_handle_t handle);
    umf_result_t (*open_handle)(umf_memory_pool_handle_t pool, umf_ipc_handle_t handle, void **ptr);
    umf_result_t (*close_handle)(void *ptr);
    umf_memory_provider_ops_t *(*os_ops)(void);
    umf_memory_pool_ops_t *(*proxy_ops)(void);
    /* NULL where they are not found: upstream has them as archives, which somebody has to make libraries of */
    umf_memory_pool_ops_t *(*disjoint_ops)(void);
    umf_memory_pool_ops_t *(*jemalloc_ops)(void);
};

/* NULL: it is loaded, from $BENCH_UMF, or ours. Else the reason why not, for bench_skip(). */
const char *umf_library_load(bool upstream, struct umf_library *library);

/* ---- in processes of their own ----------------------------------------------------------------------------------- */

/* What is done there, in one message. */
struct umf_order {
    unsigned work, kind, threads; /* the program's */
};

struct umf_child {
    pid_t pids[3]; /* it, whom it works with, and a 0 */
    int line;
};

/* Runs this program again, as `PROGRAM --serve upstream` or `ours`. */
void umf_child_start(struct umf_child *child, bool upstream);
void umf_child_end(struct umf_child *child);
/* How many us it took; negative: it cannot do that. */
double umf_child_tell(struct umf_child *child, struct umf_order order);

/* For main() of such a child: `serve` of each order, until its line ends; other_pid of whom it works with, or 0. */
int umf_child_serve(double (*serve)(const struct umf_order *order), pid_t other_pid);
