/* SPDX-License-Identifier: Apache-2.0 */
/* See death.h. */

#include "sys/death.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/sys.h"
#include "sys/text.h"

/* Of the flags in /proc/PID/stat: it is past the point from which no thread comes back. */
#define FLAG_EXITING 0x4

/* A field of /proc/PID/stat, as text_stat_field() counts. */
#define STAT_FLAGS  6
#define STAT_SIZE   1024
#define STATUS_SIZE 4096
#define FOLDER_SIZE 4096
#define PATH_SIZE   512

/* The head of what getdents64() gives, before the name. */
struct folder_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

/* False and errno. */
static bool death_read_stat(pid_t pid, pid_t thread, char *state, unsigned long *flags)
{
    char text[STAT_SIZE];
    const char *field;

    if (!text_read(text, sizeof(text), "%s/%d/task/%d/stat", sys->proc, (int)pid, (int)thread))
        return false;
    field = text_stat_field(text, 0);
    if (!field) {
        errno = EINVAL;
        return false;
    }
    *state = *field;
    field = text_stat_field(text, STAT_FLAGS);
    *flags = field ? strtoul(field, NULL, 10) : 0;
    return true;
}

/* Is SIGKILL among these, in hexadecimal? */
static bool death_has_sigkill(const char *text, const char *key)
{
    const char *line = strstr(text, key);

    return line && strtoull(line + strlen(key), NULL, 16) & UINT64_C(1) << (SIGKILL - 1);
}

static bool death_is_certain(pid_t pid, pid_t thread, unsigned long flags)
{
    char text[STATUS_SIZE];

    if (flags & FLAG_EXITING)
        return true;
    return text_read(text, sizeof(text), "%s/%d/task/%d/status", sys->proc, (int)pid, (int)thread) &&
           (death_has_sigkill(text, "\nSigPnd:") || death_has_sigkill(text, "\nShdPnd:"));
}

static long death_call_of(pid_t pid, pid_t thread)
{
    char text[256];
    char *end;
    long call;

    if (!text_read(text, sizeof(text), "%s/%d/task/%d/syscall", sys->proc, (int)pid, (int)thread))
        return -1;
    call = strtol(text, &end, 10);
    return end == text ? -1 : call; /* "running" */
}

/* These take or drop descriptors; of what else a broker calls much is about memory. */
static bool death_call_is_harmless(long call)
{
    static const long calls[] = {
        SYS_close, SYS_close_range, SYS_dup3, SYS_recvmsg, SYS_shutdown, SYS_exit, SYS_exit_group,
#ifdef SYS_dup2
        SYS_dup2,
#endif
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        if (call == calls[i])
            return true;
    return false;
}

static enum death death_of_thread(pid_t pid, struct death_cause *cause)
{
    unsigned long flags;
    char state;

    if (!death_read_stat(pid, cause->thread, &state, &flags))
        return errno == ENOENT || errno == ESRCH ? DEATH_DONE : DEATH_NONE;
    if (state == 'Z' || state == 'X' || state == 'x')
        return DEATH_DONE;
    if (!death_is_certain(pid, cause->thread, flags))
        return DEATH_NONE;
    cause->call = death_call_of(pid, cause->thread);
    /* whatever it does not wait for without an end will be over soon */
    if (state != 'D')
        return DEATH_WORKS;
    return flags & FLAG_EXITING || death_call_is_harmless(cause->call) ? DEATH_HANGS : DEATH_WORKS;
}

/* The worst of a part of the listing. */
static enum death death_of_entries(pid_t pid, const char *entries, size_t size, enum death worst,
                                   struct death_cause *cause)
{
    for (size_t at = 0; at < size && worst != DEATH_NONE;) {
        const struct folder_entry *entry = (const struct folder_entry *)(const void *)(entries + at);
        struct death_cause one = {.thread = (pid_t)strtol(entry->name, NULL, 10), .call = -1};
        enum death death = one.thread > 0 ? death_of_thread(pid, &one) : DEATH_DONE;

        if (death < worst) {
            worst = death;
            *cause = one;
        }
        at += entry->size;
    }
    return worst;
}

enum death process_death(pid_t pid, struct death_cause *ret)
{
    _Alignas(struct folder_entry) char entries[FOLDER_SIZE];
    _cleanup_close_ int folder = -1;
    enum death worst = DEATH_DONE;
    char path[PATH_SIZE];
    long n;

    *ret = (struct death_cause){.call = -1};
    if (snprintf(path, sizeof(path), "%s/%d/task", sys->proc, (int)pid) >= (int)sizeof(path))
        return DEATH_NONE;
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return errno == ENOENT ? DEATH_DONE : DEATH_NONE;
    while ((n = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0)
        worst = death_of_entries(pid, entries, (size_t)n, worst, ret);
    /* a process that went away meanwhile has no threads */
    return n < 0 && errno != ENOENT && errno != ESRCH ? DEATH_NONE : worst;
}
