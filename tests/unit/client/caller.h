/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in threads of their own, while the test plays the broker. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "rpc/channel.h"
#include "tests/unit/client/fake.h"

enum caller_wish { PING, ALLOC, RESERVE, SHARE, IMPORT, RELEASE, GIVE_BACK };

struct caller {
    pthread_t thread;
    struct channel *channel;
    uint64_t ms;
    enum caller_wish what;
    int fd; /* to import */
    int result;
    unsigned status;
    char sentence[256];
    uint64_t id; /* of what was granted */
};

void caller_start(struct caller *caller, struct channel *channel, enum caller_wish what, uint64_t ms);
void caller_start_import(struct caller *caller, struct channel *channel, int fd, uint64_t ms);
/* Its result. */
int caller_finish(struct caller *caller);

/* Our end of the connection receives a request of this method; gives its sequence. */
uint64_t expect(int broker, enum method method, struct fake_request *request);
uint64_t expect_plain(int broker, enum method method);
