/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Level Zero provider from the inside: level_zero.c makes it and has its memory, level_zero_ipc.c brings that to
 * other processes.
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
    void *library;
    atomic_size_t min_page; /* 0 = not asked yet */

    uint64_t maker;              /* which provider of which process made a handle */
    pthread_mutex_t lock;        /* of the two below */
    pthread_cond_t made;         /* something of `given`, or it could not be */
    struct interval_tree given;  /* by address: what others may open */
    struct interval_tree opened; /* by address: what others made */
};

/* The driver's result, for UMF; what is the provider's own is this thread's native error then. */
umf_result_t l0_result(const char *function, uint32_t result);
/* Likewise the broker's: 0 or a negative errno of the native library. */
umf_result_t l0_broker_result(int r);

void l0_ipc_init(struct level_zero *provider);
/* Takes back and closes all. */
void l0_ipc_deinit(struct level_zero *provider);
/* The memory there is freed: its handles are void. */
void l0_ipc_forget(struct level_zero *provider, const void *ptr);

/* The operations of a provider. */
umf_result_t l0_get_ipc_handle_size(void *p, size_t *size);
umf_result_t l0_get_ipc_handle(void *p, const void *ptr, size_t size, void *data);
umf_result_t l0_put_ipc_handle(void *p, void *data);
umf_result_t l0_open_ipc_handle(void *p, void *data, void **ptr);
umf_result_t l0_close_ipc_handle(void *p, void *ptr, size_t size);
