/* SPDX-License-Identifier: Apache-2.0 */
/* See spawner.h. */
#include "door/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "proto/fdset.h"
#include "proto/sockio.h"
#include "sys/sys.h"

struct spawner_answer {
    uint32_t slot;
    int32_t pid; /* or a negative errno */
};

static size_t spawner_offset(unsigned slot)
{
    return slot * (size_t)page_size();
}

struct door_state *spawner_state(const struct spawner *spawner, unsigned slot)
{
    return (struct door_state *)(void *)(spawner->states + spawner_offset(slot));
}

/* ---- its process ------------------------------------------------------------------------------------------------- */

/* The others' states are none of its business. */
static _Noreturn void spawner_become_door(const struct spawner *spawner, unsigned slot, int socket, pid_t broker)
{
    size_t begin = spawner_offset(slot), end = spawner_offset(slot + 1), all = spawner_offset(SPAWNER_SLOTS);

    fd_close(spawner->link);
    if (begin)
        (void)sys->munmap(spawner->states, begin);
    if (end < all)
        (void)sys->munmap(spawner->states + end, all - end);
    _exit(door_run(socket, broker, spawner_state(spawner, slot)));
}

/* False: the broker has gone. */
static bool spawner_serve(const struct spawner *spawner, pid_t broker)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    struct spawner_answer answer;
    const struct iovec iov = {.iov_base = &answer, .iov_len = sizeof(answer)};
    uint32_t slot;
    size_t size;
    pid_t pid;
    int r = sockio_recv_wait(spawner->link, &slot, sizeof(slot), &size, &fds);

    if (r || size != sizeof(slot) || slot >= SPAWNER_SLOTS || fdset_count(&fds) != 1)
        return false;
    pid = sys_fork_sibling();
    if (!pid)
        spawner_become_door(spawner, slot, fdset_steal(&fds, 0), broker);
    answer = (struct spawner_answer){.slot = slot, .pid = pid < 0 ? -errno : pid};
    /* what is sent to the door from now on must end with it */
    fdset_deinit(&fds);
    return !sockio_send(spawner->link, &iov, 1, NULL, 0);
}

/* Neither it nor a door has anything to say, and who started the broker may wait for the end of its output. */
static void spawner_leave_output(void)
{
    _cleanup_close_ int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (nothing < 0 || dup2(nothing, fd) < 0)
            (void)close(fd);
}

static _Noreturn void spawner_main(const struct spawner *spawner, pid_t broker)
{
    spawner_leave_output();
    (void)prctl(PR_SET_NAME, "memoryd-spawner");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == broker)
        while (spawner_serve(spawner, broker))
            ;
    _exit(EXIT_SUCCESS);
}

/* ---- the broker's side ------------------------------------------------------------------------------------------- */

int spawner_start(struct spawner *spawner, int keeper)
{
    _cleanup_close_ int ours = -1, theirs = -1;
    pid_t broker = getpid();
    void *states;
    int pair[2];

    *spawner = SPAWNER_NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    ours = pair[0];
    theirs = pair[1];
    states = sys->mmap(NULL, spawner_offset(SPAWNER_SLOTS), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (states == MAP_FAILED)
        return -errno;
    spawner->states = states;
    spawner->pid = fork();
    if (!spawner->pid) {
        fd_close(keeper);
        fd_close(ours);
        spawner->link = theirs;
        spawner_main(spawner, broker);
    }
    if (spawner->pid < 0) {
        int r = -errno;

        (void)sys->munmap(states, spawner_offset(SPAWNER_SLOTS));
        *spawner = SPAWNER_NULL;
        return r;
    }
    spawner->link = steal_fd(&ours);
    return 0;
}

int spawner_ask(struct spawner *spawner, unsigned slot, int socket)
{
    const uint32_t wanted = slot;
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)&wanted, .iov_len = sizeof(wanted)};
    int r = spawner->link < 0 ? SOCKIO_E_GONE : sockio_send(spawner->link, &iov, 1, &socket, 1);

    if (!r)
        return 0;
    return r == SOCKIO_E_AGAIN || r == SOCKIO_E_TOO_MANY_IN_FLIGHT ? -EAGAIN : -ESRCH;
}

bool spawner_hear(struct spawner *spawner, unsigned *slot, pid_t *pid)
{
    _cleanup_fdset_ struct fdset fds = FDSET_NULL;
    struct spawner_answer answer;
    size_t size;
    int r = spawner->link < 0 ? SOCKIO_E_AGAIN : sockio_recv(spawner->link, &answer, sizeof(answer), &size, &fds);

    if (r == SOCKIO_E_AGAIN)
        return false;
    if (r || size != sizeof(answer) || answer.slot >= SPAWNER_SLOTS) {
        spawner_stop(spawner);
        return false;
    }
    *slot = answer.slot;
    *pid = answer.pid;
    return true;
}

void spawner_stop(struct spawner *spawner)
{
    spawner->link = fd_close(spawner->link);
    if (!spawner->pid)
        return;
    (void)kill(spawner->pid, SIGKILL);
    (void)waitpid(spawner->pid, NULL, 0);
    spawner->pid = 0;
}
