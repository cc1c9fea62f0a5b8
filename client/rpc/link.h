/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection below a channel: receiving, losing it, making the next one.
 *
 * Only the leader calls these, with the channel's lock, which they give up whenever they wait. The next connection is
 * made in steps, one to a turn, and the channel keeps how far that has got: when the deadline of one leader passes, the
 * next one continues.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc/channel.h"
#include "rpc/stubs.h"

/* How long recvmsg() waits for a reply, which is enough for most, before poll() is used; and the most for a turn. */
#define LINK_WAIT_MS 1000

/*
 * A release that finds no room in the release log waits this long after the connection was lost, and after HELLO was
 * sent. A full listening socket is tried again for it as long.
 */
#define LINK_LEAVE_NS (2 * NSEC_PER_SEC)

/* How soon to try again where poll() cannot tell. */
#define LINK_RETRY_NS (1 * NSEC_PER_MSEC)

/*
 * Leads for one turn: waits for a packet until the deadline and receives, or takes the next step towards a connection.
 * `just_sent`: the socket was checked a moment ago, and need not be checked again.
 */
void link_lead(struct channel *channel, uint64_t deadline, bool just_sent);

/* Receives everything that is there. */
void link_drain(struct channel *channel);

/*
 * Each thread calls this before it leaves the channel: it wakes a thread that waits, which then leads. If none waits,
 * and the connection was lost before all releases were sent, this makes the next one and sends HELLO and the releases
 * after it, without waiting for any answer. Gives the lock up meanwhile.
 */
void link_leave(struct channel *channel);

/* The session is lost: all calls fail, those whose requests were not sent with ENOTCONN. */
void channel_break_locked(struct channel *channel, int err, const char *why);

/* ---- resume.c ---------------------------------------------------------------------------------------------------- */

/* One step, from LINK_DOWN. */
void resume_step(struct channel *channel, uint64_t deadline);
/* The same without a pause before it, and without starting a broker. */
void resume_at_once(struct channel *channel);
/* The same once, and only if the pause is over. */
void resume_if_due(struct channel *channel);
/* A packet has come in LINK_HANDSHAKING, perhaps the answer to HELLO. */
void resume_check_hello(struct channel *channel);
/* A request was answered: the connection works. */
void resume_confirm(struct channel *channel);
/* The connection was lost in LINK_HANDSHAKING. */
void resume_lost_hello(struct channel *channel);
/* Sets the sentence for a deadline that passed. Returns -ETIMEDOUT. */
int resume_timed_out(struct channel *channel);
void resume_deinit(struct channel *channel);
