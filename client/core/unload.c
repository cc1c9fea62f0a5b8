/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlclose() and exit() both call destructors; what tells them apart is the order. exit() begins with what atexit() was
 * given, and runs destructors last; dlclose() runs ours first, before the one of the compiler's that runs what
 * atexit() was given by this library.
 */
#include "core/unload.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/context.h"

static bool exiting;

static void note_exit(void)
{
    exiting = true;
}

static void do_register(void)
{
    exiting = atexit(note_exit) != 0;
}

void unload_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, do_register);
}

/* Nobody else is inside: their code is about to go as well. So no lock is held, and closing takes those it wants. */
__attribute__((__destructor__)) static void unloaded(void)
{
    if (exiting)
        return;
    list_for_each_entry_safe(ctx, &contexts, struct memclient, in_contexts)
    {
        if (context_is_empty(ctx))
            context_close(ctx);
        else
            context_abandon(ctx);
    }
}
