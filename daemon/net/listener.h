/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Accepts clients.
 *
 * When there is no descriptor left, a listening socket stays readable and a loop that only tries again spins. So
 * accepting pauses for a moment and tries again: most shortages pass. One that does not pass must not let clients wait
 * for ever either: a spare descriptor, kept for that, is given up to accept each of them and close it, which they
 * can see.
 */

#include "base/cleanup.h"
#include "net/net.h"

#define LISTENER_PAUSE_MS 100
/* Pauses in a row before clients are turned away. */
#define LISTENER_PATIENCE 10

struct listener;

/* Takes the listening socket on success. 0 or a negative errno. */
int listener_new(struct listener **ret, struct net *net, int fd);
/* Closes it: nobody can connect any more. Returns NULL. */
struct listener *listener_free(struct listener *listener);
DEFINE_CLEANUP(struct listener *, listener_free);
