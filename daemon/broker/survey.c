/* SPDX-License-Identifier: Apache-2.0 */
/* See survey.h. An entry is the worker's until it says that it was seen, and from then on nobody changes it. */

#include "broker/survey.h"

#include <stdlib.h>

/* A worker has to wake up first. */
#define WORTH_IT 256

struct entry {
    struct handle_look look;
    int fd; /* -1: it is of no buffer */
    atomic_bool seen;
};

struct survey {
    struct work_job job;
    struct jobs *jobs;
    atomic_bool over;
    size_t n;
    struct entry entries[];
};

static void survey_work(struct work_job *work)
{
    struct survey *survey = container_of(work, struct survey, job);

    for (size_t i = 0; i < survey->n && !atomic_load_explicit(&survey->over, memory_order_relaxed); i++) {
        struct entry *entry = &survey->entries[i];

        if (entry->fd < 0)
            continue;
        handle_look(entry->fd, &entry->look);
        atomic_store_explicit(&entry->seen, true, memory_order_release);
    }
}

static void survey_done(struct work_job *work)
{
    struct survey *survey = container_of(work, struct survey, job);

    survey->jobs->running--;
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
    if (survey)
        atomic_store_explicit(&survey->over, true, memory_order_relaxed);
    return NULL;
}
