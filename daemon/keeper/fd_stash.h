/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket pair full of descriptors, by which they outlive both keeper and broker.
 *
 * The service manager's store of descriptors is slow with many of them, and a program that executes itself wants to
 * name a few only. So all descriptors travel in one socket pair, which is stored, or inherited: they are put into one
 * end and wait there until the other is read.
 *
 * A socket's buffer has room for some thousand descriptors, so they are packed into *bundles*: an inner socket is
 * filled until it takes no more, and its reading end goes into the outer socket. Both ends of the outer one have to
 * stay, since somebody must be able to put things in and somebody to take them out. Of a bundle nobody needs the
 * writing end any more, so the end of its contents is the end of the file.
 */
#pragma once

#include "keeper/key.h"

/* A new one. 0 or a negative errno. */
int fd_stash_new(int ret[2]);

/* Puts everything that is enumerated into one end; the caller keeps its descriptors. 0 or a negative errno (-ENOBUFS:
 * it is full). */
int fd_stash_fill(int outer, keeper_enumerate_fn *enumerate, void *userdata);

/* Takes everything out of one end; it is empty then, and may be used again. 0 or a negative errno; what cannot be read
 * is left out, and logged. */
int fd_stash_drain(int outer, keeper_take_fn *fn, void *userdata);
