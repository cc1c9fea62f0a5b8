/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters: how many requests there were and how long they took, what was refused, how sessions ended.
 *
 * They only ever grow. They are in a memfd of their own, which the keeper holds as it holds the history, so that who
 * watches them sees no reset when a broker dies or another program takes over. The layout has room for methods and
 * statuses to come; a program that knows another one begins anew.
 *
 * All are for the loop's thread, and each is one store, so that a broker that is killed leaves none half written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "history/history.h"

/* X(ns, seconds as text): no longer than that; the last bucket has the rest */
#define COUNTERS_BOUNDS(X) \
    X(5000, "5e-06")       \
    X(10000, "1e-05")      \
    X(25000, "2.5e-05")    \
    X(50000, "5e-05")      \
    X(100000, "0.0001")    \
    X(250000, "0.00025")   \
    X(1000000, "0.001")    \
    X(5000000, "0.005")    \
    X(25000000, "0.025")   \
    X(100000000, "0.1")    \
    X(1000000000, "1.0")   \
    X(10000000000, "10.0") \
    X(UINT64_MAX, "+Inf")

#define COUNTERS_ONE(ns, text) +1
#define COUNTERS_BUCKETS       (0 COUNTERS_BOUNDS(COUNTERS_ONE))

#define COUNTERS_METHODS  128
#define COUNTERS_STATUSES 64
#define COUNTERS_ENDS     16

/* Of the replies of one method. */
struct counters_replies {
    uint64_t buckets[16]; /* the first COUNTERS_BUCKETS of them: in no other bucket */
    uint64_t ns;
};

struct counters_file {
    uint64_t magic;
    uint32_t major;
    uint32_t size; /* of this struct */
    uint32_t left; /* the broker has ended in order */
    uint32_t unused[11];
    struct counters_replies replies[COUNTERS_METHODS]; /* by number of the method */
    uint64_t refusals[COUNTERS_STATUSES];              /* by status */
    uint64_t ends[COUNTERS_ENDS];                      /* by enum history_end */
    uint64_t waits;                                    /* requests that got their memory after waiting, */
    uint64_t waits_ms;                                 /* and how long they did so together */
    uint64_t recoveries[2];                            /* brokers that took over: [1] from one that had died */
    uint64_t room[60];
};

struct counters {
    int fd;
    struct counters_file *file;
};

/* 0 or a negative errno. */
int counters_new(struct counters **ret);
/* Goes on with another broker's. Takes the descriptor on success. 0, HISTORY_E_FORMAT, or a negative errno. */
int counters_adopt(struct counters **ret, int fd);
struct counters *counters_free(struct counters *counters);
DEFINE_CLEANUP(struct counters *, counters_free);

/* The reply to a request of this method took so long. */
void counters_reply(struct counters *counters, uint16_t method, uint64_t ns);
void counters_refusal(struct counters *counters, uint32_t status);
void counters_end(struct counters *counters, enum history_end end);
void counters_wait(struct counters *counters, uint64_t ms);
/* This process takes over from another broker, which ended in order, HISTORY_END_GOODBYE, or not, HISTORY_END_DIED. */
enum history_end counters_start(struct counters *counters);
/* This process ends in order. */
void counters_leave(struct counters *counters);
