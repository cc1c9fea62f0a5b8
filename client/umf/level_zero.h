/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Level Zero provider: level_zero.c has its creation and memory, level_zero_ipc.c shares that with other processes.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include <memclient/umf/umf/providers/provider_level_zero.h>

#include "base/interval.h"
#include "umf/level_zero_api.h"

struct level_zero {
    void *context;
    void *device;
    umf_usm_memory_type_t type;
    struct l0_functions call;
    atomic_size_t min_page; /* 0: unknown yet */

    uint64_t maker;              /* the provider's number in its handles */
    pthread_mutex_t lock;        /* guards the two trees */
    pthread_cond_t made;         /* a record of `given` is complete, or gone */
    struct interval_tree given;  /* by address: what others may open */
    struct interval_tree opened; /* by address: what others have given */
};

/* Converts the driver's result. If it becomes MEMORY_PROVIDER_SPECIFIC, it is the thread's native error. */
umf_result_t l0_result(const char *function, uint32_t result);
/* The same for 0 or a negative errno of the native library. */
umf_result_t l0_broker_result(int r);

/* Takes back and closes everything. */
void l0_ipc_deinit(struct level_zero *provider);
/* Voids the handles of memory that is about to be freed. */
void l0_ipc_forget(struct level_zero *provider, const void *ptr);

/* Operations of the provider. */
umf_result_t l0_get_ipc_handle_size(void *p, size_t *size);
umf_result_t l0_get_ipc_handle(void *p, const void *ptr, size_t size, void *data);
umf_result_t l0_put_ipc_handle(void *p, void *data);
umf_result_t l0_open_ipc_handle(void *p, void *data, void **ptr);
umf_result_t l0_close_ipc_handle(void *p, void *ptr, size_t size);
