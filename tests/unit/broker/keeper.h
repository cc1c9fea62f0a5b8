/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokers that die, and a keeper between them: the test itself.
 *
 * A broker runs in a child, which is killed where its body ends; so nothing of it remains but what the ledger has and
 * the keeper holds. The next one is another child's, or the test's own, without a keeper, so that host_stop() can take
 * it apart and see that nothing is left.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/key.h"
#include "ledger/records.h"

#define KEPT_MAX 512

struct kept_things {
    struct inherited_fd fds[KEPT_MAX];
    size_t n;
};

extern struct kept_things kept_things;

/* A broker of what is kept runs `body`, as cmocka's tests do, and dies by SIGKILL. */
void generation_run(void (*body)(void));
/* The process that plays the keeper, which lives through all of it. */
extern pid_t keeper_test;

/* The next broker, here, is given what is kept. host_status is what it said. */
void generation_adopt(void);
/* It is taken apart, and nothing is kept any more. */
void generation_finish(void);
/* Nothing is kept. */
void generation_forget(void);

struct inherited_fd *kept_find(enum keeper_kind kind, uint64_t id);
void kept_hold(enum keeper_kind kind, uint64_t id, int fd);
void kept_drop(enum keeper_kind kind, uint64_t id);

/* The ledger's header, and the nth LIVE record of a kind; mapped until kept_unmap(). NULL if there are fewer. */
struct ledger_header *kept_header(void);
void *kept_record(enum record_kind kind, unsigned n);
/* What the test has changed in the header was written by that broker: the checksum says so. */
void kept_header_written(void);
void kept_unmap(void);
