/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges that are occupied in a process by what an earlier broker gave it.
 *
 * A client that outlived a broker of which everything was lost still has its memory mapped, at addresses that the next
 * broker does not know. It reports them at HELLO, and as long as its session lasts nobody gets an address in them, so
 * that what the client gets from now on can be mapped. A part that belongs to somebody when it is reported stays
 * theirs, and is kept free when they are done.
 *
 * Each such range is a reservation of the session and charged as one, but has no range of the arena to itself: it takes
 * the free parts. Processes that shared memory report it at the same address; the first reservation takes the range,
 * and when that ends the next does.
 */
#pragma once

#include <stdint.h>

#include "base/tree.h"

struct reservation;
struct reservations;

RB_HEAD(occupied_tree, reservation);

/* Takes what is free of the range now, and later what becomes free. Nothing is taken before occupied_begin(). */
void occupied_insert(struct reservation *reservation);
/* Gives up what the range has taken, which others that overlap it take then. */
void occupied_remove(struct reservation *reservation);

/* Is called when everything that another broker left is in its place. */
void occupied_begin(struct reservations *reservations);
