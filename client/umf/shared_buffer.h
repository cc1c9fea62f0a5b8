/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer of which something is mapped. Counted; the last is released with calls to the broker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <memclient/memclient.h>

struct area;

struct shared_buffer {
    unsigned refs;
    struct memclient_buffer *handle;
    struct memclient_reservation *reservation; /* where it lies, or NULL */
    struct memclient_token *token;             /* once there is a handle; or NULL */
    bool token_keeps;
    bool may_be_shared; /* others may know of it */
    char *name;         /* that it was given, or NULL */
    void *opened_by;    /* the handle's bytes, or NULL */
    int pid;            /* who made this */
    /* of what was allocated: the provider, and where the first byte is mapped, as area.c has it */
    const void *owner;
    uint64_t base;
};

void shared_buffer_ref(struct shared_buffer *buffer);
void shared_buffer_unref(struct shared_buffer *buffer);
/* Takes the handle, on success. NULL without memory. */
struct shared_buffer *shared_buffer_new(struct memclient_buffer *handle);
/* An area that was taken out: unmaps it, and gives it back. */
void shared_buffer_release(const struct area *taken);
