/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the broker runs in, a unit of systemd or none, and the lines for root's shell that change what it may have.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What such a line may take: paths occur several times. */
#define LINE_SIZE (4 * PATH_MAX)

struct service {
    const char *root;   /* before the paths of the kernel's files, "" outside of tests */
    const char *socket; /* of the broker */
    pid_t keeper;
    uid_t uid;
    char unit[NAME_MAX]; /* "": none of memoryd's */
    bool is_users;       /* the unit is of the user's own systemd */
};

/* `broker` and `keeper` are its processes. */
void service_find(struct service *service, const char *root, const char *socket, pid_t broker, pid_t keeper, uid_t uid);

/* Writes the line that lets the broker have n descriptors, and returns it. */
const char *service_mend_descriptors(const struct service *service, unsigned n, char line[static LINE_SIZE]);

/* What the control groups of the process let it have; UINT64_MAX: all. */
struct service_memory {
    uint64_t limit;
    bool slows;           /* by memory.high, beyond which processes wait while the kernel reclaims */
    char line[LINE_SIZE]; /* lets it have what was asked for; "": it may have that */
};
void service_read_memory(const struct service *service, pid_t pid, uint64_t needed, struct service_memory *ret);

/* Writes a word of the shell's that means `text`, and returns it. */
const char *service_quote(const char *text, char *word, size_t size);
