/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads for slow memory work, so that the loop never waits for the kernel to clear or free pages.
 *
 * Allocating a GiB of base pages takes half a second, and freeing one nearly as long. Such work is a job: run() is
 * called on a worker, done() later on the loop's thread. A job carries descriptors and plain values and never a pointer
 * to a broker object, because those may end while it runs. It is embedded in whatever its owner needs on both sides;
 * the owner frees it, in done() at the earliest.
 *
 * Each class of jobs has threads and a queue of its own: a short commit waits neither for a long one nor for a release.
 * Within a class jobs start in the order of submission. The loop and the clients run before any worker when they wake
 * up, and long jobs and releases have a smaller share of the processors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/list.h"

struct work;

enum work_class {
    WORK_SHORT,   /* milliseconds: commits and moves of at most WORK_SHORT_MAX bytes */
    WORK_LONG,    /* larger ones, sealing (the kernel may wait for pinned pages) */
    WORK_RELEASE, /* discarding and closing */
    WORK_STOCK,   /* commits that nobody waits for: they hardly get a processor that others need */
};

#define WORK_CLASSES   4
#define WORK_SHORT_MAX (UINT64_C(16) << 20)

struct work_job {
    struct list link;
    void (*run)(struct work_job *job);    /* on a worker; must not touch what the loop uses */
    void (*done)(struct work_job *job);   /* on the loop's thread; may free the job, submit others */
    void (*begins)(struct work_job *job); /* likewise, immediately before a worker gets it; or NULL */
};

/* clang-format off */
#define WORK_JOB_INIT(job, run_fn, done_fn) \
    {.link = LIST_INIT((job).link), .run = (run_fn), .done = (done_fn)}
/* clang-format on */

/* `threads` for each class, at least 1. 0 or a negative errno. */
int work_new(struct work **ret, unsigned threads);
/* Runs what was submitted, joins the threads and calls the remaining done(). Jobs that take too long are cancelled by
 * their own means (struct commit has a flag). Returns NULL. */
struct work *work_free(struct work *work);
DEFINE_CLEANUP(struct work *, work_free);

/* From the loop's thread, done() included. The job must be in no queue. Cannot fail. */
void work_submit(struct work *work, enum work_class kind, struct work_job *job);

/* Readable when work_dispatch() has something to do. It is always the same. */
int work_fd(const struct work *work);

/* Calls done() of the jobs that have ended; those that end meanwhile come next time. 0 or a negative errno. */
int work_dispatch(struct work *work);

/* The number of submitted jobs whose done() has not been called. */
unsigned work_pending(const struct work *work);
