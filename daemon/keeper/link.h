/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The broker's side of the keeper.
 *
 * What the broker has to find again after its death, it gives to the keeper under a key: as soon as keeper_hold()
 * has returned, the next broker will be handed that descriptor, whatever happens to this one.
 *
 * Every function takes NULL for the link, does nothing then and says that it worked: tests of the rooms above have no
 * keeper. All of it is for the loop's thread.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "keeper/packet.h"

/* What a broker exits with that cannot read the ledger: the keeper then starts the program that was there before. */
#define KEEPER_EXIT_LEDGER 5
/* Why an upgrade is refused, among errnos: to the program that is installed the configuration has mistakes. */
#define KEEPER_REFUSED_CONFIG EBADMSG
/* A batch: as many as fit into one packet. */
#define KEEPER_BATCH_MAX 64

struct keeper_link;

/* Takes the socket on success. 0 or a negative errno. */
int keeper_link_new(struct keeper_link **ret, int socket);
struct keeper_link *keeper_link_free(struct keeper_link *link);
DEFINE_CLEANUP(struct keeper_link *, keeper_link_free);

/* ---- at the start ----------------------------------------------------------------------------------------- */

/* Tells `count` how much was kept, hands all of it to `take`, in no order, and returns when that was all. To be called
 * first and once; neither may use the link. 0 or a negative errno (-EPIPE: the keeper is gone; what came came). */
int keeper_link_receive(struct keeper_link *link, keeper_count_fn *count, keeper_take_fn *take, void *userdata);
/* Who it is; 0 without a link, or before it has said so. */
pid_t keeper_pid(const struct keeper_link *link);

/* ---- what is kept ----------------------------------------------------------------------------------------- */

/* The keeper holds a copy of `fd` from now on, in place of what had this key. Waits if there is no room for the
 * moment. 0 or a negative errno: -EPIPE if the keeper is gone, which keeper_link_dispatch() will say too. */
int keeper_hold(struct keeper_link *link, enum keeper_kind kind, uint64_t id, int fd);
/* The same for up to KEEPER_BATCH_MAX of them, all or nothing. */
int keeper_hold_many(struct keeper_link *link, enum keeper_kind kind, unsigned n, const uint64_t *ids,
                     const int *fds);
/* The keeper closes what has this key, if there is such a thing. */
void keeper_drop(struct keeper_link *link, enum keeper_kind kind, uint64_t id);

/* The same for what takes time to close: when `done` is called the keeper has closed its copy, and whoever closes
 * another closes the last. It is embedded in what it is about, and may be used again once it was called. */
struct keeper_drop {
    void (*done)(struct keeper_drop *drop); /* set by the caller; from keeper_link_dispatch(), or, without a link,
                                             * before keeper_drop_then() returns. Not at all if the keeper is gone. */
    struct list in_link;                    /* the rest belongs to the link */
    struct keeper_key key;
};
/* Any number at once: the link asks for so many that the answers find room, and the rest waits in it. */
void keeper_drop_then(struct keeper_link *link, enum keeper_kind kind, uint64_t id, struct keeper_drop *drop);

/* ---- in the loop ------------------------------------------------------------------------------------------ */

struct keeper_link_events {
    /* End in order, and free nothing: the next broker goes on, soon or, unless all is lost, with the next start. */
    void (*stop)(void *userdata, enum keeper_stop how);
    void (*upgrade_refused)(void *userdata, int error); /* a positive errno */
    void (*reload)(void *userdata);   /* read the configuration again, then send RELOADED */
    void (*orphaned)(void *userdata); /* the keeper is gone: said once; see fd_stash.h */
};

/* Poll it for reading; -1 without a link. */
int keeper_link_fd(const struct keeper_link *link);
/* A bounded number of packets. 0 or a negative errno. */
int keeper_link_dispatch(struct keeper_link *link, const struct keeper_link_events *events, void *userdata);

/* One of those without keys: READY, HEARTBEAT (once a second, else the broker is killed), RELOADED, UPGRADE, LEFT. */
void keeper_link_send(struct keeper_link *link, enum packet_type type);
