/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection below a channel, as its leader has it: receiving, losing it, making the next one.
 *
 * All of it is for the leader, with the channel's lock, which is given up whenever it waits. The next connection is
 * made in steps, one to a turn, and what was reached is kept in the channel: when the deadline of one leader passes
 * the next one goes on from there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/channel.h"
#include "rpc/stubs.h"

/* How long a reply is waited for inside recvmsg(), which most are, before poll() is asked; and a turn at most. */
#define LINK_WAIT_MS 1000

/*
 * What gives something back and finds no room in the release log waits so long after the connection was lost, and after
 * HELLO was sent; and so long a listening socket that is full is tried again for it.
 */
#define LINK_LEAVE_NS (2 * NSEC_PER_SEC)

/* How soon to look again where poll() cannot tell. */
#define LINK_RETRY_NS (1 * NSEC_PER_MSEC)

/*
 * Leads for one turn: waits for a packet until the deadline and receives what is one, or does the next step towards a
 * connection. `just_sent`: the socket has been seen to be ours a moment ago, and need not be looked at again.
 */
void link_lead(struct channel *channel, uint64_t deadline, bool just_sent);

/* Receives all that is there. */
void link_drain(struct channel *channel);

/*
 * A thread that stops leading, or never led, calls this before it goes: then a thread that waits leads. If none waits,
 * and the connection was lost before all that gives something back was sent, it makes the next one and sends HELLO and
 * all of that behind it, without waiting for anything. Gives the lock up meanwhile.
 */
void link_leave(struct channel *channel);

/* Nobody can go on: all that waits fails, and what is not sent can be told to try elsewhere. */
void channel_break_locked(struct channel *channel, int err, const char *why);

/* ---- resume.c ------------------------------------------------------------------------------- */

/* One step, from LINK_DOWN. */
void resume_step(struct channel *channel, uint64_t deadline);
/* The same without a pause before it, and without starting a broker. */
void resume_at_once(struct channel *channel);
/* A packet has been delivered in LINK_HANDSHAKING: it may have been the answer. */
void resume_check_hello(struct channel *channel);
/* Something was answered: the connection is good. */
void resume_confirm(struct channel *channel);
/* The connection was lost in LINK_HANDSHAKING. */
void resume_lost_hello(struct channel *channel);
/* The sentence for a deadline that passed. Returns -ETIMEDOUT. */
int resume_timed_out(struct channel *channel);
void resume_deinit(struct channel *channel);
