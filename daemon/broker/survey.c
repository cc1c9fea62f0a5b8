/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See survey.h. An entry is the worker's until it says that it was seen, and from then on nobody changes it. The
 * descriptors are the loop's to close once the survey is over: it says so, and waits for the lock that the worker holds
 * while it looks at a few.
 */
#include "broker/survey.h"

#include <pthread.h>
#include <stdlib.h>

/* A worker has to wake up first. */
#define WORTH_IT 256
/* Looked at while the loop would have to wait. */
#define FEW 16

struct entry {
    struct handle_look look;
    int fd; /* -1: it is of no buffer */
    atomic_bool seen;
};

struct survey {
    struct work_job job;
    struct jobs *jobs;
    pthread_mutex_t lock;
    atomic_bool over;
    size_t n;
    struct entry entries[];
};

static void look_at(struct entry *entry)
{
    if (entry->fd < 0)
        return;
    handle_look(entry->fd, &entry->look);
    atomic_store_explicit(&entry->seen, true, memory_order_release);
}

static void survey_work(struct work_job *work)
{
    struct survey *survey = container_of(work, struct survey, job);
    bool over = false;

    for (size_t i = 0; i < survey->n && !over;) {
        (void)pthread_mutex_lock(&survey->lock);
        over = atomic_load(&survey->over);
        for (size_t end = i + FEW; i < end && i < survey->n && !over; i++)
            look_at(&survey->entries[i]);
        (void)pthread_mutex_unlock(&survey->lock);
    }
}

static void survey_done(struct work_job *work)
{
    struct survey *survey = container_of(work, struct survey, job);

    survey->jobs->running--;
    (void)pthread_mutex_destroy(&survey->lock);
    free(survey);
}

struct survey *survey_begin(struct jobs *jobs, const struct keeper_thing *things, size_t n)
{
    struct survey *survey;

    if (n < WORTH_IT)
        return NULL;
    survey = calloc(1, sizeof(*survey) + n * sizeof(survey->entries[0]));
    if (!survey)
        return NULL;
    (void)pthread_mutex_init(&survey->lock, NULL);
    survey->jobs = jobs;
    survey->n = n;
    for (size_t i = 0; i < n; i++)
        survey->entries[i].fd = things[i].key.kind == KEEPER_BUFFER ? things[i].fd : -1;
    survey->job = (struct work_job)WORK_JOB_INIT(survey->job, survey_work, survey_done);
    jobs->running++;
    work_submit(jobs->work, WORK_SHORT, &survey->job);
    return survey;
}

const struct handle_look *survey_seen(const struct survey *survey, size_t i)
{
    const struct entry *entry = survey ? &survey->entries[i] : NULL;

    return entry && atomic_load_explicit(&entry->seen, memory_order_acquire) ? &entry->look : NULL;
}

struct survey *survey_end(struct survey *survey)
{
    if (!survey)
        return NULL;
    atomic_store(&survey->over, true);
    (void)pthread_mutex_lock(&survey->lock);
    (void)pthread_mutex_unlock(&survey->lock);
    return NULL;
}
