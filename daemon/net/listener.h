/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts clients.
 *
 * While no descriptor is left, the listening socket stays readable, and a loop that only tried again would spin. So
 * accepting pauses for a moment: most shortages pass. If one does not, clients must not wait forever: the listener
 * closes a spare descriptor, accepts a client with it, and closes the connection, which the client notices.
 */
#pragma once

#include "base/cleanup.h"
#include "net/net.h"

#define LISTENER_PAUSE_MS 100
/* Pauses in a row before clients are turned away. */
#define LISTENER_PATIENCE 10

struct listener;

/* Takes the listening socket on success. 0 or a negative errno. */
int listener_new(struct listener **ret, struct net *net, int fd);
/* Closes the socket: nobody can connect any more. Returns NULL. */
struct listener *listener_free(struct listener *listener);
DEFINE_CLEANUP(struct listener *, listener_free);
