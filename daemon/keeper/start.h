/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One program, three ways to run it: as the keeper, as its broker, and as a keeper that goes on in the same process
 * with an fd stash in hand. The two latter get a hidden option in front of the user's, which names descriptors.
 */

#include <stdbool.h>
#include <sys/types.h>

/* The program that runs, wherever its file is by now. */
#define START_THIS_PROGRAM "/proc/self/exe"

#define START_OPTION_BROKER   "broker"  /* =FD: the socket to the keeper */
#define START_OPTION_FD_STASH "carrier" /* =FD,FD; the name that earlier versions know */

struct start {
    char **argv;    /* argv[1] is a place for the hidden option */
    char **environ; /* for the broker: the service manager is the keeper's business */
    char *path;     /* of the program; NULL if it cannot be found out */
};

/* Copies what it needs, argv without hidden options. 0 or -ENOMEM. */
int start_init(struct start *start, char *const *argv);
void start_deinit(struct start *start);

/* Starts the program `fd`, or this one if it is -1, as the broker behind `socket`, whose number should be low: only up
 * to it is the table of descriptors copied. The broker ignores the signals that are for the keeper, from before its
 * first instruction. Its pid or a negative errno. */
pid_t start_broker(const struct start *start, int fd, int socket);
/* Forks the installed program, with `output` as its standard output. With socket = NULL it prints its version; else it
 * checks the configuration that a broker at `socket` ("": anywhere) would read, and exits as --check-config does. Its
 * pid or a negative errno. */
pid_t start_preflight(const struct start *start, int output, const char *socket);
/* Executes `path`, or this program if it is NULL, in place of this one as the keeper. Returns only if it failed: a
 * negative errno. */
int start_keeper(const struct start *start, const char *path, const int fd_stash[2]);
/* What a hidden option names: n descriptors, close-on-exec from now on. False if it does not. */
bool start_read_option(const char *text, int *fds, unsigned n);
