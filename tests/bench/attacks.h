/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user does to keep the broker busy, and nobody else's requests served: bodies of processes, which say on their
 * line when all that they need is there, and then go on for good. Each becomes the hostile user first.
 */
#pragma once

#include <stdint.h>

struct attack {
    unsigned connections;
    unsigned depth;  /* requests that each of them has on its way */
    uint16_t method; /* of those */
    int processor;
};

/* No attack: the processor is busy, and nothing is said to the broker. */
void attack_burn(int line, void *attack);
/* Each connection always has `depth` requests on their way. */
void attack_call(int line, void *attack);
/* They send requests for 64 descriptors each, or others, and receive nothing. */
void attack_unread(int line, void *attack);
/* Several processes that allocate, map and free as many buffers at a time as a request may have. */
void attack_allocate(int line, void *attack);
/* So many connections hold a buffer that is destroyed; again and again. */
void attack_destroy(int line, void *attack);
/* So many connections are told of every buffer that comes and goes, of one who allocates and frees as many at a time as
 * a request may have. */
void attack_watch(int line, void *attack);
/* Processes with so many sessions, one after the other, each killed as soon as it has them. */
void attack_die(int line, void *attack);
/* Connects and leaves, as fast as it can. */
void attack_connect(int line, void *attack);
/* Connects so many times, each time a socket in place of the one that was made first, and says nothing. */
void attack_half_open(int line, void *attack);
/* Keeps the queue of those who connect full, as far as so many sockets go. */
void attack_crowd(int line, void *attack);
/* Connects and sends what is no packet. */
void attack_garbage(int line, void *attack);
