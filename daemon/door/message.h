/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker and a door, which is the same program, tell each other: packets of one size, some with a descriptor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mem/handle.h"

enum door_message_type {
    DOOR_SERVE = 1, /* to the door, with a socket: clients of `session` show descriptors here */
    DOOR_END,       /* to the door, with what may take long to close: close it */
    DOOR_SHOWN,     /* from the door: a descriptor was shown; with the descriptor itself if it is of memory to adopt */
};

struct door_message {
    uint32_t type;
    bool memory; /* the descriptor comes along */
    uint64_t session;
    uint64_t ticket;
    struct handle_shown shown; /* its `fd` is that of this process, or -1 */
};

/* Sends it with a descriptor, unless that is -1; waits for room. As sockio_send(). */
int door_message_send(int link, const struct door_message *message, int fd);
/* Receives the next one that is there. The descriptor that came is the caller's, in *ret_fd, or -1. As
 * sockio_recv(). */
int door_message_receive(int link, struct door_message *ret, int *ret_fd);
