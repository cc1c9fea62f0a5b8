/* SPDX-License-Identifier: Apache-2.0 */
/* What was freed and is not to be used again yet: first in, first out, with an upper bound of bytes. */
#pragma once

#include <stdint.h>

#include "base/list.h"

struct entry;

struct quarantine {
    struct list entries;
    uint64_t bytes;
    uint64_t most;
};

void quarantine_init(struct quarantine *quarantine, uint64_t most);
void quarantine_put(struct quarantine *quarantine, struct entry *entry);
/* The oldest one, if there are more than `most` bytes; NULL if not. */
struct entry *quarantine_take(struct quarantine *quarantine, uint64_t most);

void quarantine_before_fork(void);
void quarantine_in_parent(void);
void quarantine_in_child(void);
