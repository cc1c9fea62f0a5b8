/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers do for the broker: committing, sealing, moving, discarding and closing memory.
 *
 * run() is on a worker, and sees descriptors and values only; done() is on the loop. An object of the broker that a job
 * is for is pinned, or stays for another reason, until done(). Jobs are counted, so that the last one can be waited
 * for.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/problem.h"
#include "mem/commit.h"
#include "mem/migrate.h"
#include "work/work.h"

/* A longer path is not looked at. */
#define KILLS_FILE_MAX 512

struct jobs {
    struct work *work;
    unsigned running;
};

struct op;

struct job {
    struct work_job work;
    struct jobs *jobs; /* since it was submitted */
    uid_t uid;         /* whose request, or memory, it is; or WORK_UNOWNED */
    struct op *op;     /* that it is a part of; NULL: none */
    void (*done)(struct job *job);
    void (*withdrawn)(struct job *job); /* of jobs.c: fills in the outcome of one that never began */
};

/* It is not wanted any more. If it has not begun, done() is called soon, with an outcome as if it had been cancelled at
 * once. False: it was not submitted, or has begun. */
bool job_withdraw(struct job *job);

/* Several commits, all or none: when one fails, the worker undoes those before it. */
struct commit_job {
    struct job job;
    uint32_t n;
    uint32_t at; /* the first that is not made */
    struct commit *commits;
    uint32_t failed; /* which one, if status is not 0 */
    int status;
    uint64_t begin; /* of the slice that the loop does; 0 on a worker */
};

/* Is it so small that the loop may run it itself? */
bool commit_job_is_small(const struct commit_job *job);
/* Runs the rest of a slice that has begun then, here and now. The status; done() is not called. It is complete when all
 * are made: `at` is `n`. */
int commit_job_run_slice(struct commit_job *job, uint64_t begin);
void commit_job_submit(struct jobs *jobs, struct commit_job *job);

/* Several commits for the stock, until one fails or the job is stopped: what was made by then stays. */
struct stock_job {
    struct job job;
    atomic_bool stop; /* set by the loop, besides the flag of each commit */
    uint64_t reserve; /* so much of the machine's memory is left alone */
    bool urgent;      /* soon somebody will wait for them */
    uint32_t n;
    uint32_t made; /* the first ones of them */
    struct commit *commits;
    int *fds; /* a description of each for its first user, or -1; NULL: none is wanted */
};

void stock_job_submit(struct jobs *jobs, struct stock_job *job);

enum memory_task {
    MEMORY_PUBLISH,
    MEMORY_MOVE,
    MEMORY_DISCARD, /* others may have it open: who writes to it may keep the kernel waiting */
    MEMORY_EMPTY,   /* the same, and nobody else has it open */
    MEMORY_CLOSE,   /* the descriptor, which the job owns; with the last one the pages go */
};

/* Something slow with the description of one buffer, which stays open as long as the job runs. */
struct memory_job {
    struct job job;
    enum memory_task task;
    int fd;
    atomic_bool cancel;
    uint64_t offset; /* of what is discarded, and length */
    uint64_t length;
    bool future_only;            /* of publishing */
    struct migration *migration; /* of moving; its problem is the job's */
    int status;
    struct problem problem;
};

void memory_job_submit(struct jobs *jobs, struct memory_job *job);

/* Is this process stopped, or in a debugger? It may keep whoever asks waiting. */
struct process_job {
    struct job job;
    pid_t pid;
    bool pauses;
};

void process_job_submit(struct jobs *jobs, struct process_job *job);

/* How many processes has the kernel killed for want of memory in the control group of this one? */
struct kills_job {
    struct job job;
    pid_t pid;
    const char *root;          /* of groups.h */
    char file[KILLS_FILE_MAX]; /* "": that of the process */
    bool known;
    uint64_t kills;
};

void kills_job_submit(struct jobs *jobs, struct kills_job *job);

/* Asks the kernel which watches of an inotify instance still exist, after events were lost. */
struct live_watches_job {
    struct job job;
    int watch; /* borrowed */
    int *wds;  /* ascending; the job's owner frees them */
    size_t n;
    int status; /* 0 or a negative errno */
};

void live_watches_job_submit(struct jobs *jobs, struct live_watches_job *job);
bool live_watches_has(const struct live_watches_job *job, int wd);
