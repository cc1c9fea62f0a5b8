/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the keeper has to do with its service manager: it says how things are, and leaves a few descriptors in its
 * store, which come back with the next start. Without a service manager all of it does nothing.
 *
 * The store is slow with many and passes their names in one string, so it gets the ledger, the listening socket, and
 * the fd stash, in which everything else travels.
 */

#include <stdbool.h>
#include <stdint.h>

#include "keeper/store.h"

#define SERVICE_NAME_LEDGER   "memoryd-ledger"
#define SERVICE_NAME_LISTENER "memoryd-listener"
#define SERVICE_NAME_FD_STASH "memoryd-carrier" /* as earlier versions stored it; both ends, in any order */

/* Is there one that keeps descriptors? Before 254 systemd does not say, and takes what it may. */
bool service_has_store(void);
/* What becomes of that when this process ends because it was told to. Nothing tells a stop from a restart. */
enum keeper_stop service_at_stop(void);
/* How often it wants to hear that we live, in milliseconds; 0: never. */
uint64_t service_watchdog_ms(void);

/* A broker serves. The first time, also stores what there is of the three; not a listener that is the manager's own. */
void service_ready(const struct store *store, bool first, bool store_listener);
void service_store_ledger(int fd);
