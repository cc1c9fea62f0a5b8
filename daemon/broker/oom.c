/* SPDX-License-Identifier: Apache-2.0 */
/* See oom.h. */
#include "broker/oom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/jobs.h"
#include "broker/lookup.h"
#include "broker/state.h"
#include "sys/peer.h"

/* A control group, as long as a session or a death refers to it. */
struct oom_group {
    RB_ENTRY(oom_group) link;
    struct oom_groups *groups;
    unsigned refs;
    uint64_t first; /* kills when it was looked at first */
    uint64_t taken; /* of those since then: how many have explained a death, in whatever order those are told */
    char file[];
};

struct oom_look {
    struct kills_job job;
    struct broker *broker;
    uint64_t session;
    /* of the first one: for whom, unless it has gone */
    struct client *client;
    /* of the second one, until nobody wants it any more: how many there were before */
    struct oom_group *group;
    uint64_t before;
    oom_done_fn *done; /* NULL: it was called */
};

static int compare_groups(const struct oom_group *a, const struct oom_group *b)
{
    return strcmp(a->file, b->file);
}

TREE_GENERATE(oom_groups, oom_group, link, compare_groups)

/* In which so many were killed until now. NULL: there is no memory. */
static struct oom_group *oom_group_ref(struct oom_groups *groups, const char *file, uint64_t kills)
{
    size_t size = strlen(file) + 1;
    struct oom_group *group = calloc(1, sizeof(*group) + size), *found;

    if (!group)
        return NULL;
    memcpy(group->file, file, size);
    group->groups = groups;
    group->first = kills;
    found = RB_INSERT(oom_groups, groups, group);
    if (found) {
        free(group);
        group = found;
    }
    group->refs++;
    return group;
}

static void oom_group_unref(struct oom_group *group)
{
    if (!group || --group->refs)
        return;
    RB_REMOVE(oom_groups, group->groups, group);
    free(group);
}

static struct oom_look *oom_look_new(struct broker *broker, const struct session *session, void (*done)(struct job *))
{
    struct oom_look *look = calloc(1, sizeof(*look));

    if (!look)
        return NULL;
    look->broker = broker;
    look->session = session->record->head.id;
    look->job.pid = (pid_t)session->record->pid;
    look->job.root = broker->options.groups_root;
    look->job.job.uid = session->record->uid;
    look->job.job.done = done;
    return look;
}

/* ---- the first one ----------------------------------------------------------------------------------------------- */

/* Asked last: while the process lived, its number could not be another one's. */
static bool oom_is_of(const struct session *session)
{
    return session && session->peer.pidfd >= 0 && !peer_is_dead(session->peer.pidfd);
}

static void oom_begun(struct job *job)
{
    struct oom_look *look = container_of(job, struct oom_look, job.job);
    struct client *client = look->client;

    if (client) {
        client->finds_oom = NULL;
        if (look->job.known && oom_is_of(find_session(look->broker, look->session)))
            client->oom = oom_group_ref(&look->broker->oom_groups, look->job.file, look->job.kills);
        client->oom_before = look->job.kills;
    }
    free(look);
}

void oom_begin(struct broker *broker, struct session *session)
{
    struct client *client = client_of(session);

    if (!broker->options.groups_root || client->oom_begun)
        return;
    client->oom_begun = true;
    client->finds_oom = oom_look_new(broker, session, oom_begun);
    if (!client->finds_oom)
        return;
    client->finds_oom->client = client;
    kills_job_submit(&broker->jobs, &client->finds_oom->job);
}

bool oom_is_known(const struct session *session)
{
    return client_of(session)->oom;
}

void oom_end(struct client *client)
{
    if (client->finds_oom) {
        client->finds_oom->client = NULL;
        (void)job_withdraw(&client->finds_oom->job.job);
    }
    client->finds_oom = NULL;
    oom_group_unref(client->oom);
    client->oom = NULL;
}

/* ---- the second one ---------------------------------------------------------------------------------------------- */

static void oom_looked(struct job *job)
{
    struct oom_look *look = container_of(job, struct oom_look, job.job);
    oom_done_fn *done = look->done;

    if (!look->group) {
        free(look);
        return;
    }
    look->done = NULL;
    done(look->broker, look->session);
}

struct oom_look *oom_look(struct broker *broker, const struct session *session, oom_done_fn *done)
{
    const struct client *client = client_of(session);
    struct oom_look *look = oom_look_new(broker, session, oom_looked);

    if (!look)
        return NULL;
    look->done = done;
    look->before = client->oom_before;
    look->group = client->oom;
    look->group->refs++;
    (void)snprintf(look->job.file, sizeof(look->job.file), "%s", look->group->file);
    kills_job_submit(&broker->jobs, &look->job);
    return look;
}

bool oom_has_looked(const struct oom_look *look)
{
    return !look->done;
}

bool oom_take(struct oom_look *look)
{
    struct oom_group *group = look->group;

    if (!oom_has_looked(look) || !look->job.known || look->job.kills <= look->before ||
        look->job.kills - group->first <= group->taken)
        return false;
    group->taken++;
    return true;
}

/* One that waits for a worker costs memory, and is withdrawn. */
void oom_look_end(struct oom_look *look)
{
    if (!look)
        return;
    oom_group_unref(look->group);
    look->group = NULL;
    if (oom_has_looked(look))
        free(look);
    else
        (void)job_withdraw(&look->job.job);
}
