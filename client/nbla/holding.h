/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer that this process has made or opened, and whether other holdings of it are locked.
 *
 * The lock is the kernel's: a read lock of the bytes, on an open file description of the buffer's that only this
 * holding has. So it ends with the process, whatever happens to it, is there while the broker is not, and costs no
 * message; who asks tries what would conflict with others' locks and not with its own. Descriptors that the broker
 * gives are opened anew for each, which makes them fit for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <memclient/nbla.h>

struct holding {
    struct memclient_buffer *buffer; /* counted, or NULL */
    bool opened;                     /* not made here */
    pid_t pid;                       /* whose process has made it */
    uint64_t description;            /* who opened it, and its descriptor + 1; 0 = none yet */
};

/* Takes the buffer over. */
void holding_init(struct holding *holding, struct memclient_buffer *buffer, bool opened);
/* Ends its locks as well. */
void holding_deinit(struct holding *holding);
/* The same, but that the buffer stays counted, for the caller. */
struct memclient_buffer *holding_end(struct holding *holding);

/* Made by the parent of a fork: what this process has of it is a copy, or nothing. */
bool holding_is_parents(const struct holding *holding);
/* Of the bytes [offset, offset + length). */
nbla_device_memory_state holding_state(struct holding *holding, uint64_t offset, uint64_t length);
/* Nothing, of memory that was made here. */
void holding_lock(struct holding *holding, uint64_t offset, uint64_t length);
void holding_unlock(struct holding *holding, uint64_t offset, uint64_t length);
