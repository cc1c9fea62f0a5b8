/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two processes. app_keep() finds or makes the listening socket and becomes the keeper, which starts this program
 * again as the broker; that is app_serve(): parts, loop, readiness.
 *
 * Everything is built before the first client is accepted, in the order in which the parts need each other. The loop
 * has nothing slow in it: each source does a bounded piece of work per turn. A broker that serves is never taken
 * apart, it just exits: what its clients have is in the ledger and with the keeper, and the next broker goes on with
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "account/account.h"
#include "base/spin.h"
#include "broker/broker.h"
#include "config/config.h"
#include "door/doors.h"
#include "door/spawner.h"
#include "keeper/link.h"
#include "keeper/store.h"
#include "mem/pool.h"
#include "net/listener.h"
#include "net/net.h"
#include "net/socket_path.h"
#include "observe/observe.h"
#include "rpc/rpc.h"
#include "sys/numa.h"
#include "work/work.h"

/* What the process ends with; documented in memoryd.8. */
enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* something that it needs is not available, or it broke */
    EXIT_USAGE = 2,
    EXIT_CONFIG = 3,                  /* mistakes in the configuration */
    EXIT_RUNNING = 4,                 /* a broker is already running there */
    EXIT_LEDGER = KEEPER_EXIT_LEDGER, /* the ledger is in a form that this program does not know */
};

struct app_options {
    const char *socket;     /* NULL = the default */
    const char *config;     /* NULL = the default, if that exists */
    const char *sysconfdir; /* the folder of the default */
    bool autostart;
    char *const *argv;
    int broker;      /* the socket to the keeper; -1: this process is to be the keeper */
    int fd_stash[2]; /* what this process left when it was the keeper before, or its broker; else -1 */
};

/* What the keeper handed over. Owned. */
struct inherited {
    int listener;
    int lock;                 /* or -1 */
    int program;              /* or -1 */
    int config;               /* the last good configuration, or -1 */
    int metrics[2];           /* where they are served: KEEPER_METRICS; or -1 */
    int fd_stash[2];          /* the service manager's, or -1 */
    struct inherited_fd *fds; /* the rest: what the broker before this one held; see broker_new() */
    size_t n_fds;
    struct survey *survey; /* of `fds`, under way; or NULL */
};

struct process_watch;

struct app {
    const struct app_options *options;
    bool private; /* for one user */
    bool stopping;
    bool for_good; /* no next broker is to go on */
    bool orphaned; /* the keeper is gone */
    int error;     /* negative: why the loop ended */

    struct keeper_link *keeper;
    pid_t cleaner; /* keeper/cleaner.h; < 0: there is none */
    struct inherited inherited;

    struct config *config;
    bool config_stale; /* the file had mistakes when it was last read: what it said before stays in force */
    uint64_t nofile;
    struct account_limits limits; /* in force; it has its policies */

    struct event_base *base;
    bool busy;        /* users have more to do */
    struct spin spin; /* before the loop sleeps */
    struct topology topology;
    struct pools *pools;
    struct work *work;
    struct broker *broker;
    struct rpc rpc;
    bool rpc_ready;
    struct net *net;
    struct spawner spawner;
    struct doors *doors;
    struct listener *listener;
    struct process_watch *processes; /* hash by session */
    unsigned n_exits;                /* of these, those that have exited, and whose end waits for its turn */

    struct broker_host host;
    struct observe_host observe_host;
    struct event tick_event;
    struct event watch_event;
    struct event deaths_event;
    struct user_task tick_task; /* what these are for */
    struct user_task watch_task;
    struct event work_event;
    struct event idle_event;
    struct event stop_event;
    struct event keeper_event;
    struct event heartbeat_event;
    struct event doors_event;
};

/* The keeper, and the broker that it starts. They return the exit status. */
int app_keep(const struct app_options *options);
int app_serve(const struct app_options *options);
/* Only reads the configuration and reports mistakes. */
int app_check_config(const struct app_options *options);

/* ---- between the files of this module ---------------------------------------------------------------------------- */

/* configuration.c: what is in force, see there */
/* Makes configuration and pools, if need be of what was last in force. An exit status, after mistakes were logged. */
int configuration_start(struct app *app);
/* What is in force is good: the next broker may fall back on it. */
void configuration_hand_on(struct app *app);
/* Shows it in the status that clients ask for. */
void configuration_show(struct app *app);
/* Does the file fit this machine? Mistakes are left for the installed program to find, which may know other keys. 0 or
 * a status. */
int configuration_check(void *app, struct problem *problem);
/* The first mistake in the file, in `sentence`, or that the installed program finds some. */
#define CONFIGURATION_SENTENCE_MAX 160
const char *configuration_mistake(struct app *app, char sentence[CONFIGURATION_SENTENCE_MAX]);
/* Where the file has metrics served, as config_address() takes it, or ""; NULL: it has mistakes. To be freed. */
char *configuration_metrics(const struct app *app);
/* Reads the file again. With mistakes in it nothing changes. */
void configuration_reload(void *app, struct reload_result *result);

/* inherited.c: what outlives a broker */
/* Takes what the keeper holds. 0 or a negative errno. */
int inherited_receive(struct app *app);
/* Without a keeper: leaves everything for the next one, or becomes it where no service manager would start one. Returns
 * the exit status, unless this process has become the keeper. */
int inherited_leave(struct app *app);

/* metrics.c */
/* Listens where the configuration says. Before the sandbox, which has no network. */
void metrics_listen(struct app *app);
/* Serves on the sockets that there are. */
void metrics_serve(struct app *app);
/* The socket of a path of ours goes with the last keeper. */
void metrics_unlink(int listener);

/* loop.c: sources and signals */
int loop_init(struct app *app);
int loop_watch_broker(struct app *app);
/* Serves until something breaks the loop; app->error tells whether that was an error. */
void loop_run(struct app *app);
/* There is a door now, to be looked after. */
void loop_arm_doors(struct app *app);
/* Breaks the loop, with this error. */
void app_fail(struct app *app, int error);
/* Shuts down. */
void app_stop(struct app *app);
/* Handles what the keeper sent. 0 or a negative errno. */
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
/* Replaces app->limits; *ret_before is what accounts borrow until they get the new ones. */
void settings_accounts(struct app *app, struct account_limits *ret_before);
void settings_net(const struct app *app, struct net_limits *ret);
/* A private broker serves its own user, even if that has the overflow uid. */
bool settings_refuse_overflow_uid(const struct app *app);
/* The connections of a user who may have so many sessions. */
unsigned settings_connections(const struct app *app, uint64_t sessions);
/* The descriptors of buffers are below this number. */
unsigned settings_buffer_fds(const struct app *app);
/* *ret_pools is to be freed by the caller; `ret` borrows it. 0 or -ENOMEM. */
int settings_pools(const struct config *config, struct pools_config *ret, struct pool_config **ret_pools);
/* allow.c: who may allocate from a pool, and from all of them, as the configuration has it now */
void settings_pool_allow(const struct config_pool *pool, struct allow *ret);
void settings_allow(const struct config *config, struct pools *pools);
void settings_arena(const struct app *app, uint64_t *base, uint64_t *size);
unsigned settings_threads(const struct config *config);
unsigned settings_commit_threads(const struct config *config);
/* The path of the default configuration, to be freed; NULL if there is no such file. */
char *settings_config_path(const struct app_options *options, bool private);

/* users.c: the number of a user or group by its name. 0, ENOENT, or why it is not known */
int users_look_up(const char *name, bool is_group, uint32_t *ret);
/* users.c: shares, totals, and what is configured for single users and groups; `buffers` are all that there can be */
void users_set_limits(struct app *app, uint64_t buffers, struct account_limits *ret);

/* place.c: where to listen */
/* The path of the socket, to be freed; NULL if there is none, after the reason was logged. */
char *place_socket(const struct app_options *options);
bool place_is_private(const struct app_options *options, const char *path);
/* Where a listening socket listens: a path to be freed, or NULL if it has none. */
char *place_of(int listener);
/* Takes what the service manager passed: what was in its store and in the fd stash there, and, if `want_socket`, a
 * listening socket of its own. An exit status. */
int place_activated(struct store *store, bool want_socket, bool *ret_activated);
/* --autostart, first of all: what the starter passes on to its children by mistake must not stay with a process that
 * outlives it. */
void place_shed_inheritance(void);
/* --autostart, while another process starts a broker at `path`: waits until that serves. An exit status. */
int place_wait_for_winner(const char *path);
/* --autostart: forks. True in the process that is to serve, which owes *ret_ready a place_send_ready(); else
 * *ret_status is the exit status of this process. */
bool place_daemonise(struct socket_path *lock, int *ret_ready, int *ret_status);
/* Leaves the starter's terminal; the log goes to the journal from now on. */
void place_leave_terminal(void);
bool place_has_no_terminal(void);
void place_send_ready(int ready);
