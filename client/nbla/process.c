/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See process.h. dlclose() and exit() both run destructors; only exit() runs handlers of atexit() before them.
 */
#include "nbla/process.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "nbla/lease.h"
#include "nbla/spare.h"

static bool exiting;
static pid_t id;

static void note_id(void)
{
    id = getpid();
}

__attribute__((__constructor__)) static void process_loaded(void)
{
    note_id();
    (void)pthread_atfork(NULL, NULL, note_id);
}

pid_t process_id(void)
{
    return id;
}

static void note_exit(void)
{
    exiting = true;
}

static void do_register(void)
{
    exiting = atexit(note_exit) != 0;
    (void)pthread_atfork(spare_fork_prepare, spare_fork_parent, spare_fork_child);
}

void process_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, do_register);
}

__attribute__((__destructor__)) static void process_unloaded(void)
{
    if (exiting)
        return;
    (void)spare_release_all();
    lease_release_all();
}
