/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter's lock, which is given up around every call of the library that may wait. The call's failure is kept
 * by the library for this thread, so it can still be asked for after the lock was taken again.
 *
 *     struct gil gil;
 *
 *     gil_release(&gil);
 *     r = memclient_alloc(...);
 *     gil_take(&gil, r);
 *
 * Signals. While such a call waits, the handlers of signals run, which may raise: KeyboardInterrupt ends the wait. If
 * the call has a result nevertheless, or has no failure to tell, the exception is raised a little later.
 */
#pragma once

#include "module.h"

struct gil {
    PyThreadState *thread;
    struct gil *outer; /* a call during which a handler of a signal makes this one */
    bool raised;       /* a handler has */
};

void gil_release(struct gil *gil);
/* The same for what a destructor does, where no handler runs. */
void gil_release_quietly(struct gil *gil);
/* What the call has returned: an exception of a handler stays only if that is a failure. */
void gil_take(struct gil *gil, int r);
