/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges that are occupied in somebody's process by what an earlier broker gave it.
 *
 * A client that lived on when all of a broker was lost still has its memory mapped, at addresses that the next broker
 * knows nothing of. It tells them at HELLO, and as long as its session lasts nobody gets an address in them, so that
 * what the client gets from now on can be mapped. What is another one's already when it is told stays so, and is kept
 * out when that ends.
 *
 * Each is a reservation of the session, charged as such, but without a range of the arena to itself: it takes what is
 * free of it. Several processes have what they shared at the same address, and all of them tell it; the first takes it,
 * and when that one ends the next does.
 */
#pragma once

#include <stdint.h>

#include "base/tree.h"

struct reservation;
struct reservations;

RB_HEAD(occupied_tree, reservation);

/* What of it is free is kept out from now on, and what becomes free. Not before occupied_begin(). */
void occupied_insert(struct reservation *reservation);
/* It gives up what it has, which others of them take then if it is theirs, too. */
void occupied_remove(struct reservation *reservation);

/* Everything that another broker left is in its place. */
void occupied_begin(struct reservations *reservations);
