/* SPDX-License-Identifier: Apache-2.0 */
/* See doors.h. */
#include "door/doors.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/list.h"
#include "door/message.h"
#include "door/spawner.h"
#include "door/ticket.h"
#include "log/log.h"
#include "proto/sockio.h"
#include "proto/status.h"
#include "sys/sys.h"
#include "sys/text.h"

/* How long one may be at one thing, asleep. */
#define PATIENCE_NS (250 * NSEC_PER_MSEC)
/* How long one stays that nobody uses. */
#define IDLE_NS (60 * NSEC_PER_SEC)
/* Processes of one user that were killed and have not ended. With so many it gets no other. */
#define KILLED_UID_MAX 2
/* Processes of all users: as many; those whose place another one was given, until they have ended; and administrators'
 * own. */
#define PROCESSES_MAX            112
#define PROCESSES_ENDING         16
#define PROCESSES_ADMINISTRATORS (SPAWNER_SLOTS - PROCESSES_MAX - PROCESSES_ENDING)

enum door_phase {
    DOOR_NONE,
    DOOR_STARTING, /* the spawner has been asked, and the door sent messages already */
    DOOR_SERVES,
    DOOR_KILLED, /* and has not ended: it may be in the kernel for good, so nobody waits for that */
};

struct door_process {
    enum door_phase phase;
    pid_t pid;
    struct door_user *user;
};

struct door_user {
    uid_t uid;
    struct doors *doors;
    struct door_process *door; /* NULL: there is none */
    int link;                  /* to it, or -1 */
    int start_error;           /* why the last one could not be started; 0 = nothing to say */
    uint64_t used_at;
    unsigned n_killed;
    struct tickets tickets;
    int *unended; /* what waits for a door */
    unsigned n_unended;
    UT_hash_handle hh;
};

struct doors {
    struct spawner *spawner;
    uid_t administrator;
    struct door_user *users; /* hash by uid */
    struct door_process processes[SPAWNER_SLOTS];
    unsigned n_unended;
};

int doors_new(struct doors **ret, const struct doors_options *options)
{
    struct doors *doors = calloc(1, sizeof(*doors));

    if (!doors)
        return -ENOMEM;
    doors->spawner = options->spawner;
    doors->administrator = options->administrator;
    *ret = doors;
    return 0;
}

/* ---- what is closed elsewhere ------------------------------------------------------------------------------------ */

/* False: it stays open, for want of memory, which is better than a broker that hangs. */
static bool user_end_later(struct door_user *user, int fd)
{
    int *unended = reallocarray(user->unended, user->n_unended + 1, sizeof(*unended));

    if (!unended)
        return false;
    unended[user->n_unended++] = fd;
    user->unended = unended;
    user->doors->n_unended++;
    return true;
}

/* What was shown, and is of nobody's use. */
static void user_end_ticket(struct tickets *tickets, int fd)
{
    (void)user_end_later(container_of(tickets, struct door_user, tickets), fd);
}

/* ---- one process ------------------------------------------------------------------------------------------------- */

static unsigned door_slot(const struct doors *doors, const struct door_process *door)
{
    return (unsigned)(door - doors->processes);
}

static struct door_state *door_state(const struct doors *doors, const struct door_process *door)
{
    return spawner_state(doors->spawner, door_slot(doors, door));
}

/* What it has reported. */
static void door_read(struct door_user *user)
{
    struct door_message message;
    int fd;

    while (user->link >= 0 && !door_message_receive(user->link, &message, &fd))
        tickets_add(&user->tickets, &message, fd);
}

/* Its user has no door any more. What it had reported counts; what it still reports comes to nothing, and nothing of
 * that is left to be closed here. */
static void door_leave(struct door_user *user)
{
    if (user->link >= 0)
        (void)shutdown(user->link, SHUT_RDWR);
    door_read(user);
    user->link = fd_close(user->link);
    user->door = NULL;
}

/* Only one that serves: the pid of another is not known. */
static void door_kill(struct door_user *user)
{
    struct door_process *door = user->door;

    (void)kill(door->pid, SIGKILL);
    door_leave(user);
    door->phase = DOOR_KILLED;
    user->n_killed++;
}

static void door_reap(struct door_process *door)
{
    if ((door->phase != DOOR_SERVES && door->phase != DOOR_KILLED) || waitpid(door->pid, NULL, WNOHANG) == 0)
        return;
    if (door->phase == DOOR_KILLED)
        door->user->n_killed--;
    else
        door_leave(door->user);
    *door = (struct door_process){.phase = DOOR_NONE};
}

/* One that only waits for a processor does not hang. */
static bool door_sleeps(pid_t pid)
{
    char text[1024];
    const char *state;

    return !text_read(text, sizeof(text), "%s/%d/stat", sys->proc, (int)pid) || !(state = text_stat_field(text, 0)) ||
           *state != 'R';
}

static bool door_hangs(const struct doors *doors, const struct door_process *door)
{
    uint64_t since = door->phase == DOOR_SERVES ? atomic_load(&door_state(doors, door)->busy_since) : 0;

    return since && deadline_passed(since + PATIENCE_NS, clock_now_ns()) && door_sleeps(door->pid);
}

static void door_replace(struct door_user *user)
{
    log_warning("the door of uid %u, process %d, hangs in closing what its user sent; it is replaced",
                (unsigned)user->uid, (int)user->door->pid);
    door_kill(user);
}

/* Sends it a message with a descriptor. 0, or as sockio_send(). */
static int door_tell(struct door_user *user, const struct door_message *message, int fd)
{
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof(*message)};

    return sockio_send(user->link, &iov, 1, &fd, 1);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void doors_not_started(struct door_process *door, int error)
{
    door->user->start_error = error;
    door_leave(door->user);
    *door = (struct door_process){.phase = DOOR_NONE};
}

/* What the spawner has to say. */
static void doors_hear(struct doors *doors)
{
    unsigned slot;
    pid_t pid;

    while (spawner_hear(doors->spawner, &slot, &pid)) {
        struct door_process *door = &doors->processes[slot];

        if (pid < 0) {
            doors_not_started(door, -pid);
            continue;
        }
        door->pid = pid;
        door->phase = DOOR_SERVES;
        log_debug("process %d is the door of uid %u", (int)pid, (unsigned)door->user->uid);
    }
    if (doors->spawner->link >= 0)
        return;
    for (unsigned i = 0; i < SPAWNER_SLOTS; i++)
        if (doors->processes[i].phase == DOOR_STARTING)
            doors_not_started(&doors->processes[i], ESRCH);
}

static bool doors_is_administrator(const struct doors *doors, uid_t uid)
{
    return !uid || uid == doors->administrator;
}

static struct door_process *doors_find_free(struct doors *doors, unsigned most)
{
    for (unsigned i = 0; i < most; i++)
        if (doors->processes[i].phase == DOOR_NONE)
            return &doors->processes[i];
    return NULL;
}

/* Ends the door that was not used for longest, and learns of the end of others. */
static void doors_make_room(struct doors *doors)
{
    struct door_user *oldest = NULL;

    for (unsigned i = 0; i < SPAWNER_SLOTS; i++) {
        struct door_process *door = &doors->processes[i];

        door_reap(door);
        if (door->phase == DOOR_SERVES && (!oldest || door->user->used_at < oldest->used_at))
            oldest = door->user;
    }
    if (oldest)
        door_kill(oldest);
}

/* A place for one more process; NULL: there is none. */
static struct door_process *doors_find_place(struct doors *doors, uid_t uid)
{
    struct door_process *door = doors_find_free(doors, PROCESSES_MAX);

    if (door)
        return door;
    doors_make_room(doors);
    return doors_find_free(doors, doors_is_administrator(doors, uid) ? SPAWNER_SLOTS
                                                                     : SPAWNER_SLOTS - PROCESSES_ADMINISTRATORS);
}

static int doors_start(struct doors *doors, struct door_user *user, struct problem *problem)
{
    struct door_process *door = doors_find_place(doors, user->uid);
    _cleanup_close_ int ours = -1, theirs = -1;
    int pair[2];
    int r;

    if (!door)
        return refuse(problem, STATUS_LIMIT,
                      "%d processes that took descriptors of clients have not ended; try again later",
                      PROCESSES_MAX + PROCESSES_ENDING);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return refuse(problem, STATUS_NO_DESCRIPTORS,
                      "memoryd may have no more descriptors; release something, or raise its LimitNOFILE");
    ours = pair[0];
    theirs = pair[1];
    if (doors->spawner->states)
        atomic_store(&door_state(doors, door)->busy_since, 0);
    r = spawner_ask(doors->spawner, door_slot(doors, door), theirs);
    if (r == -EAGAIN)
        return refuse(problem, STATUS_LIMIT, "too many doors are being started; try again later");
    if (r)
        return refuse(problem, STATUS_NO_MEMORY,
                      "the process that starts doors, memoryd-spawner, has ended; restart memoryd");
    *door = (struct door_process){.phase = DOOR_STARTING, .user = user};
    user->door = door;
    user->link = steal_fd(&ours);
    return 0;
}

/* ---- users ------------------------------------------------------------------------------------------------------- */

static struct door_user *doors_user(struct doors *doors, uid_t uid)
{
    struct door_user *user;

    HASH_FIND(hh, doors->users, &uid, sizeof(uid), user);
    if (user)
        return user;
    user = calloc(1, sizeof(*user));
    if (!user)
        return NULL;
    user->uid = uid;
    user->doors = doors;
    user->link = -1;
    tickets_init(&user->tickets, user_end_ticket);
    HASH_ADD(hh, doors->users, uid, sizeof(user->uid), user);
    if (!user->hh.tbl) {
        free(user);
        return NULL;
    }
    return user;
}

/* False: nothing was left of it, and it is gone. */
static bool user_keep(struct door_user *user)
{
    if (user->door || user->n_killed || user->tickets.n || user->n_unended)
        return true;
    HASH_DEL(user->doors->users, user);
    free(user->unended);
    free(user);
    return false;
}

static void user_reap(struct door_user *user)
{
    for (unsigned i = 0; i < SPAWNER_SLOTS; i++)
        if (user->doors->processes[i].user == user)
            door_reap(&user->doors->processes[i]);
}

static int user_not_started(struct door_user *user, struct problem *problem)
{
    int error = user->start_error;

    user->start_error = 0;
    return refuse(problem, STATUS_NO_MEMORY, "a door cannot be started: %s; raise TasksMax= of the service?",
                  strerror(error));
}

/* A door of the user that does not hang, or will be one. */
static int user_need_door(struct door_user *user, struct problem *problem)
{
    doors_hear(user->doors);
    user_reap(user);
    door_read(user);
    if (user->door && door_hangs(user->doors, user->door))
        door_replace(user);
    if (user->door)
        return 0;
    if (user->n_killed >= KILLED_UID_MAX)
        return refuse(problem, STATUS_LIMIT,
                      "%u processes that took descriptors of uid %u hang in closing them; end what these descriptors "
                      "are of, a file system in user space for example",
                      user->n_killed, (unsigned)user->uid);
    return user->start_error ? user_not_started(user, problem) : doors_start(user->doors, user, problem);
}

/* Sends its door something, the first or the next one. 0 or a status. */
static int user_tell(struct door_user *user, const struct door_message *message, int fd, struct problem *problem)
{
    int r;

    for (unsigned tries = 0; tries < 2; tries++) {
        r = user_need_door(user, problem);
        if (r)
            return r;
        r = door_tell(user, message, fd);
        if (!r)
            return 0;
        /* it is in its end, which may take long */
        if (r == SOCKIO_E_GONE && user->door->phase == DOOR_SERVES)
            door_kill(user);
    }
    return refuse(problem, STATUS_LIMIT, "the door of uid %u has very much to take; try again later",
                  (unsigned)user->uid);
}

/* ---- what clients show ------------------------------------------------------------------------------------------- */

/* The message holds the descriptor from now on, so closing it here is not the last close, whatever becomes of the door:
 * what is in a process's sockets ends with that process. */
static bool user_end_now(struct door_user *user, int fd)
{
    const struct door_message message = {.type = DOOR_END};
    struct problem problem = PROBLEM_NULL;

    if (user_tell(user, &message, fd, &problem))
        return false;
    fd_close(fd);
    return true;
}

static void user_end_unended(struct door_user *user)
{
    while (user->n_unended) {
        int fd = user->unended[--user->n_unended];

        user->doors->n_unended--;
        if (user_end_now(user, fd))
            continue;
        (void)user_end_later(user, fd);
        break;
    }
}

int doors_serve(struct doors *doors, uid_t uid, uint64_t session, int *ret_fd, struct problem *problem)
{
    const struct door_message message = {.type = DOOR_SERVE, .session = session};
    struct door_user *user = doors_user(doors, uid);
    _cleanup_close_ int ours = -1, theirs = -1;
    int pair[2];
    int r;

    if (!user)
        return refuse(problem, STATUS_NO_MEMORY, "there is no memory for a door");
    user->used_at = clock_now_ns();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        r = refuse(problem, STATUS_NO_DESCRIPTORS,
                   "memoryd may have no more descriptors; release something, or raise its LimitNOFILE");
    } else {
        theirs = pair[0];
        ours = pair[1];
        r = user_tell(user, &message, ours, problem);
    }
    user_end_unended(user);
    if (r) {
        (void)user_keep(user);
        return r;
    }
    *ret_fd = steal_fd(&theirs);
    return 0;
}

int doors_redeem(struct doors *doors, uid_t uid, uint64_t session, uint64_t ticket, bool memory,
                 struct handle_shown *ret, struct problem *problem)
{
    struct door_user *user;
    bool found = false;

    HASH_FIND(hh, doors->users, &uid, sizeof(uid), user);
    if (user) {
        user->used_at = clock_now_ns();
        door_read(user);
        tickets_expire(&user->tickets);
        found = tickets_take(&user->tickets, session, ticket, memory, ret);
        user_end_unended(user);
    }
    return found
               ? 0
               : refuse(problem, STATUS_TICKET_STALE,
                        "the ticket was used, is too old, or of another broker or session; show the descriptor again");
}

void doors_end(struct doors *doors, uid_t uid, int fd)
{
    struct door_user *user = doors_user(doors, uid);

    if (!user)
        return; /* it stays open */
    user->used_at = clock_now_ns();
    if (user->n_unended || !user_end_now(user, fd))
        (void)user_end_later(user, fd);
}

unsigned doors_unended(const struct doors *doors, uid_t uid, unsigned *all)
{
    struct door_user *user;

    *all = doors->n_unended;
    HASH_FIND(hh, doors->users, &uid, sizeof(uid), user);
    return user ? user->n_unended : 0;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* False: nothing is left of it. */
static bool doors_tick_user(struct door_user *user)
{
    user_reap(user);
    tickets_expire(&user->tickets);
    if (user->door && door_hangs(user->doors, user->door))
        door_replace(user);
    else if (user->door && user->door->phase == DOOR_SERVES && deadline_passed(user->used_at + IDLE_NS, clock_now_ns()))
        door_kill(user);
    user_end_unended(user);
    return user_keep(user);
}

bool doors_tick(struct doors *doors)
{
    struct door_user *user, *next;
    bool left = false;

    doors_hear(doors);
    HASH_ITER(hh, doors->users, user, next)
        left |= doors_tick_user(user);
    return left;
}
