/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broker does before it dies (keeper.h): one step after the other, which together make some of everything, and
 * end most of it again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "broker/operations.h"

#define STEPS_BUFFERS 5 /* the last is foreign */

/* What the child knows, for the test. */
struct shared {
    unsigned n_steps; /* to be done */
    uint64_t observer;
    uint64_t sessions[2];
    uint64_t buffers[STEPS_BUFFERS];
    uint64_t reservation;
    uint64_t reserved;
    uint8_t secret[16];
    uint8_t token[32];
    struct buffer_info infos[STEPS_BUFFERS];
    struct status_info status;
    uint64_t used;
};

extern struct shared *shared;

struct step {
    void (*fn)(void);
    bool by_worker;
};

extern const struct step steps[];
extern const unsigned n_steps;

/* The offset of buffers[3] in the reservation, once it is placed. */
#define HOME_OFFSET 65536

/* For generation_run(): shared->n_steps of them; and those, and then one more without a commit. */
void steps_do(void);
void steps_do_and_die_in_the_next(void);
/* A dead broker that had done so many of them that there is most of everything. */
void steps_run_full(void);

/* What the broker that is here says of itself. */
void steps_look(struct status_info *status, uint64_t *used);
/* It is what the one that died said last, and the sums agree. */
void steps_assert_same(void);

/* cmocka's; they may also be called in between. */
int steps_set_up(void **state);
int steps_tear_down(void **state);
