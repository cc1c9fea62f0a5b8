/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: what keeps a buffer when nobody holds it, and lets others find it.
 *
 * Each user has a namespace: "a/b" is in the speaker's own, "uid:1000/a/b" in another's. A name looks like a path,
 * which people can read, but its parts are no directories. Names are in a tree, since clients choose them and could
 * make a hash table degenerate.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "account/account.h"
#include "base/list.h"
#include "base/problem.h"
#include "base/tree.h"
#include "ledger/table.h"
#include "mem/buffer.h"
#include "mem/rights.h"
#include "proto/limits.h"
#include "sys/peer.h"

/* NamePolicy on the wire. */
enum name_policy {
    NAME_KEEP = 0,
    NAME_FREE = 1,
    NAME_KEEP_FOR = 2,
};

struct name;
RB_HEAD(name_tree, name);

struct names {
    struct table table;
    struct name_tree tree; /* by user and path */
};

struct name {
    OBJECT(struct name_record);
    struct names *names;
    RB_ENTRY(name) by_path;
    struct buffer *buffer;
    struct list in_buffer;
    struct list in_session; /* of the binder, until it ends */
    struct charge charge;
    void *userdata; /* the broker's own */
};

/* A name as somebody said it: whose it is, and the path within `text`. */
struct name_key {
    uid_t uid;
    const char *path;
    size_t length;
};

/* 1-255 bytes of UTF-8 without control characters (after "uid:N/"), no empty part, none that is "." or "..", no
 * slash at either end. `uid` is the speaker's. 0 or BAD_NAME, saying what is wrong. */
int name_parse(const char *text, uid_t uid, struct name_key *ret, struct problem *problem);

/* Any name with "uid:N/" before it, and a NUL. */
#define NAME_TEXT_SIZE (MEMORYD_NAME_MAX + 16)
/* Writes it as `uid` must say it: with "uid:N/" before it if it is another's. */
void name_text(const struct name *name, uid_t uid, char text[static NAME_TEXT_SIZE]);

struct name_new_args {
    struct name_key key;
    struct buffer *buffer;
    struct account *account; /* who pays */
    uint64_t session;        /* of the binder */
    struct list *in_session; /* its list */
    enum name_policy policy;
    uint64_t keep_ms;
    uint32_t group_rights;
    gid_t gid;
    uint32_t other_rights;
};

void names_init(struct names *names, struct ledger *ledger);
void names_deinit(struct names *names);

/* INTENT; commit its record when the rest is done. NAME_EXISTS, LIMIT, NO_MEMORY. */
int name_new(struct names *names, const struct name_new_args *args, struct name **ret, struct problem *problem);
/* Makes a name of its record again (table.h). `buffer` is NULL if it is gone, `in_session` if its binder's session
 * is. */
enum table_verdict name_recover(struct names *names, struct name *name, struct buffer *buffer, struct account *account,
                                struct list *in_session, const char **why);
struct name *name_free(struct name *name);
DEFINE_CLEANUP(struct name *, name_free);
/* Its binder's session has ended. */
void name_leave_session(struct name *name);

/* LIVE; NULL if there is none. */
struct name *names_find(const struct names *names, const struct name_key *key);
struct name *names_find_id(const struct names *names, uint64_t id);

/* The rights that this process may have by the name: all for the owner's user and administrators, else those granted to
 * its group and to everybody. 0 = it may not even know of it. */
uint32_t name_rights(const struct name *name, const struct peer *peer, bool administrator);
