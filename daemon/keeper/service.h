/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's service manager: it learns how things are, and keeps a few descriptors in its store, which come back
 * with the next start. Without a service manager all of it does nothing.
 *
 * The store is slow with many descriptors and passes their names in one string, so it gets the ledger, the listening
 * socket, and the fd stash, in which everything else travels.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "keeper/packet.h"
#include "keeper/store.h"

#define SERVICE_NAME_LEDGER   "memoryd-ledger"
#define SERVICE_NAME_LISTENER "memoryd-listener"
#define SERVICE_NAME_METRICS  "metrics"         /* FileDescriptorName= of its socket unit; never stored by itself */
#define SERVICE_NAME_FD_STASH "memoryd-carrier" /* as earlier versions stored it; both ends, in any order */

/* Does it keep descriptors? systemd before 254 does not say; it is assumed then. */
bool service_has_store(void);
/* What becomes of the store when this process is told to stop. Nothing tells a stop from a restart. */
enum keeper_stop service_at_stop(void);
/* The watchdog's time in milliseconds; 0: it has none. */
uint64_t service_watchdog_ms(void);

/* A broker serves. The first time, also stores what there is of the three, but not a listener that is the manager's
 * own. */
void service_ready(const struct store *store, bool first, bool store_listener);
void service_store_ledger(int fd);

/* The line that the manager shows. */
struct service_line {
    uint64_t figures[KEEPER_FIGURES]; /* that it shows; all 0: none yet */
    unsigned pause;                   /* heartbeats until it may change again */
};

/* A heartbeat of a broker that serves: shows what has changed, and that not too often. */
void service_heartbeat(struct service_line *line, const struct packet *heartbeat);
