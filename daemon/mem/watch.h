/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One inotify instance reports when somebody lets go of a buffer.
 *
 * WATCH_CLOSED means that the last descriptor and mapping of some description of the file are gone, whoever had them
 * and however they ended; the broker then asks handle_sole() again. WATCH_GONE means that the inode is gone, and with
 * it the last page.
 */
#pragma once

#include <stdbool.h>

#include "base/problem.h"

enum watch_event {
    WATCH_CLOSED,
    WATCH_GONE,     /* also after watch_remove() */
    WATCH_OVERFLOW, /* wd is -1; events were lost: ask about every buffer that matters */
};

struct watch {
    int fd; /* to be polled for reading */
};

#define WATCH_NULL ((struct watch){.fd = -1})

typedef void watch_fn(void *userdata, int wd, enum watch_event event);

/* 0 or a negative errno. */
int watch_init(struct watch *watch);
/* Takes over the inotify instance of another broker, with all its watches. False: the descriptor is of something else,
 * and stays the caller's. */
bool watch_adopt(struct watch *watch, int fd);
void watch_deinit(struct watch *watch);

/* Watch numbers are not used again soon. The same file gives the same number. 0, LIMIT,
 * NO_MEMORY. */
int watch_add(struct watch *watch, int fd, int *ret_wd, struct problem *problem);
/* The watch may have ended by itself. */
void watch_remove(struct watch *watch, int wd);

/* Calls fn for a bounded number of events, those of unknown or former watches included. The descriptor stays readable
 * if there are more. 0 or a negative errno. */
int watch_read(struct watch *watch, watch_fn *fn, void *userdata);
