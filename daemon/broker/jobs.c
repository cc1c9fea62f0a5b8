/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs' two sides: what runs on a worker, and the step back to the loop.
 */
#include "broker/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "broker/dedup.h"
#include "mem/handle.h"
#include "proto/status.h"
#include "sys/groups.h"
#include "sys/peer.h"
#include "sys/sys.h"
#include "work/turn.h"

static void job_begins(struct work_job *work)
{
    dedup_working(container_of(work, struct job, work)->op);
}

static void job_done(struct work_job *work)
{
    struct job *job = container_of(work, struct job, work);

    job->jobs->running--;
    if (work->withdrawn)
        job->withdrawn(job);
    job->done(job);
}

static void job_submit(struct jobs *jobs, struct job *job, enum work_class class, void (*run)(struct work_job *work))
{
    bool spare = job->work.spare;

    job->jobs = jobs;
    job->work = (struct work_job)WORK_JOB_INIT(job->work, run, job_done);
    job->work.begins = job->op ? job_begins : NULL;
    job->work.spare = spare;
    jobs->running++;
    work_submit(jobs->work, class, job->uid, &job->work);
}

bool job_withdraw(struct job *job)
{
    return job->jobs && work_withdraw(job->jobs->work, &job->work);
}

/* ---- commits ----------------------------------------------------------------------------------------------------- */

/* The sum of all was charged, so it does not overflow. */
static uint64_t bytes_of(const struct commit_job *job)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < job->n; i++)
        bytes += job->commits[i].plan.brief.bytes;
    return bytes;
}

bool commit_job_is_small(const struct commit_job *job)
{
    bool small = bytes_of(job) <= COMMIT_SLICED_MAX;

    for (uint32_t i = 0; i < job->n && small; i++)
        small = commit_is_small(&job->commits[i]);
    return small;
}

static int commit_job_run(struct commit_job *job)
{
    job->status = 0;
    for (uint32_t first = job->at; job->at < job->n; job->at++) {
        struct commit *commit = &job->commits[job->at];

        if (job->begin && job->at > first && slice_is_over(job->begin))
            break;
        job->status = commit_run(commit);
        if (commit->paused)
            break;
        if (job->status) {
            job->failed = job->at;
            while (job->at--)
                commit_deinit(&job->commits[job->at]);
            break;
        }
    }
    return job->status;
}

int commit_job_run_slice(struct commit_job *job, uint64_t begin)
{
    job->begin = begin;
    return commit_job_run(job);
}

static void commit_work(struct work_job *work)
{
    struct commit_job *job = container_of(work, struct commit_job, job.work);

    for (uint32_t i = 0; i < job->n; i++)
        job->commits[i].pause = work->pause;
    (void)commit_job_run(job);
    work->paused = !job->status && job->at < job->n;
}

static void commit_withdrawn(struct job *work)
{
    struct commit_job *job = container_of(work, struct commit_job, job);

    job->failed = 0;
    job->status =
        refuse(&job->commits[0].problem, STATUS_TIMED_OUT, "the allocation was cancelled before it was complete");
}

void commit_job_submit(struct jobs *jobs, struct commit_job *job)
{
    job->job.withdrawn = commit_withdrawn;
    job->begin = 0;
    job_submit(jobs, &job->job, bytes_of(job) <= WORK_SHORT_MAX ? WORK_SHORT : WORK_LONG, commit_work);
}

/* ---- stock ------------------------------------------------------------------------------------------------------- */

/* Huge pages that are set aside are of no use to others; the kernel makes others on demand, of everybody's memory. */
static bool is_set_aside(const struct commit *commit)
{
    uint64_t pages;

    return commit->pages == PAGES_HUGETLB && sys->huge_pages(-1, commit->page_size, SYS_HUGE_FREE, &pages) == 0 &&
           pages >= commit->plan.brief.bytes / commit->page_size;
}

static bool is_affordable(const struct commit *commit, uint64_t reserve)
{
    uint64_t available = is_set_aside(commit) ? UINT64_MAX : sys->available(-1);

    return available > reserve && available - reserve > commit->plan.brief.bytes;
}

static void stock_work(struct work_job *work)
{
    struct stock_job *job = container_of(work, struct stock_job, job.work);
    bool affordable = is_affordable(&job->commits[0], job->reserve); /* they are many only if they are small */

    while (affordable && job->made < job->n) {
        struct commit *commit = &job->commits[job->made];

        commit->pause = work->pause;
        if (atomic_load(&job->stop) || commit_run(commit))
            break;
        work->paused = commit->paused;
        if (work->paused)
            break;
        if (job->fds && handle_reopen(commit->fd, true, &job->fds[job->made], NULL))
            job->fds[job->made] = -1;
        job->made++;
    }
}

/* So far none is made. */
static void stock_withdrawn(struct job *work) {}

/*
 * A thread of the class WORK_STOCK has hardly a share of its processor, and may lose that for seconds. So it gets
 * nothing for which it maps memory: the loop would have to wait for the lock on all mappings of the process.
 */
void stock_job_submit(struct jobs *jobs, struct stock_job *job)
{
    const struct commit *commit = &job->commits[0];
    enum work_class like_others = commit->plan.brief.bytes > WORK_SHORT_MAX ? WORK_LONG : WORK_SHORT;

    job->made = 0;
    job->job.uid = WORK_UNOWNED;
    job->job.work.spare = true;
    job->job.withdrawn = stock_withdrawn;
    job_submit(jobs, &job->job, job->urgent || commit_maps(commit) ? like_others : WORK_STOCK, stock_work);
}

/* ---- one buffer -------------------------------------------------------------------------------------------------- */

static void publish_work(struct work_job *work)
{
    struct memory_job *job = container_of(work, struct memory_job, job.work);

    job->status = handle_publish(job->fd, job->future_only, &job->problem);
}

static void discard_work(struct work_job *work)
{
    struct memory_job *job = container_of(work, struct memory_job, job.work);

    job->status = handle_discard(job->fd, job->offset, job->length, &job->cancel, &job->problem);
}

static void move_work(struct work_job *work)
{
    struct memory_job *job = container_of(work, struct memory_job, job.work);

    job->status = migrate_run(job->migration, job->fd);
    job->problem = job->migration->to.problem;
}

static void close_work(struct work_job *work)
{
    struct memory_job *job = container_of(work, struct memory_job, job.work);

    job->fd = fd_close(steal_fd(&job->fd));
}

static void memory_withdrawn(struct job *work)
{
    struct memory_job *job = container_of(work, struct memory_job, job);

    job->status = refuse(&job->problem, STATUS_TIMED_OUT, "it was cancelled before it began");
    if (job->migration)
        job->migration->displaced = false;
}

void memory_job_submit(struct jobs *jobs, struct memory_job *job)
{
    static const struct {
        void (*run)(struct work_job *work);
        enum work_class class;
    } tasks[] = {
        [MEMORY_PUBLISH] = {publish_work, WORK_BLOCKING}, [MEMORY_MOVE] = {move_work, WORK_BLOCKING},
        [MEMORY_DISCARD] = {discard_work, WORK_BLOCKING}, [MEMORY_EMPTY] = {discard_work, WORK_RELEASE},
        [MEMORY_CLOSE] = {close_work, WORK_CLOSING},
    };

    job->job.withdrawn = memory_withdrawn;
    job_submit(jobs, &job->job, tasks[job->task].class, tasks[job->task].run);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void process_work(struct work_job *work)
{
    struct process_job *job = container_of(work, struct process_job, job.work);

    job->pauses = process_pauses(job->pid);
}

/* This broker ends. */
static void process_withdrawn(struct job *work)
{
    container_of(work, struct process_job, job)->pauses = true;
}

void process_job_submit(struct jobs *jobs, struct process_job *job)
{
    job->job.withdrawn = process_withdrawn;
    job_submit(jobs, &job->job, WORK_BLOCKING, process_work);
}

/* The groups' files are the kernel's own, and yet their reader may wait for others who change groups. */
static void kills_work(struct work_job *work)
{
    struct kills_job *job = container_of(work, struct kills_job, job.work);

    job->known = (*job->file || groups_find_kills(job->root, job->pid, job->file, sizeof(job->file))) &&
                 groups_read_kills(job->file, &job->kills);
}

static void kills_withdrawn(struct job *work)
{
    container_of(work, struct kills_job, job)->known = false;
}

void kills_job_submit(struct jobs *jobs, struct kills_job *job)
{
    job->job.withdrawn = kills_withdrawn;
    job_submit(jobs, &job->job, WORK_BLOCKING, kills_work);
}

/* ---- watches after an overflow ----------------------------------------------------------------------------------- */

static int compare_wds(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return x < y ? -1 : x > y;
}

/* "inotify wd:1f ino:... " a line, numbers in hexadecimal */
static int read_live_watches(struct live_watches_job *job)
{
    static const char prefix[] = "inotify wd:";
    char path[64];
    _cleanup_fclose_ FILE *f = NULL;
    _cleanup_free_ char *line = NULL;
    size_t size = 0, room = 0;

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", job->watch);
    f = fopen(path, "re");
    if (!f)
        return -errno;
    while (getline(&line, &size, f) > 0) {
        if (strncmp(line, prefix, sizeof(prefix) - 1) != 0)
            continue;
        if (job->n == room) {
            size_t more = room ? 2 * room : 64;
            int *wds = reallocarray(job->wds, more, sizeof(*wds));

            if (!wds)
                return -ENOMEM;
            job->wds = wds;
            room = more;
        }
        job->wds[job->n++] = (int)strtol(line + sizeof(prefix) - 1, NULL, 16);
    }
    if (ferror(f))
        return -EIO;
    if (job->n)
        qsort(job->wds, job->n, sizeof(*job->wds), compare_wds);
    return 0;
}

static void live_watches_work(struct work_job *work)
{
    struct live_watches_job *job = container_of(work, struct live_watches_job, job.work);

    job->status = read_live_watches(job);
}

void live_watches_job_submit(struct jobs *jobs, struct live_watches_job *job)
{
    job->job.uid = WORK_UNOWNED;
    job_submit(jobs, &job->job, WORK_RELEASE, live_watches_work);
}

bool live_watches_has(const struct live_watches_job *job, int wd)
{
    return job->n && bsearch(&wd, job->wds, job->n, sizeof(*job->wds), compare_wds);
}
