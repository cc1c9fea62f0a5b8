/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's side of the keeper.
 *
 * The broker gives the keeper, under a key, what has to outlive it: as soon as keeper_hold() has returned, the next
 * broker will be handed that descriptor, whatever happens to this one.
 *
 * Every function takes NULL for the link, and then does nothing and succeeds: tests of the modules above have no
 * keeper. All of it is for the loop's thread.
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "keeper/packet.h"

/* The exit status of a broker that cannot read the ledger: the keeper then starts the previous program. */
#define KEEPER_EXIT_LEDGER 5
/* Why an upgrade is refused, among errnos: the installed program finds mistakes in the configuration. */
#define KEEPER_REFUSED_CONFIG EBADMSG
/* A batch: as many as fit into one packet. */
#define KEEPER_BATCH_MAX 64

struct keeper_link;

/* Takes the socket on success. 0 or a negative errno. */
int keeper_link_new(struct keeper_link **ret, int socket);
struct keeper_link *keeper_link_free(struct keeper_link *link);
DEFINE_CLEANUP(struct keeper_link *, keeper_link_free);

/* ---- at the start ------------------------------------------------------------------------------------------------ */

/* Calls `count` with how many descriptors were held, and `take` with each, in no order. To be called first and once;
 * neither may use the link. 0 or a negative errno (-EPIPE: the keeper is gone, maybe after some of them). */
int keeper_link_receive(struct keeper_link *link, keeper_count_fn *count, keeper_take_fn *take, void *userdata);
/* 0 without a link, or before it has said so. */
pid_t keeper_pid(const struct keeper_link *link);

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

/* The keeper holds a copy of `fd` from now on, in place of what had this key. Waits while there is no room. 0 or a
 * negative errno: -EPIPE if the keeper is gone, which keeper_link_dispatch() reports, too. */
int keeper_hold(struct keeper_link *link, enum keeper_kind kind, uint64_t id, int fd);
/* The same for up to KEEPER_BATCH_MAX of them, all or nothing. */
int keeper_hold_many(struct keeper_link *link, enum keeper_kind kind, unsigned n, const uint64_t *ids, const int *fds);
/* The keeper closes what has this key, if anything. */
void keeper_drop(struct keeper_link *link, enum keeper_kind kind, uint64_t id);

/* The same for what takes time to close: when `done` is called, the keeper has closed its copy. The struct is embedded
 * in its subject, and may be used again once `done` was called. */
struct keeper_drop {
    void (*done)(struct keeper_drop *drop); /* set by the caller; from keeper_link_dispatch(), or, without a link,
                                             * before keeper_drop_then() returns. Not at all if the keeper is gone. */
    struct list in_link;                    /* the rest belongs to the link */
    struct keeper_key key;
};
/* Any number may be under way: the link asks for as many as there is room for answers, and queues the rest. */
void keeper_drop_then(struct keeper_link *link, enum keeper_kind kind, uint64_t id, struct keeper_drop *drop);

/* ---- in the loop ------------------------------------------------------------------------------------------------- */

struct keeper_link_events {
    /* Shut down, and free nothing: the next broker goes on, soon or, unless all is lost, with the next start. */
    void (*stop)(void *userdata, enum keeper_stop how);
    void (*upgrade_refused)(void *userdata, int error); /* a positive errno */
    void (*reload)(void *userdata);                     /* read the configuration again, then send RELOADED */
    void (*orphaned)(void *userdata);                   /* the keeper is gone; called once */
};

/* Poll it for reading; -1 without a link. */
int keeper_link_fd(const struct keeper_link *link);
/* Handles a bounded number of packets. 0 or a negative errno. */
int keeper_link_dispatch(struct keeper_link *link, const struct keeper_link_events *events, void *userdata);

/* So that the keeper can rouse the cleaner of this broker (cleaner.h). */
void keeper_link_tell_cleaner(struct keeper_link *link, pid_t pid);
/* Once a second, else the broker is killed. Tells the keeper's service manager what the broker serves. */
void keeper_link_heartbeat(struct keeper_link *link, const uint64_t figures[static KEEPER_FIGURES]);
/* One of those without keys: READY, RELOADED, UPGRADE, LEFT. */
void keeper_link_send(struct keeper_link *link, enum packet_type type);
