/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes for tests: another user, a victim to kill, a process with limits of its own.
 *
 * The body runs in a forked child. It must not use cmocka's asserts (they would jump into the child's
 * copy of the test program) but CHECK(), which prints what is false and ends the child. The parent learns
 * it from child_finish(), which fails the test. A child that outlives its test program is killed by the
 * kernel, and every wait has an end.
 *
 * Both sides have one end of a SEQPACKET pair to take turns on and to pass descriptors over.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Two users that own nothing here: the one a broker might have, and a stranger. */
#define UID_BROKER   61001
#define UID_STRANGER 61002
#define UID_VICTIM   61003

struct child {
    pid_t pid;
    int channel;
};

typedef void child_body(int channel, void *context);

void child_start(struct child *child, child_body *body, void *context);

/* Waits for the end; returns the wait status. One that does not end in time is killed and fails the test. */
int child_wait(struct child *child);

/* The child must end with status 0; with TEST_SKIPPED the test is skipped as well. */
void child_finish(struct child *child);

/* SIGKILL, reap, close the channel. */
void child_kill(struct child *child);

/* SIGKILL without reaping: the child is a zombie when this returns. */
void child_kill_unreaped(struct child *child);

/* start and finish */
void child_run(child_body *body, void *context);

/*
 * For a test that forks while other threads allocate or free: skips it under ASan and TSan, whose malloc() may wait
 * for ever in the child, for a thread that the child does not have. (gcc 12 and clang 14 do not hold the locks of
 * their allocators over fork() as glibc does, and LSan takes them too when a child ends.) A child that calls nothing
 * but exec() is safe.
 */
void child_need_malloc(void);

/* Runs body in a child and returns the signal that ended it, 0 if none did. Handlers are the defaults. */
int child_signal(child_body *body, void *context);

/* Does the kernel tell who is not the parent how a process ended (Linux 6.15)? */
bool child_ends_are_told(void);

/* Of any process; the latest, since one that is dying may still be there beside the next. 0 if it has none. */
pid_t youngest_child_of(pid_t parent);

/* Taking turns: one byte. The parent's failure fails the test, the child's ends it. */
void child_tell(struct child *child);
void child_hear(struct child *child);

/* ---- in the child ------------------------------------------------------------------------------------------------ */

/* For good: this uid, the same gid, no supplementary groups, hence no capabilities. */
void become(uid_t uid);

void tell(int channel);
void hear(int channel);

#define CHECK(expression)                                   \
    do {                                                    \
        if (!(expression))                                  \
            child_give_up(#expression, __FILE__, __LINE__); \
    } while (0)
#define CHECK_ERRNO(expression, wanted) child_check_errno((expression) < 0, (wanted), #expression, __FILE__, __LINE__)
#define CHECK_MAP_ERRNO(expression, wanted) \
    child_check_errno((expression) == MAP_FAILED, (wanted), #expression, __FILE__, __LINE__)

_Noreturn void child_give_up(const char *what, const char *file, int line);
void child_check_errno(bool failed, int wanted, const char *what, const char *file, int line);
_Noreturn void child_skip(const char *reason);

/* In the child: malloc() has nothing left to give afterwards, for good. Skips where a tool needs memory itself. */
void child_use_up_memory(void);
