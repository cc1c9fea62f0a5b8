/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done with T, the one description of a buffer (commit.h).
 *
 * What leaves the broker is re-opened from T with just the access that is granted, so that the kernel enforces it (I2).
 * It is also how the broker learns whether anybody has the memory open or mapped: a write lease on T is granted only if
 * there is no other description (I4). "Slow" functions take the longer the larger the buffer is; the others may run on
 * the loop. The process must ignore SIGIO: opening the file in the instant of the test breaks the lease, which sends
 * one.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/problem.h"

struct handle_identity {
    dev_t dev;
    ino_t ino;
    uid_t uid;
    mode_t mode;
    uint64_t size;
    uint64_t allocated; /* bytes that have pages */
};

/* A fresh description, CLOEXEC. 0, NO_DESCRIPTORS, PUBLISHED (writable, of a published one),
 * NO_MEMORY. */
int handle_reopen(int t, bool writable, int *ret_fd, struct problem *problem);

/* Was the description opened for writing? */
bool handle_is_writable(int t);

/* One more descriptor of the very same description. 0, NO_DESCRIPTORS. */
int handle_duplicate(int t, int *ret_fd, struct problem *problem);

/* Does nobody else have it open or mapped, fds in flight included? 0, or NOT_SUPPORTED. */
int handle_sole(int t, bool *ret_sole, struct problem *problem);

/* The seals that it has now, F_SEAL_*. Of one made publishable, whoever has it open for writing may add some. 0 if it
 * is of a kind that has none. */
uint32_t handle_seals(int t);

/*
 * Slow: the kernel may wait for pinned pages. Somebody else may have sealed it already: then only that no seal can be
 * added is left to do. 0, BUSY, NOT_SUPPORTED (it can no longer be sealed so).
 */
int handle_publish(int t, bool future_only, struct problem *problem);

/* Slow: gives the pages of a range back, in slices; length 0 = to the end. The rest stays if *cancel becomes true (may
 * be NULL). 0, PUBLISHED, NOT_SUPPORTED, TIMED_OUT (cancelled). */
int handle_discard(int t, uint64_t offset, uint64_t length, const atomic_bool *cancel, struct problem *problem);

/* 0 or a negative errno. */
int handle_identity(int t, struct handle_identity *ret);

/* What the kernel says of a descriptor of any kind. It is asked on any thread while a broker starts. */
struct handle_probe {
    int seals; /* -1: the file has no seals, and nothing else was asked */
    bool identified;
    struct handle_identity identity;
};
void handle_probe(int fd, struct handle_probe *ret);

/* Is this of a T that commit.h made, with this identity (of the mode only the permissions)? And has it been published
 * since? */
bool handle_is_ours(const struct handle_probe *probe, const struct handle_identity *identity, bool publishable,
                    bool *ret_published);

/* Is this descriptor of a stranger one that the broker may keep: of memory, and nothing that waits for a user when it
 * is asked or closed, or that could hold descriptors itself? A dma-buf, or a file of shared memory or of huge pages.
 * Safe for any kind of descriptor. 0; NOT_SUPPORTED, SIZE_ZERO, INVALID_ARGUMENT (not open for reading). */
int handle_adoptable(int fd, struct handle_identity *ret, struct problem *problem);

/* A stranger's descriptor as a broker knows it: by what another process, the door, has seen of it. */
struct handle_shown {
    struct handle_identity identity;
    bool writable;
    int fd; /* of memory to adopt; else -1 */
};

/* Could this descriptor of a stranger be one of a broker's buffers: a memfd of its user? It must still be looked up by
 * its inode. Safe for any kind of descriptor. 0, or FD_FOREIGN. */
int handle_show(int fd, uid_t uid, struct handle_shown *ret, struct problem *problem);
