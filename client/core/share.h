/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Getting buffers from one process to another: descriptors, tokens, names. Others may have what is given away here, so
 * it is not cached any more (core/hold_cache.h).
 */
#pragma once

#include <stddef.h>

#include <memclient/memclient.h>

struct lookup_spec;

/* The descriptor is the caller's. Rights 0 = all that the handle has. */
int share_fd(struct memclient_buffer *buf, unsigned rights, int *fd);
/* Any number of buffers of one context; each has its own result. */
int share_tokens(size_t n, struct memclient_buffer *const *bufs, const struct memclient_share_options *options,
                 struct memclient_token *tokens, int *results);
int share_revoke_all(struct memclient_buffer *buf);
int share_name(struct memclient_buffer *buf, const char *name, const struct memclient_name_options *options);

int share_import(struct memclient_context *ctx, int fd, struct memclient_buffer **buf);
int share_adopt(struct memclient_context *ctx, int fd, struct memclient_buffer **buf);
/* Any number of them; each has its own result. */
int share_open_tokens(struct memclient_context *ctx, size_t n, const struct memclient_token *tokens, unsigned rights,
                      struct memclient_buffer **bufs, int *results);
/* By name or id; what it claims keeps others out. */
int share_lookup(struct memclient_context *ctx, const struct lookup_spec *spec, struct memclient_buffer **buf);
