/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real memoryd, on a socket of its own, and clients that speak to it in raw packets, right or wrong.
 *
 * The program is $MEMORYD if that is set, else the one that was built. It gets the arena that also sanitizers can
 * live with, base pages for whoever asks for none unless the test says "pages = auto" (huge pages that are there for
 * a moment are another test's, which has set them), whatever the test adds to the configuration, and its standard
 * error goes to a file, so that a test can ask what it said.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct broker_process {
    pid_t pid;   /* the keeper: what was started, or what has taken its place */
    pid_t group; /* of processes */
    bool socket_is_ours;
    char socket[200];
    char config[220];
    char log[220];
};

/* `extra` = more configuration, or NULL; `nofile` = its hard limit of descriptors, or 0. Waits until it serves. */
void broker_start(struct broker_process *broker, const char *extra, unsigned nofile);
/* As it is installed: with a user of its own, on a socket that a service manager made. For root only. */
void broker_start_as(struct broker_process *broker, const char *extra, uid_t uid);
void broker_start_as_with_nofile(struct broker_process *broker, const char *extra, uid_t uid, unsigned nofile);
/* Like broker_start(), but for one that is expected to end by itself: its exit status. */
int broker_run(struct broker_process *broker, const char *extra);
/* SIGTERM; it must end with status 0, and its socket must be gone. Prints its log if the test fails. */
void broker_stop(struct broker_process *broker);
/* SIGKILL for keeper and broker at once, so that nothing goes on. Its files stay. */
void broker_crash(struct broker_process *broker);
/* The same, and prints its log. For one that is left of a test that failed. */
void broker_kill(struct broker_process *broker);
/* The keeper's child; waits until there is one. */
pid_t broker_child(const struct broker_process *broker);
/* SIGKILL, and there is another. */
void broker_kill_child(const struct broker_process *broker);
/* SIGKILL for the keeper: the broker, whose service manager has no store, takes its place and starts another. */
void broker_kill_keeper(struct broker_process *broker);
/* Did it ever say this? */
bool broker_said(const struct broker_process *broker, const char *what);
bool broker_lives(const struct broker_process *broker);
/* Descriptors that this process, the keeper's or the broker's, has open. */
unsigned broker_count_fds(pid_t pid);

/* ---- raw clients ------------------------------------------------------------------------------------------------- */

struct raw_reply {
    ssize_t size; /* as recvmsg: 0 = the broker closed, -1 = nothing came in time */
    uint16_t method;
    uint64_t sequence;
    uint32_t status;
    unsigned n_fds;
    uint8_t payload[65536];
};

int raw_connect(const struct broker_process *broker);
/* The same in a child process of the test, which ends if that fails. */
int raw_connect_in_child(const struct broker_process *broker);
/* connect and HELLO, which must work */
int raw_client(const struct broker_process *broker);
/* The same as another user, as root only: what the kernel says of a connection is who made it. */
int raw_connect_as(const struct broker_process *broker, uid_t uid);
int raw_client_as(const struct broker_process *broker, uid_t uid);
/* A sound packet; returns its sequence. */
uint64_t raw_send(int fd, uint16_t method, const void *payload, size_t size, const int *fds, unsigned n_fds);
/* A sound packet without payload, which may come too late: the broker may have closed the connection. */
void raw_send_if_open(int fd, uint16_t method);
/* The next packet; its descriptors are closed. Waits with patience. */
void raw_receive(int fd, struct raw_reply *reply);
/* Sends and receives; returns the status. The connection must live. */
uint32_t raw_call(int fd, uint16_t method, const void *payload, size_t size);
/* Does PING work? */
bool raw_is_served(int fd);
/* Packets that were on their way, then the end: true if the broker closed it. */
bool raw_has_ended(int fd);
