/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the process that is started. It holds what the broker must not lose, and sees to it that one runs.
 *
 * It parses nothing that a client sent, and allocates nothing once it runs: what it holds is in a table that was made
 * at the start, and all that it receives comes from its own child in packets of one form. The broker gives it every
 * descriptor that matters before it relies on it. When the broker has ended, in whatever way, the keeper reads its
 * socket to the end, starts the next one and hands everything over.
 *
 * What is held also outlives the keeper, in an fd stash (fd_stash.h): the service manager stores it, or the program
 * that takes the keeper's place inherits it.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/packet.h"
#include "keeper/service.h"
#include "keeper/start.h"
#include "keeper/store.h"

enum keeper_state {
    KEEPER_DOWN,     /* there is no broker; the next one starts at `due` */
    KEEPER_HANDING,  /* the broker is being given what is held */
    KEEPER_STARTING, /* it has everything, and does not serve yet */
    KEEPER_SERVING,
};

enum keeper_goal {
    KEEPER_GOAL_SERVE,
    KEEPER_GOAL_STOP,
    KEEPER_GOAL_UPGRADE,
};

/* A test run of the program that is to take our place. */
struct preflight {
    pid_t pid;         /* 0: there is none */
    bool reads_config; /* the second run; in the first it prints its version */
    int output;        /* what it prints */
    uint64_t ms;       /* since it began */
};

/* A broker whose process has not ended, though the next one may have started: it hangs in the kernel, or its workers
 * are at work there. */
struct departed {
    pid_t pid;   /* 0: it has ended */
    int cleaner; /* a pidfd; -1: it has ended, or there was none */
};

/* With so many of them no other broker is started. */
#define KEEPER_DEPARTED_MAX 8

struct keeper {
    struct store store;
    struct start start;

    /* set by the caller, after keeper_init() */
    bool own_listener;              /* not the service manager's */
    bool inherited;                 /* the store may have more than listener and lock: never give up */
    void (*served)(void *userdata); /* called when the first broker serves, or NULL */
    void *userdata;
    uint64_t tick_ms;             /* how often the broker is looked after */
    uint64_t unresponsive_max_ms; /* after that a broker that serves is killed */
    uint64_t hangs_ms;            /* after that one that was killed is not waited for; exiting takes a moment, too */

    uint64_t most; /* the limit of open files */
    enum keeper_state state;
    enum keeper_goal goal;
    bool has_served;    /* any broker of this keeper */
    bool use_previous;  /* the next broker is the program that ran before this one … */
    bool runs_previous; /* … the one that runs is */
    struct preflight preflight;
    int program; /* the installed one, from its first preflight to its execution, whatever its path leads to by then */
    int signal_fd;
    int low_fd;      /* a broker's end of its socket while it is started; else a copy of signal_fd */
    int socket;      /* to the broker; -1 if there is none, or all was read that it sent */
    pid_t pid;       /* of the broker; 0 when it has ended, or left: the number may be reused soon */
    siginfo_t ended; /* how the broker ended */
    struct dying {
        uint64_t begun;       /* the broker was killed then, or has closed its socket; 0: neither */
        uint64_t hangs;       /* … and was first seen to hang; 0: it was not */
        uint64_t look_due;    /* when it is looked at next */
        uint64_t clean_until; /* after its end: so long its cleaner is waited for; 0: not */
        pid_t cleaner;        /* 0: there is none */
        int cleaner_fd;       /* a pidfd; -1: there is none */
        bool crowded;         /* no other is started: it was logged */
    } dying;
    struct departed departed[KEEPER_DEPARTED_MAX];
    struct service_line line;
    bool has_zombies;         /* keeper_reap() has something to do */
    size_t position;          /* in the store, while handing over */
    bool wait_for_turn;       /* … too many descriptors of this user are in flight */
    uint64_t unresponsive_ms; /* of the broker; while it shuts down, since it was told to */
    uint64_t back_off_ms;     /* 0 after a broker that has served */
    uint64_t due;             /* when the next broker is to be started */
    uint64_t tick_due;
    bool watchdog;
    bool over;
    int status; /* of the process, when it is over */
    bool kept;  /* the service manager has what was held: the files of the socket must stay */
};

/* `most` = the limit of open files, argv = the process's. 0 or a negative errno. */
int keeper_init(struct keeper *keeper, uint64_t most, char *const *argv);
void keeper_deinit(struct keeper *keeper);

/* With listener and lock in the store: until a signal or the broker ends it. Returns the exit status. */
int keeper_run(struct keeper *keeper);

/* ---- between the files of this module ---------------------------------------------------------------------------- */

/* child.c: the broker. */
void keeper_start_broker(struct keeper *keeper);
/* Hands over as much as the socket takes. */
void keeper_hand_over(struct keeper *keeper);
/* Handles a bounded number of packets; false when all was read that this broker will ever send. */
bool keeper_receive(struct keeper *keeper);
/* After a SIGCHLD: notes whether the broker has ended, and leaves it a zombie. */
void keeper_note_exit(struct keeper *keeper);
/* Reaps the broker, which may take a while, and whatever else has ended: the first process of a container inherits
 * every orphan. */
void keeper_reap(struct keeper *keeper);
void keeper_send(struct keeper *keeper, enum packet_type type, uint32_t value, const struct keeper_key *key);
/* If it has not ended. `why` is logged, unless it is NULL. */
void keeper_kill_broker(struct keeper *keeper, const char *why);

/* dying.c: from the broker's death until the next one may start. */
void keeper_dying_init(struct keeper *keeper);
void keeper_dying_deinit(struct keeper *keeper);
/* It was killed, or has closed its socket, so it will end. */
void keeper_dying_begin(struct keeper *keeper);
/* When the loop must call keeper_dying_run() again at the latest. */
uint64_t keeper_dying_due(const struct keeper *keeper);
/* Looks at it, and does not wait for its end if it hangs. */
void keeper_dying_run(struct keeper *keeper);
/* The broker's cleaner. */
void keeper_note_cleaner(struct keeper *keeper, pid_t pid);
/* The broker has ended (`pid` = 0), or is not waited for. */
void keeper_dying_ended(struct keeper *keeper, pid_t pid, bool await_cleaner);
/* Does the cleaner still have something to do before the next broker starts? */
bool keeper_awaits_cleaner(const struct keeper *keeper);
/* A child was reaped: was it a broker that is not waited for? */
void keeper_departed_ended(struct keeper *keeper, pid_t pid);
/* Once a tick. */
void keeper_departed_tick(struct keeper *keeper);
/* May another be started? If not, that was logged. */
bool keeper_has_room_for_another(struct keeper *keeper);

/* keeper.c: the loop. */
void keeper_broker_is_ready(struct keeper *keeper);
/* The installed program can take our place: the broker is told to stop. */
void keeper_begin_upgrade(struct keeper *keeper);

/* handover.c: the end. */
/* No broker runs, and none is to be started. */
void keeper_end(struct keeper *keeper, int status);
/* Executes the installed program; returns only if that failed. */
void keeper_upgrade(struct keeper *keeper);

/* preflight.c: does the installed program run? */
/* The broker asks for an upgrade. */
void keeper_preflight_begin(struct keeper *keeper);
/* The preflight was reaped. */
void keeper_preflight_ended(struct keeper *keeper, const siginfo_t *info);
/* Once a tick. */
void keeper_preflight_tick(struct keeper *keeper);
