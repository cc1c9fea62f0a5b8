/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker, a session with it in raw packets, and a request that is sent again: what the tests of "exactly once" share.
 */
#pragma once

#include "tests/integration/wire.h"

#define SIZE UINT64_C(8192)
#define NAME ((char *)"once/more")

extern struct broker_process broker;
extern struct wire wire;
extern uint64_t buffer;                   /* the latest that was allocated */
extern struct wire_packet request, first; /* what is sent again, and how it was answered the first time */

/* A test's set-up and tear-down. */
int once_start(void **state);
int once_start_with(const char *configuration);
int once_stop(void **state);
/* And of all of them: nothing is left of one that failed. */
int once_cleanup(void **state);

void allocate(void);
void bind_name(void);
/* Not sent yet. */
void make_reserve(struct wire_packet *packet);

/* How many there are. */
uint64_t buffers(void);
uint64_t names(void);
uint64_t tokens(void);
uint64_t reservations(void);
/* Of this session on the buffer: as often as it can be released, and then there are none any more. */
uint64_t claims(void);

/* Lost, and back. */
void connection_is_lost(void);
/* SIGKILL; another one goes on, and so does the session. */
void broker_dies(void);

void same_as_first(const struct wire_packet *reply);
/* The request is sent again, which says the same each time. */
void again(void);
