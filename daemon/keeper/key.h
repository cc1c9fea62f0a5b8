/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper holds: descriptors, each under a key of its own. It does not know what they are.
 */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

/* They travel between programs of different versions: a number is never used again. */
enum keeper_kind {
    KEEPER_LISTENER = 1, /* the listening socket */
    KEEPER_LOCK = 2,     /* the lock beside it; none if a service manager made the socket */
    KEEPER_LEDGER = 3,
    KEEPER_WATCH = 4,        /* the inotify instance */
    KEEPER_SESSION = 5,      /* pidfd, by the session's id */
    KEEPER_BUFFER = 6,       /* T, by the buffer's id */
    KEEPER_PROGRAM = 7,      /* the previous program */
    KEEPER_FD_STASH = 8,     /* 0 and 1: the ends of the socket pair in the service manager's store; see fd_stash.h */
    KEEPER_FD_BUNDLE = 9,    /* only inside an fd stash */
    KEEPER_RELEASE_LOG = 10, /* by the session's id */
    KEEPER_CONFIG = 11,      /* the text of the last good configuration, see app/configuration.c */
    KEEPER_HISTORY = 12,
    KEEPER_COUNTERS = 13,
    KEEPER_METRICS = 14, /* listening sockets: 0, the service manager's; 1, the one of the configuration */
};

struct keeper_key {
    uint32_t kind; /* enum keeper_kind, or one of a later version */
    uint32_t zero;
    uint64_t id; /* 0 where there is only one */
};

#define KEEPER_KEY(KIND, ID) ((struct keeper_key){.kind = (KIND), .id = (ID)})

/* What becomes of all of it when the broker is told to stop. */
enum keeper_stop {
    KEEPER_STOP_NEXT,    /* the next broker gets it */
    KEEPER_STOP_LOST,    /* it is lost */
    KEEPER_STOP_RESTART, /* the service manager keeps it across a restart; with a stop it is lost */
    KEEPER_STOP_STORED,  /* the service manager keeps it */
};

/* A descriptor that an earlier broker held, as the keeper hands it over. */
struct inherited_fd {
    struct keeper_key key;
    int fd;
    uint32_t nth;     /* its place in the order in which they arrived, from 0 on */
    bool quarantined; /* the broker leaves it alone: its record is damaged */
};

/* Takes the descriptor. 0, or a negative errno, with which the caller stops. */
typedef int keeper_take_fn(void *userdata, enum keeper_kind kind, uint64_t id, int fd);
/* n descriptors will be handed over. */
typedef void keeper_count_fn(void *userdata, size_t n);
/* Calls give(to, kind, id, fd) for each descriptor that the next broker needs, and stays their owner. Stops at the
 * first result that is not 0. */
typedef int keeper_enumerate_fn(void *userdata, keeper_take_fn *give, void *to);
