/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two processes. app_keep() finds the place where clients are listened to and becomes the keeper, which starts
 * this program again as the broker; that is app_serve(): parts, loop, readiness.
 *
 * Everything is built before the first client is accepted, in the order in which the parts need each other. The loop
 * has nothing slow in it: each source does a bounded piece of work per turn. A broker that serves is never taken
 * apart: what its clients have is in the ledger and with the keeper, and the next broker goes on with it. It just ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "account/account.h"
#include "base/spin.h"
#include "broker/broker.h"
#include "config/config.h"
#include "keeper/link.h"
#include "keeper/store.h"
#include "mem/pool.h"
#include "net/listener.h"
#include "net/net.h"
#include "net/socket_path.h"
#include "rpc/rpc.h"
#include "sys/numa.h"
#include "work/work.h"

/* What the process ends with; documented in memoryd.8. */
enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,  /* something it needs is not available, or it broke */
    EXIT_USAGE = 2,
    EXIT_CONFIG = 3,  /* mistakes in the configuration */
    EXIT_RUNNING = 4, /* a broker serves there already */
    EXIT_LEDGER = KEEPER_EXIT_LEDGER, /* the ledger is in a form that this program does not know */
};

struct app_options {
    const char *socket;     /* NULL = the default */
    const char *config;     /* NULL = the default, if it is there */
    const char *sysconfdir; /* where the default is */
    const char *version;
    bool autostart;
    char *const *argv;
    int broker;     /* the socket to the keeper; -1: this is to be the keeper */
    int fd_stash[2]; /* what a keeper left that this process was, or whose broker it was; else -1 */
};

/* What a broker was handed by the keeper. Owned. */
struct inherited {
    int listener;
    int lock;       /* or -1 */
    int program;    /* or -1 */
    int config;     /* the last good configuration, or -1 */
    int fd_stash[2]; /* the service manager's, or -1 */
    struct inherited_fd *fds; /* the rest: what the broker before this one held; see broker_new() */
    size_t n_fds;
    struct survey *survey; /* of these, under way; or NULL */
};

struct process_watch;

struct app {
    const struct app_options *options;
    bool private; /* for one user */
    bool stopping;
    bool for_good; /* and no other broker is to go on */
    bool orphaned; /* there is no keeper any more */
    int error;     /* negative: why the loop ended */

    struct keeper_link *keeper;
    struct inherited inherited;

    struct config *config;
    bool config_stale; /* the file had mistakes when it was read last: in force is what it said before */
    uint64_t nofile;

    struct event_base *base;
    struct spin spin; /* before the loop sleeps */
    struct topology topology;
    struct pools *pools;
    struct work *work;
    struct broker *broker;
    struct rpc rpc;
    bool rpc_ready;
    struct net *net;
    struct listener *listener;
    struct process_watch *processes; /* hash by session */

    struct broker_host host;
    struct event tick_event;
    struct event watch_event;
    struct event work_event;
    struct event idle_event;
    struct event stop_event;
    struct event keeper_event;
    struct event heartbeat_event;
};

/* The keeper, and the broker that it starts; they return the exit status. */
int app_keep(const struct app_options *options);
int app_serve(const struct app_options *options);
/* Only reads the configuration and says what is wrong with it. */
int app_check_config(const struct app_options *options);

/* ---- between the files of this room ---------------------------------------------------------------------- */

/* configuration.c: what is in force, see there */
/* Makes configuration and pools, in the end of what was in force last. An exit status, after saying what is wrong. */
int configuration_start(struct app *app);
/* What is in force is good: the next broker may fall back on it. */
void configuration_hand_on(struct app *app);
/* For the status that clients ask for. */
void configuration_show(struct app *app);
/* Does what is in the file fit this machine? Mistakes in it are for the next program to find: it may know other keys.
 * 0, or a status. */
int configuration_check(void *app, struct problem *problem);
/* What is wrong with the file, in `sentence`: its first mistake, or that the next program finds some. */
#define CONFIGURATION_SENTENCE_MAX 160
const char *configuration_mistake(struct app *app, char sentence[CONFIGURATION_SENTENCE_MAX]);
/* Reads the file again. With mistakes in it nothing changes. */
void configuration_reload(void *app, struct reload_result *result);

/* inherited.c: what outlives a broker */
/* Takes what the keeper holds. 0 or a negative errno. */
int inherited_receive(struct app *app);
/* Without a keeper: leaves everything for the next one, and becomes it where no service manager would start one.
 * Returns only if that is not to be: the exit status. */
int inherited_leave(struct app *app);

/* loop.c: sources and signals */
int loop_init(struct app *app);
int loop_watch_broker(struct app *app);
/* Serves until something breaks the loop; app->error says whether it was an error. */
void loop_run(struct app *app);
/* It ends with this error. */
void app_fail(struct app *app, int error);
/* It ends in order. */
void app_stop(struct app *app);
/* Reads what the keeper says. 0 or a negative errno. */
int loop_ask_keeper(struct app *app);
struct timeval loop_timeval(uint64_t ms);
void loop_arm_idle(struct app *app);
/* As the configuration says. */
void loop_set_spin(struct app *app);

/* client.c */
extern const struct net_handler client_net_handler;
extern const struct rpc_transport client_rpc_transport;
void client_host_init(struct app *app);

/* settings.c: what the parts are given, from the configuration and this machine */
uint64_t settings_raise_nofile(void);
void settings_accounts(const struct app *app, struct account_limits *ret);
void settings_net(const struct app *app, struct net_limits *ret);
/* Buffers have descriptors below this number. */
unsigned settings_buffer_fds(const struct app *app);
/* *ret_pools is to be freed by the caller; `ret` borrows it. 0 or -ENOMEM. */
int settings_pools(const struct config *config, struct pools_config *ret, struct pool_config **ret_pools);
void settings_arena(const struct app *app, uint64_t *base, uint64_t *size);
unsigned settings_threads(const struct config *config);
unsigned settings_commit_threads(const struct config *config);
/* The default configuration: a path to be freed if such a file is there, else NULL. */
char *settings_config_path(const struct app_options *options, bool private);

/* place.c: where to listen */
/* The path of the default socket, to be freed; NULL, after saying why, if there is none. */
char *place_socket(const struct app_options *options);
bool place_is_private(const struct app_options *options, const char *path);
/* Where a listening socket listens: a path to be freed, or NULL if it has none. */
char *place_of(int listener);
/* What the service manager passed: what it had in its store, and, if that is wanted, a listening socket of its own.
 * With everything that was left in its fd stash. An exit status. */
int place_activated(struct store *store, bool want_socket, bool *ret_activated);
/* --autostart, first of all: what a starter leaves to its children by mistake must not stay with a process that
 * outlives it. */
void place_shed_inheritance(void);
/* --autostart, when another process starts a broker at `path`: an exit status, when that one serves or does not. */
int place_wait_for_winner(const char *path);
/* --autostart: forks. True in the process that is to serve, with *ret_ready to be told; else *ret_status is the exit
 * status of this process. */
bool place_daemonise(struct socket_path *lock, int *ret_ready, int *ret_status);
/* Leaves the starter's terminal; what is said from now on goes to the journal. */
void place_leave_terminal(void);
bool place_has_no_terminal(void);
void place_send_ready(int ready);
