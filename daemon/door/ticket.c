/* SPDX-License-Identifier: Apache-2.0 */
/* See ticket.h. */
#include "door/ticket.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "door/message.h"

/* Of a user. More than threads of its programs that wait for their turn. */
#define TICKETS_MAX 1024
#define MEMORY_MAX  128
#define TICKET_NS   (10 * NSEC_PER_SEC)

struct ticket {
    struct list link;
    uint64_t session;
    uint64_t number;
    uint64_t shown_at;
    bool memory;
    struct handle_shown shown;
};

static void ticket_drop(struct tickets *tickets, struct ticket *ticket)
{
    list_remove(&ticket->link);
    tickets->n--;
    tickets->n_memory -= ticket->memory;
    if (ticket->shown.fd >= 0)
        tickets->end(tickets, ticket->shown.fd);
    free(ticket);
}

void tickets_init(struct tickets *tickets, void (*end)(struct tickets *tickets, int fd))
{
    tickets->n = tickets->n_memory = 0;
    list_init(&tickets->list);
    tickets->end = end;
}

void tickets_deinit(struct tickets *tickets)
{
    list_for_each_entry_safe(ticket, &tickets->list, struct ticket, link)
        ticket_drop(tickets, ticket);
}

/* For another one. */
static void tickets_make_room(struct tickets *tickets, bool memory)
{
    bool is_full = tickets->n == TICKETS_MAX, is_full_of_memory = memory && tickets->n_memory == MEMORY_MAX;

    list_for_each_entry_safe(ticket, &tickets->list, struct ticket, link) {
        if (!is_full && !is_full_of_memory)
            break;
        if (is_full_of_memory && !ticket->memory)
            continue;
        ticket_drop(tickets, ticket);
        break;
    }
}

void tickets_add(struct tickets *tickets, const struct door_message *message, int fd)
{
    struct ticket *ticket = message->memory == (fd >= 0) ? malloc(sizeof(*ticket)) : NULL;

    if (!ticket) {
        if (fd >= 0)
            tickets->end(tickets, fd);
        return;
    }
    tickets_make_room(tickets, message->memory);
    *ticket = (struct ticket){
        .session = message->session,
        .number = message->ticket,
        .shown_at = clock_now_ns(),
        .memory = message->memory,
        .shown = message->shown,
    };
    ticket->shown.fd = fd;
    list_init(&ticket->link);
    list_append(&tickets->list, &ticket->link);
    tickets->n++;
    tickets->n_memory += message->memory;
}

void tickets_expire(struct tickets *tickets)
{
    uint64_t now = clock_now_ns();

    list_for_each_entry_safe(ticket, &tickets->list, struct ticket, link) {
        if (now - ticket->shown_at < TICKET_NS)
            break;
        ticket_drop(tickets, ticket);
    }
}

bool tickets_take(struct tickets *tickets, uint64_t session, uint64_t number, bool memory, struct handle_shown *ret)
{
    list_for_each_entry_safe(ticket, &tickets->list, struct ticket, link) {
        if (ticket->number != number || ticket->session != session || ticket->memory != memory)
            continue;
        *ret = ticket->shown;
        ticket->shown.fd = -1;
        ticket_drop(tickets, ticket);
        return true;
    }
    return false;
}
