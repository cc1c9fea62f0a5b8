/* SPDX-License-Identifier: Apache-2.0 */
/* See sessions.h. */
#include "broker/sessions.h"

#include "broker/caches.h"
#include "broker/claims.h"
#include "broker/deaths.h"
#include "broker/lifecycle.h"
#include "broker/lookup.h"
#include "broker/oom.h"
#include "broker/state.h"
#include "broker/subscriptions.h"

/* holds, names and the like given up in one turn, or a session that has none: each may close a small buffer, and for a
 * session several descriptors are closed and the keeper is told */
#define TEARDOWN_SLICE 4

/* Gives up one of the things it has. False: none is left. */
static bool give_up_one(struct broker *broker, struct session *session)
{
    struct hold *hold = session_next_hold(session, 0);
    struct list *link;

    if (hold) {
        struct buffer *buffer = hold->buffer;

        event_hold(broker, client_of(session)->died ? EVENT_DIED : EVENT_LEFT, hold);
        caches_hold_ends(broker, hold);
        hold_free(hold);
        lifecycle_claim_gone(broker, buffer);
        return true;
    }
    link = list_first(&session->names);
    if (link) {
        name_outlives(broker, container_of(link, struct name, in_session));
        return true;
    }
    link = list_pop(&session->tokens);
    if (link) {
        token_leave_session(container_of(link, struct token, in_session));
        return true;
    }
    link = list_first(&session->reservations);
    if (link) {
        struct reservation *reservation = container_of(link, struct reservation, in_session);

        reservation_release(reservation);
        return true;
    }
    link = list_first(&session->kept);
    if (link) {
        kept_free(container_of(link, struct kept, in_session));
        return true;
    }
    return false;
}

void sessions_take_apart(struct timer *timer)
{
    struct broker *broker = container_of(timer, struct broker, ending_turn);

    for (unsigned i = 0; i < TEARDOWN_SLICE; i++) {
        struct list *link = list_first(&broker->ending);
        struct client *client;
        struct session *session;

        if (!link)
            return;
        client = container_of(link, struct client, in_ending);
        session = client->session;
        if (give_up_one(broker, session))
            continue;
        death_tell(broker, session);
        list_remove(&client->in_ending);
        list_append(&broker->gone, &client->in_ending);
        client->has_release_log = session->release_log >= 0;
        session_free(session);
        break;
    }
    timer_arm(&broker->timers, timer, 0);
}

void sessions_forget(struct broker *broker)
{
    struct list *link;

    while ((link = list_pop(&broker->gone))) {
        struct client *client = container_of(link, struct client, in_ending);

        if (!deaths_have(broker, client->id))
            keeper_drop(broker->options.keeper, KEEPER_SESSION, client->id);
        if (client->has_release_log)
            keeper_drop(broker->options.keeper, KEEPER_RELEASE_LOG, client->id);
        oom_end(client);
        free(client);
    }
}
