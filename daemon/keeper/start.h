/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One program, three ways to run it: as the keeper, as its broker, and as a keeper that takes over an fd stash in the
 * same process. The latter two get a hidden option in front of the user's, which names descriptors.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* The program that runs, wherever its file is by now. */
#define START_THIS_PROGRAM "/proc/self/exe"

#define START_OPTION_BROKER   "broker"  /* =FD: the socket to the keeper */
#define START_OPTION_FD_STASH "carrier" /* =FD,FD; the name that earlier versions know */

struct start {
    char **argv;    /* argv[1] is free for the hidden option */
    char **environ; /* for the broker, without what the service manager tells the keeper */
    char *path;     /* of the program; NULL if it cannot be found out */
};

/* Copies what it needs, argv without hidden options. 0 or -ENOMEM. */
int start_init(struct start *start, char *const *argv);
void start_deinit(struct start *start);

/* Starts the program `fd`, or this one if it is -1, as the broker behind `socket`, whose number should be low: the
 * table of descriptors is copied only up to it. The broker ignores the signals that are for the keeper, from before its
 * first instruction. Its pid or a negative errno. */
pid_t start_broker(const struct start *start, int fd, int socket);
/* Forks the installed program, `program`, with `output` as its standard output. With socket = NULL it prints its
 * version; else it checks the configuration that a broker at `socket` ("": anywhere) would read, and exits as
 * --check-config does. Its pid or a negative errno. */
pid_t start_preflight(const struct start *start, int program, int output, const char *socket);
/* Executes `program`, or this program if it is -1, in place of this one as the keeper. Returns only if it failed: a
 * negative errno. */
int start_keeper(const struct start *start, int program, const int fd_stash[2]);
/* Reads the n descriptors that a hidden option names, and makes them close-on-exec. False if it names others. */
bool start_read_option(const char *text, int *fds, unsigned n);
