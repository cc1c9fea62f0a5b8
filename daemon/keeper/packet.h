/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one form of everything between keeper and broker, and in an fd stash: a type, and up to 64 keys, each with its
 * descriptor where the type says so.
 *
 * Both ends are the same program, or an older and a newer one during an upgrade: the form stays, types are only added,
 * and a type that is not known is skipped.
 */
#pragma once

#include <stdint.h>

#include "keeper/key.h"
#include "proto/fdset.h"

#define PACKET_KEYS_MAX MEMORYD_FDS_MAX
/* After SOCKIO_E_TOO_MANY_IN_FLIGHT: a turn comes when others have received what is in flight to them; nothing tells
 * when. */
#define PACKET_TURN_MS 1

enum packet_type {
    PACKET_HOLD = 1, /* with descriptors: hold them, or here is what was held */
    PACKET_DROP,     /* to the keeper: close these */
    PACKET_DROP_ASK, /* the same, and answer DROPPED */
    PACKET_DROPPED,
    PACKET_END,             /* to the broker: that was all; `value` is the keeper's pid */
    PACKET_READY,           /* to the keeper: the broker serves */
    PACKET_HEARTBEAT,       /* … and is alive; with KEEPER_FIGURES keys, whose ids are numbers */
    PACKET_STOP,            /* to the broker: shut down; `value` is an enum keeper_stop */
    PACKET_RELOAD,          /* to the broker: read the configuration again … */
    PACKET_RELOADED,        /* … it was */
    PACKET_UPGRADE,         /* to the keeper: start the installed program in place of the one that runs … */
    PACKET_UPGRADE_REFUSED, /* … it cannot be, `value` is the errno; else STOP is the answer */
    PACKET_COUNT,           /* to the broker, first of all: `value` descriptors come */
    /* To the keeper, last of all: the broker has shut down and changes nothing any more. The next one need not wait for
     * its process, whose workers may be inside the kernel for long. */
    PACKET_LEFT,
    PACKET_CLEANER, /* to the keeper: the cleaner of this broker is the process `value`; see cleaner.h */
};

struct packet {
    uint16_t type;
    uint16_t n;
    uint32_t value;
    struct keeper_key keys[PACKET_KEYS_MAX];
};

/* What a broker serves: the keys of a heartbeat, in this order. */
enum { FIGURE_POOLS, FIGURE_BUFFERS, FIGURE_USED, FIGURE_CAPACITY, FIGURE_CLIENTS, KEEPER_FIGURES };

/* Beyond sockio's outcomes. */
enum {
    PACKET_E_MALFORMED = 64, /* it was dropped, and its descriptors closed */
};

/* As sockio_send(): with n descriptors if it is HOLD (`fds` stay the caller's), else with none. */
int packet_send(int socket, const struct packet *packet, const int *fds);
/* As sockio_recv(). `fds` has one descriptor for each key of a HOLD, else none. */
int packet_receive(int socket, struct packet *ret, struct fdset *fds);
