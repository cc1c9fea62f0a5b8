/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session whose broker comes and goes: the test plays the broker and listens where the client looks for it, and a
 * channel resumes there. For test-resume and test-window.
 */
#pragma once

#include <stdint.h>

#include "proto/release_log.h"
#include "rpc/channel.h"
#include "rpc/connect.h"
#include "tests/unit/client/caller.h"

#define SESSION 5

extern struct world {
    struct connected at;
    int listening;
    int broker; /* our end of the present connection */
    struct channel *channel;
    unsigned lost, resumed;       /* how often the owner was told; atomic */
    unsigned fds;                 /* when the world began */
    struct release_log *releases; /* what the broker sees of the session's, or NULL */
    int log;                      /* and its descriptor of it, or -1 */
} w;

int setup(void **state);
int setup_before_doors(void **state);
int setup_old_broker(void **state); /* of minor version 0 */
int setup_with_log(void **state);   /* whose session has a release log */
int teardown(void **state);

void listen_there(int type);
void stop_listening(void);
void answer_connect(void);
void hang_up(void);

/*
 * A new connection, and HELLO of the session on it; its sequence. As it sets w.broker, it is never called among the
 * arguments of a function that takes w.broker too: the compiler may read that first.
 */
uint64_t expect_hello(uint64_t acknowledged);
/* The same, answered. */
void welcome_back(uint64_t acknowledged);

void start(struct caller *caller, enum caller_wish what);
/* A call that gets its turn and its reply. */
void call_works(void);
