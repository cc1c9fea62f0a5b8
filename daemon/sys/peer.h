/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the other end of a socket: the kernel's word, never the peer's (I3).
 *
 * Credentials are those of the connect(). The pidfd refers to that very process however often its number is reused, and
 * becomes readable when it is dead. Kernels without SO_PEERPIDFD (before 6.5) only tell which process has the number
 * now; the connection must then still have another end.
 *
 * A client's /proc/PID/stat is not read if the kernel can tell processes apart without. Reading it waits as long as the
 * process hangs in execve(), which it does if it has mapped a file in user space, with something to write, whose
 * server does not answer. Besides, who reads it has a reference to the process's memory meanwhile; if the process ends
 * then, its memory ends in the reader's hands, who waits for the server, and no signal ends that. From Linux 6.9 on
 * each process's pidfds have an inode, whose number no other process ever has; before, the time of its start tells
 * those apart that had one number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum {
    _PEER_OK,
    PEER_GONE,    /* the process has died */
    PEER_UNKNOWN, /* no local socket, or its process is not visible from this PID namespace */
    PEER_NO_ROOM, /* no descriptor or memory for it just now */
};

struct peer {
    uid_t uid;
    gid_t gid;
    pid_t pid;
    int pidfd;         /* owned; -1 once stolen */
    uint64_t identity; /* of the process among all that have its number, since boot */
    gid_t *groups;     /* supplementary ones */
    size_t n_groups;
};

#define PEER_NULL ((struct peer){.uid = (uid_t)-1, .gid = (gid_t)-1, .pid = -1, .pidfd = -1})

/* Of a connected local socket: the user alone. 0, PEER_* or a negative errno. */
int peer_uid(int socket, uid_t *ret);
/* Of a connected local socket: user, groups and number, which costs little. 0, PEER_*, or a negative errno. */
int peer_init_user(struct peer *peer, int socket);
/* The rest, of the same socket: the process itself. */
int peer_identify(struct peer *peer, int socket);
/* Both. */
int peer_init_socket(struct peer *peer, int socket);
/* Of a process by its number, for "only this pid" tokens; whose it is, is not looked up. */
int peer_init_pid(struct peer *peer, pid_t pid);
/*
 * Of a process that was known before, from what is recorded of it, with its pidfd (-1 if that is lost), which is taken
 * if it is one of this process. 0; PEER_GONE; or PEER_NO_ROOM, PEER_UNKNOWN or a negative errno if that is unknown.
 * Groups are not recorded.
 */
int peer_init_again(struct peer *peer, uid_t uid, gid_t gid, pid_t pid, uint64_t identity, int *pidfd);
void peer_deinit(struct peer *peer);

/* The same process, not only the same number. */
bool peer_same_process(const struct peer *a, const struct peer *b);
/* The same, of what is recorded of one, maybe by a program that recorded start times only. */
bool peer_is_process(const struct peer *peer, pid_t pid, uint64_t identity);
/* The overflow group is no group: it stands for all those that this user namespace does not have. */
bool peer_in_group(const struct peer *peer, gid_t gid);
/* Does it stand for every user that this user namespace does not have? */
bool peer_is_overflow_uid(uid_t uid);
/*
 * The path of its control group now, as this process's own control group namespace shows it: of version 2 or, where the
 * machine has only version 1, that in systemd's hierarchy. False if there is none, or the process has died.
 */
bool peer_cgroup(const struct peer *peer, char *path, size_t size);
/* The same of the text of /proc/PID/cgroup, which is changed. For peer_cgroup() and its tests. */
bool peer_cgroup_of(char *text, char *path, size_t size);
/* Is it stopped, or does a debugger hold it? */
bool process_pauses(pid_t pid);
/* Has the process of this pidfd ended? */
bool peer_is_dead(int pidfd);

/* How did it end? */
enum peer_end {
    PEER_END_UNREAPED, /* that will be known once its parent has reaped it, when the pidfd hangs up */
    PEER_END_UNKNOWN,
    PEER_END_EXITED,
    PEER_END_SIGNAL,
};

/* *ret is the exit status or the signal, 0 where there is none. */
enum peer_end peer_end(int pidfd, int *ret);
