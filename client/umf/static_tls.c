/* SPDX-License-Identifier: Apache-2.0 */
/* Whether threads have their variables at one place is found out by looking from two threads. */
#include "umf/static_tls.h"

#include <pthread.h>

static __thread char here;
static bool is_static;

static intptr_t offset_of(const void *variable)
{
    return (intptr_t)variable - (intptr_t)__builtin_thread_pointer();
}

static void *offset_in_thread(void *ret)
{
    *(intptr_t *)ret = offset_of(&here);
    return NULL;
}

/* If it is not so, one thread's place is another's by chance at most. */
static void find_out(void)
{
    intptr_t there;
    pthread_t thread;

    if (pthread_create(&thread, NULL, offset_in_thread, &there))
        return;
    (void)pthread_join(thread, NULL);
    is_static = there == offset_of(&here);
}

bool static_tls(const void *variable, intptr_t *offset)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, find_out);
    if (is_static)
        *offset = offset_of(variable);
    return is_static;
}
