/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker has done by workers: committing, sealing, discarding and closing memory.
 *
 * A job has descriptors and values, and no object of the broker; `done` runs on the loop and finds by id what has
 * become of the buffer meanwhile. Jobs are counted, so that the broker can wait for its last one when it ends.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/problem.h"
#include "mem/commit.h"
#include "mem/migrate.h"
#include "work/work.h"

struct jobs {
    struct work *work;
    unsigned running;
};

struct op;

struct job {
    struct work_job work;
    struct jobs *jobs;
    struct op *op; /* the request that it is for; NULL: none */
    void (*done)(struct job *job);
};

/* Several commits, all or none: at the first that fails those before it are undone, by the same worker. */
struct commit_job {
    struct job job;
    uint32_t n;
    struct commit *commits;
    uint32_t failed; /* which one, if status is not 0 */
    int status;
};

/* May the loop run it itself? */
bool commit_job_is_small(const struct commit_job *job);
/* Runs it here and now. Returns the status; done() is not called. */
int commit_job_run(struct commit_job *job);
void commit_job_submit(struct jobs *jobs, struct commit_job *job);

/* Several commits for the stock, until one fails or it is told to stop: what was made by then stays. */
struct stock_job {
    struct job job;
    atomic_bool stop; /* besides that of each commit; set by the loop */
    uint64_t reserve; /* of the machine's memory, so much stays */
    bool urgent;      /* as much as if somebody waited for them: soon somebody will */
    uint32_t n;
    uint32_t made;    /* of them, the first ones */
    struct commit *commits;
    int *fds; /* of each a description for its first user, if it could be had; NULL: none is wanted */
};

void stock_job_submit(struct jobs *jobs, struct stock_job *job);

enum memory_task {
    MEMORY_PUBLISH,
    MEMORY_MOVE,
    MEMORY_DISCARD,
    MEMORY_CLOSE, /* the descriptor, which the job owns; with the last one the pages go */
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

/* Which watches of the instance still exist, as the kernel lists them: after events were lost. */
struct live_watches_job {
    struct job job;
    int watch; /* borrowed */
    int *wds;  /* ascending; the job's owner frees them */
    size_t n;
    int status; /* 0 or a negative errno */
};

void live_watches_job_submit(struct jobs *jobs, struct live_watches_job *job);
bool live_watches_has(const struct live_watches_job *job, int wd);
