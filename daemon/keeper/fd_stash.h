/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A socket pair full of descriptors, by which they outlive both keeper and broker.
 *
 * The service manager's store of descriptors is slow with many of them, and a program that executes itself wants to
 * name a few only. So all descriptors travel in one socket pair, which is stored, or inherited: they are put into one
 * end and wait there for whoever reads the other.
 *
 * A socket's buffer has room for some thousand descriptors, so they are packed into *bundles*: an inner socket is
 * filled until it takes no more, and its reading end goes into the outer socket. Both ends of the outer one have to
 * stay, since somebody must be able to put things in and somebody to take them out. Of a bundle nobody needs the
 * writing end any more, so the end of its contents is the end of the file.
 */

#include "keeper/key.h"
#include "keeper/packet.h"

struct fd_stash {
    int outer;    /* borrowed */
    int bundle[2]; /* to be filled, and to be sent */
    struct packet packet;
    int fds[PACKET_KEYS_MAX]; /* borrowed until the packet is sent */
};

/* A new one. 0 or a negative errno. */
int fd_stash_new(int ret[2]);

/* To put things in: begin, put any number, finish, abandon; the last closes what is left and is needed always. All of
 * them return 0 or a negative errno (-ENOBUFS: it is full). The descriptors stay the caller's, and open until
 * fd_stash_finish() has returned. */
void fd_stash_begin(struct fd_stash *fd_stash, int outer);
int fd_stash_put(struct fd_stash *fd_stash, struct keeper_key key, int fd);
int fd_stash_finish(struct fd_stash *fd_stash);
void fd_stash_abandon(struct fd_stash *fd_stash);

/* Takes everything out of one end; it is empty then, and may be used again. 0 or a negative errno; what cannot be read
 * is left out, and said. */
int fd_stash_drain(int outer, keeper_take_fn *fn, void *userdata);
