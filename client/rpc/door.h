/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Showing a descriptor at the broker's door, which gives a ticket for it (PROTOCOL.md, section 19).
 *
 * A channel keeps one socket to the door; threads take turns on it. A door that ends or does not answer is asked for
 * anew, by DOOR, until the deadline: the broker replaces one that hangs.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fileid.h"
#include "proto/door.h"

struct channel;

struct channel_door {
    pthread_mutex_t lock;
    pthread_cond_t free;
    bool busy; /* a thread has its turn; it alone touches the socket */
    int socket;
    struct file_id id;
};

void door_init(struct channel_door *door);
void door_deinit(struct channel_door *door);
/* In the child of a fork: the turn may be that of a thread which the child does not have. */
void door_fork_child(struct channel_door *door);

/* 0; a refusal; or as channel_call(). */
int door_show(struct channel *channel, int fd, enum door_kind kind, uint64_t deadline, uint64_t *ticket);
