/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the layer needs of a heap beyond <memclient/svm.h>: allocations of an owner, an OpenCL context, which alone may
 * free them, and whose devices the caller has checked, not those of the heap. Errors have their sentences.
 */
#pragma once

#include <stdint.h>

#include <memclient/svm.h>

#include "base/cleanup.h"

DEFINE_CLEANUP(struct memclient_buffer *, memclient_buffer_unref);

/* Connects to the broker, if nothing has yet. */
int svm_connect(struct memclient_svm *svm);
/* Allocates what memclient_svm_check() allows. alignment is a power of two. */
int svm_alloc(struct memclient_svm *svm, const void *owner, uint64_t flags, uint64_t size, uint32_t alignment,
              void **ptr);
/* -EINVAL: it is no allocation of the owner; without a sentence. */
int svm_free(struct memclient_svm *svm, const void *owner, void *ptr);
/* Drops the reference to the buffer, also if it fails. */
int svm_import(struct memclient_svm *svm, const void *owner, struct memclient_buffer *buf, uint64_t offset,
               uint64_t length, void **ptr);
/*
 * Like memclient_svm_export_fd() and memclient_svm_share(), of an allocation of the owner; NULL = of any. -EFAULT: the
 * owner has none there.
 */
int svm_export_fd(const void *owner, const void *ptr, unsigned rights, int *fd, uint64_t *offset, uint64_t *length);
int svm_share(const void *owner, const void *ptr, const struct memclient_share_options *options,
              struct memclient_token *token, uint64_t *offset, uint64_t *length);
/* The alignment that 0 stands for. */
uint32_t svm_largest_type(const struct memclient_svm_device *devices, size_t n);
