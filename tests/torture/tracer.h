/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another process, all its threads, stopped at each system call: to end it at one of them.
 *
 * Calls are counted from the moment on when it receives a request of the wanted method. Both sides of a call count:
 * before it nothing of it has happened, after it nothing of what follows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TRACER_THREADS 32

struct tracer {
    pid_t pid; /* 0: it has ended */
    pid_t threads[TRACER_THREADS];
    size_t n;
    uint16_t method;  /* wanted; 0: count from the start */
    bool received;    /* a request of that method */
    unsigned calls;   /* stops since then */
    uint64_t message; /* where the loop's thread receives to; 0: it is in another system call */
};

/* 0 or a negative errno: -EPERM where tracing is not allowed, -ESRCH if it has ended. */
int tracer_seize(struct tracer *tracer, pid_t pid, uint16_t method);
/* Lets it run and kills it at its n-th stop: true when it is dead. False: `done` became readable, and it has come to
 * rest since, or it has ended by itself. */
bool tracer_kill_at(struct tracer *tracer, unsigned n, int done);
/* It goes on by itself. */
void tracer_let_go(struct tracer *tracer);
