/* SPDX-License-Identifier: Apache-2.0 */
/* See pulse.h. */

#include "keeper/pulse.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/steal.h"

#if HAVE_CLOSE_RANGE

struct pulse {
    int fd;
    int error;
    sem_t begun;
};

/* Only what is up to its own is copied into the table that it gets. */
static int keep_only(int fd)
{
    if (close_range((unsigned)fd + 1, UINT32_MAX, CLOSE_RANGE_UNSHARE) < 0 ||
        (fd > 0 && close_range(0, (unsigned)fd - 1, 0) < 0))
        return errno;
    return 0;
}

static void *beat(void *userdata)
{
    struct pulse *pulse = userdata;
    int error = keep_only(pulse->fd);

    pulse->error = error;
    sem_post(&pulse->begun); /* from here on it is not there any more */
    while (!error)
        (void)pause();
    return NULL;
}

/* Signals are not for it. A positive errno. */
static int start_thread(struct pulse *pulse)
{
    sigset_t all, before;
    pthread_t thread;
    int r;

    (void)sigfillset(&all);
    r = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (r)
        return r;
    r = pthread_create(&thread, NULL, beat, pulse);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!r)
        (void)pthread_detach(thread);
    return r;
}

int pulse_start(void)
{
    _cleanup_close_ int ours = -1;
    _cleanup_close_ int threads = -1;
    struct pulse pulse = {.error = 0};
    int ends[2], r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    ours = ends[0];
    threads = ends[1];
    pulse.fd = threads;
    sem_init(&pulse.begun, 0, 0);
    r = start_thread(&pulse);
    if (!r) {
        while (sem_wait(&pulse.begun) < 0)
            ;
        r = pulse.error;
    }
    sem_destroy(&pulse.begun);
    return r ? -r : steal_fd(&ours);
}

#else

int pulse_start(void)
{
    return -ENOSYS;
}

#endif
