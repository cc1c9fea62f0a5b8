/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker without anything behind it: every operation of broker/operations.h notes its arguments and returns what it
 * was told to return, so that tests see what reaches the broker and what becomes of each outcome.
 */
#pragma once

#include "broker/broker.h"
#include "broker/operations.h"

/* the reply to a recorded request */
struct fake_kept {
    uint64_t sequence; /* 0 = free */
    bool done;
    struct op *running;
    struct op_reply reply;
    uint8_t message[MEMORYD_PAYLOAD_MAX];
};

struct fake {
    int status;           /* what operations return */
    int begin;            /* what op_begin() returns for what is new */
    bool pend;            /* they return OP_PENDING instead */
    bool settle;          /* they return OP_SETTLING instead */
    const char *sentence; /* of a refusal, if not NULL */
    bool with_fds;        /* descriptors go with the reply */
    unsigned n_opened;    /* of them, so many are open beforehand */
    int open_status;      /* what becomes of the item that is `open_fails_at`; NO_DESCRIPTORS: of all of them */
    unsigned open_fails_at;
    uint64_t n_records; /* of each kind, for listings */
    uint64_t ended;     /* the one of these that is gone when a selection is answered */

    const char *operation; /* the last one */
    unsigned calls;
    unsigned cancelled;
    unsigned refused; /* op_refused() */
    unsigned counted; /* op_refusal_counted() */
    unsigned replied; /* op_replied() */
    uint16_t noted;   /* op_noted(), the last one */
    uint64_t noted_buffer;
    char noted_name[64];
    unsigned lost;            /* broker_connection_lost() */
    uint64_t executing;       /* sequence of the request that the loop is at */
    uint64_t was_executing;   /* when the last operation was called */
    bool replay;              /* the last operation was told so */
    struct fake_kept kept[4]; /* of any session */
    struct op *pending;
    void *connection; /* of the last hello */
    const struct broker_host *host;

    struct alloc_spec alloc;
    struct export_args export;
    struct open_args open;
    struct lookup_args lookup;
    struct select_args select;
    struct share_args share;
    struct revoke_args revoke;
    struct name_args name;
    char unbound[MEMORYD_NAME_MAX + 16];
    uint32_t mask;
    unsigned imported;
    struct ids released; /* by the last RELEASE */
    struct fd_list list; /* the last one that was opened */
    unsigned openings;

    struct broker_release_log releases[2]; /* of sessions that another broker left */
    unsigned n_releases;
    struct reload_result reload; /* what a reload comes to */
};

extern struct fake fake;

void fake_reset(void);
/* The pending operation ends. */
void fake_end(int status);
