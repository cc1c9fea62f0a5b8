/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads for slow memory work, so that the loop never waits for the kernel to clear or free pages.
 *
 * Allocating a GiB of base pages takes half a second, and freeing one nearly as long. Such work is a job: run() is
 * called on a worker, done() later on the loop's thread. A job carries descriptors and plain values and never a pointer
 * to a broker object, because those may end while it runs. It is embedded in whatever its owner needs on both sides;
 * the owner frees it, in done() at the earliest.
 *
 * Each class of jobs has threads of its own: a short commit waits neither for a long one nor for a release. Within a
 * class users take turns (lanes.h), and a long job pauses after a slice when somebody else's turn has come. So what a
 * user waits for is a slice of each worker, however much the others have submitted. The loop and the clients run before
 * any worker when they wake up, and long jobs and releases have a smaller share of the processors.
 *
 * What the kernel may keep waiting for as long as another process likes is WORK_BLOCKING. A few threads of each user
 * may be stuck in that, and the user's further jobs of this class wait behind them; nothing else does.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/list.h"

struct work;

enum work_class {
    WORK_SHORT,    /* milliseconds: commits and moves of at most WORK_SHORT_MAX bytes */
    WORK_LONG,     /* larger commits */
    WORK_RELEASE,  /* discarding what nobody else has */
    WORK_STOCK,    /* commits that nobody waits for: they hardly get a processor that others need */
    WORK_BLOCKING, /* sealing, moving and discarding what others have: a thread each, made when it is needed */
    WORK_CLOSING,  /* the last close of much memory, which cannot pause: likewise */
};

#define WORK_CLASSES   6
#define WORK_SHORT_MAX (UINT64_C(16) << 20)

/* Of jobs that belong to no user: they have a lane like a user's. */
#define WORK_UNOWNED ((uid_t)-1)

struct work_lane;

struct work_job {
    struct list link;
    void (*run)(struct work_job *job);    /* on a worker; must not touch what the loop uses */
    void (*done)(struct work_job *job);   /* on the loop's thread; may free the job, submit others */
    void (*begins)(struct work_job *job); /* likewise, immediately before a worker gets it first; or NULL */
    bool spare;                           /* is next only when nobody's job is */
    bool paused;              /* set by run(): it is not complete; run() is called again when it is its turn */
    bool withdrawn;           /* for done(): run() was never called */
    const atomic_bool *pause; /* for run(): it should pause, since somebody else's turn has come */
    /* of work.c: */
    enum work_class class;
    uid_t uid;
    struct work_lane *lane; /* where it waits, or whose running job it is */
    bool has_begun;
};

/* clang-format off */
#define WORK_JOB_INIT(job, run_fn, done_fn) \
    {.link = LIST_INIT((job).link), .run = (run_fn), .done = (done_fn)}
/* clang-format on */

/* `threads` for each class that has no number of its own, at least 1. 0 or a negative errno. */
int work_new(struct work **ret, unsigned threads);
/*
 * Runs what was submitted, joins the threads and calls the remaining done(). Jobs that take too long are cancelled by
 * their own means (struct commit has a flag). WORK_BLOCKING jobs that have not begun are withdrawn, and those that do
 * not end within a second are left to their threads, with all that they use; their done() is never called. Returns
 * NULL.
 */
struct work *work_free(struct work *work);
DEFINE_CLEANUP(struct work *, work_free);

/* From the loop's thread, done() included. The job must be in no queue, and belongs to this user. Cannot fail. */
void work_submit(struct work *work, enum work_class class, uid_t uid, struct work_job *job);
/* It is not wanted any more: if it has not begun, its done() is called next time. False: it has begun, or has ended. */
bool work_withdraw(struct work *work, struct work_job *job);

/* Readable when work_dispatch() has something to do. It is always the same. */
int work_fd(const struct work *work);

/* Calls done() of the jobs that have ended; those that end meanwhile come next time. 0 or a negative errno. */
int work_dispatch(struct work *work);
/* From now on that calls `ended` of each instead, which has work_job_end() called when it is the turn of the job's
 * user. */
void work_set_ended(struct work *work, void (*ended)(void *userdata, struct work_job *job), void *userdata);
/* Calls done(). */
void work_job_end(struct work *work, struct work_job *job);

/* The number of submitted jobs whose done() has not been called. */
unsigned work_pending(const struct work *work);
/* Does one of them want a processor? Not those that may sleep for long. */
bool work_is_busy(const struct work *work);
