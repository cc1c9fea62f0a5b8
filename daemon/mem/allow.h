/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may allocate from a pool: some users, groups, control groups and units, or everybody.
 *
 * User and groups are those that the kernel reported at connect() (I3). A process may be moved to another control group
 * while it lives, so the kernel is asked where it is at each allocation from such a pool, and at no other.
 *
 * A unit is one of the system's manager: the first part of the control group's path that is no slice. What is below it
 * was made by whom the unit was delegated to. So no user can make himself a unit of a name that a pool is for: those of
 * his own manager are all below user@UID.service.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/problem.h"
#include "proto/limits.h"
#include "sys/peer.h"

enum allow_kind {
    ALLOW_NONE, /* a user or group that this machine does not have */
    ALLOW_USER,
    ALLOW_GROUP,
    ALLOW_CGROUP, /* this one, and all below it */
    ALLOW_UNIT,
};

/* An entry has four characters at least. */
#define ALLOW_ENTRIES_MAX (MEMORYD_POOL_ALLOW_MAX / 4)

struct allow {
    char text[MEMORYD_POOL_ALLOW_MAX + 1]; /* as configured; "" = everybody */
    uint32_t n;
    struct {
        enum allow_kind kind;
        uint32_t id;        /* of a user or group */
        uint8_t at, length; /* of a path or name, in the text */
    } entries[ALLOW_ENTRIES_MAX];
};

/* Begins with the text, of which entries are parts. */
void allow_init(struct allow *allow, const char *text);
/* `id` is of a user or group; otherwise the name is these bytes of the text. */
void allow_add(struct allow *allow, enum allow_kind kind, uint32_t id, const char *name, size_t length);

/* `path` = of its control group, "" = unknown. */
bool allow_has(const struct allow *allow, const struct peer *peer, const char *path);

/* May this process allocate from the pool of this name? 0 or NO_RIGHT. */
int allow_check(const struct allow *allow, const char *pool, const struct peer *peer, struct problem *problem);
