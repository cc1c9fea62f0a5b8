/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker's host for tests: real memory, real workers, a loop of poll(), and clients that are this process or
 * its children. Every step that may wait has an end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "account/account.h"
#include "base/list.h"
#include "broker/broker.h"
#include "broker/operations.h"
#include "mem/pool.h"
#include "work/work.h"

#define HOST_WATCHED_MAX 1100
#define HOST_POOL_BYTES  (UINT64_C(64) << 20)
#define HOST_LARGE_BYTES (UINT64_C(512) << 20)

struct host_event {
    struct broker_event event;
    void *connection;
    char pool[64];
    char name[300];
};

/* the broker under test and what it told its host */
struct host {
    struct broker *broker;
    struct topology *topology;
    struct pools *pools;
    struct work *work;
    struct account_limits limits;
    struct broker_options options;
    uint64_t grace_ms;
    const char *groups_root;    /* NULL: control groups are not looked at */
    uint32_t nodes;             /* simulated ones; 0 = as the machine is */
    bool no_commit;             /* what operations do is left without a commit */
    uint64_t arena_base;        /* 0 = the usual one */
    struct keeper_link *keeper; /* what the next start is given */
    struct inherited_fd *inherited;
    size_t n_inherited;
    uint64_t pool_bytes;        /* of each node */
    bool pages_by_size;         /* of whoever does not name any; else base pages */
    struct pool_capacity stock; /* of each pool; none by itself */
    uint8_t secret[16];         /* of the latest session */
    bool due_set;
    uint64_t due; /* of broker_tick */
    struct {
        uint64_t session;
        int pidfd;
    } watched[HOST_WATCHED_MAX];
    unsigned n_watched;
    struct list turns; /* struct user_task, waiting */
    struct host_event events[64];
    unsigned n_events;
    void *disconnected[64];
    unsigned n_disconnected;
};

extern struct host host;
extern bool host_no_pidfds;

/* cmocka's set-up and tear-down; a broker with `HOST_POOL_BYTES` a node and no other limits */
int host_setup(void **state);
int host_setup_nodes(void **state); /* with three simulated nodes */
int host_setup_stock(void **state); /* a quarter of it may be in stock */
int host_setup_large(void **state); /* with HOST_LARGE_BYTES */
int host_teardown(void **state);
void host_no_limits(struct account_limits *limits);
void host_start(void);
/* A host without a broker, to be started; and what broker_new() says is in host_status. */
void host_reset(uint32_t nodes);
void host_try_start(void);
void host_stop(void);

/* Ends all that this broker has, and frees it: teardown.c. */
void host_take_apart(struct broker *broker);
/* That a session of host.broker is charged to. */
struct account *host_account(uint64_t session);

/* For `sys`: the kernel does not say who has a file open, as of hugetlbfs from Linux 7.0 on. */
int host_no_lease(int fd, int type);

/* Whatever waits for a turn of its user has one. */
void host_take_turns(void);
/* One turn of the loop, waiting at most so long for something to do. */
void host_turn(int timeout_ms);
/* Turns until the expression is true; false when it never is. */
#define HOST_UNTIL(expression)                                            \
    __extension__({                                                       \
        int64_t host_end_ = wait_now_ms() + PATIENCE_MS;                  \
        bool host_true_;                                                  \
        while (!(host_true_ = (expression)) && wait_now_ms() < host_end_) \
            host_turn(5);                                                 \
        host_true_;                                                       \
    })
/* Turns until nothing is left to do. */
void host_settle(void);

/* An operation as a test calls it: begins it and waits for its end. */
struct call {
    struct op op;
    bool ended;
    int status;
};
void call_init(struct call *call, uint64_t session);
/* What the operation returned -> its status. */
int call_finish(struct call *call, int r);
#define CALL(session, operation, ...)                                           \
    __extension__({                                                             \
        static struct call call_;                                               \
        call_init(&call_, (session));                                           \
        int call_r_ = call_finish(&call_, operation(&call_.op, ##__VA_ARGS__)); \
        host_sentence = call_.op.problem.sentence;                              \
        call_r_;                                                                \
    })
extern const char *host_sentence; /* of the last CALL */

/* A session of this process, or of `pid` with this uid. The connection is the number given. */
uint64_t host_session(uintptr_t connection);
uint64_t host_session_of(uintptr_t connection, pid_t pid, uid_t uid);

int host_alloc(uint64_t session, uint64_t size, uint32_t flags, uint64_t *ret);
/* -1 if refused: host_status says why */
int host_export(uint64_t session, uint64_t buffer, uint32_t rights);
extern int host_status;
int host_release(uint64_t session, uint64_t buffer);
/* Opens what goes with the reply to an operation, as when it is sent. */
void host_open_fds(uint64_t session, struct opened *opened, struct fdset *ret);
/* The session's release log, likewise. */
int host_open_release_log(uint64_t session);
/* these four fill host_opened */
int host_adopt(uint64_t session, int fd, uint64_t *ret);
int host_import(uint64_t session, int fd, uint64_t *ret);
int host_open(uint64_t session, const uint8_t token[32], uint32_t rights, int *ret_fd);
int host_lookup(uint64_t session, const char *name, uint64_t id, uint32_t rights, int *ret_fd);
extern struct opened_item host_opened;
extern bool host_accepts_foreign; /* when something is opened or looked up */
int host_share(uint64_t session, uint64_t buffer, const struct share_args *terms, uint8_t token[32]);
int host_bind(uint64_t session, uint64_t buffer, const char *name, uint32_t policy, uint64_t keep_ms);
int host_info(uint64_t session, uint64_t buffer, struct buffer_info *info);
/* Faults that the broker's check finds; prints them. */
uint32_t host_check(uint64_t admin);
uint64_t host_used(void);  /* of all pools */
uint64_t host_stock(void); /* likewise */
