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

/* The group of a session's process. */
struct oom_group {
    uint64_t kills;
    char file[];
};

struct oom_look {
    struct kills_job job;
    struct broker *broker;
    uint64_t session;
    /* of the first one: for whom, unless it has gone */
    struct client *client;
    /* of the second one: how many there were; and NULL if nobody wants it any more */
    uint64_t before;
    oom_done_fn *done;
};

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

static struct oom_group *oom_group_new(const struct kills_job *found)
{
    size_t size = strlen(found->file) + 1;
    struct oom_group *group = malloc(sizeof(*group) + size);

    if (!group)
        return NULL;
    group->kills = found->kills;
    memcpy(group->file, found->file, size);
    return group;
}

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
            client->oom = oom_group_new(&look->job);
    }
    free(look);
}

void oom_begin(struct broker *broker, struct session *session)
{
    struct client *client = client_of(session);

    if (!broker->options.groups_root || client->oom || client->finds_oom)
        return;
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

static void oom_looked(struct job *job)
{
    struct oom_look *look = container_of(job, struct oom_look, job.job);

    if (look->done)
        look->done(look->broker, look->session, look->job.known && look->job.kills > look->before);
    free(look);
}

struct oom_look *oom_look(struct broker *broker, const struct session *session, oom_done_fn *done)
{
    const struct oom_group *group = client_of(session)->oom;
    struct oom_look *look = oom_look_new(broker, session, oom_looked);

    if (!look)
        return NULL;
    look->done = done;
    look->before = group->kills;
    (void)snprintf(look->job.file, sizeof(look->job.file), "%s", group->file);
    kills_job_submit(&broker->jobs, &look->job);
    return look;
}

/* What waits for a worker costs memory. */
void oom_cancel(struct oom_look *look)
{
    look->done = NULL;
    (void)job_withdraw(&look->job.job);
}

void oom_end(struct client *client)
{
    if (client->finds_oom) {
        client->finds_oom->client = NULL;
        (void)job_withdraw(&client->finds_oom->job.job);
    }
    client->finds_oom = NULL;
    free(client->oom);
    client->oom = NULL;
}
