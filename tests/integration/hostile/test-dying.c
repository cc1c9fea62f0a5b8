/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stranger sends the descriptor of a file that nobody can close, since the server of its file system does not answer,
 * and the broker is killed before it has looked at the packet, or while one of its workers is in a call about memory.
 * The next one starts, after such a worker, and everybody goes on with all that they have.
 *
 * A broker closes nothing that a client sent. What waits unread in its sockets when it is killed ends with it or with
 * its cleaner, one of which may hang if the file is such a one that its last close waits.
 *
 * Kernels from 6.16 on refuse such a descriptor before it arrives; here setsockopt() fails as it does before.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <glob.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "proto/methods.h"
#include "sys/death.h"
#include "tests/support/fuse.h"

#define SIZE  (4 * MIB)
#define LARGE (UINT64_C(1) << 30)

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* What teardown must end, whatever has failed. */
static struct fuse unclosable = {.server = {.channel = -1}};
static struct fuse unreadable = {.server = {.channel = -1}};
static struct child attacker = {.channel = -1};

/* For this process and all that it starts: a kernel before 6.16. */
static void be_an_older_kernel(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PASSRIGHTS, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(filter) / sizeof(*filter), .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        printf("this kernel takes no filter, and is as old as it is\n");
}

/* ---- the attack -------------------------------------------------------------------------------------------------- */

static void send_an_alien(int channel, void *context)
{
    int alien = fuse_open(&unclosable), same_file = fuse_open(&unclosable);
    int connection;

    CHECK(alien >= 0 && same_file >= 0);
    become(UID_STRANGER);
    connection = raw_client(context);
    tell(channel);
    hear(channel);
    raw_send(connection, METHOD_IMPORT, NULL, 0, &alien, 1);
    if (unclosable.caches) {
        close(alien);
        fuse_write(same_file);
    }
    tell(channel);
    /* its own copy is closed by its end, which waits, too */
    for (;;)
        pause();
}

/* Before its victim has anything, of which the attacker, a fork of this process, must not have a copy. */
static struct broker_process *broker_with_attacker(const char *config)
{
    struct broker_process *broker = broker_for_test(config);

    fuse_start(&unclosable);
    child_start(&attacker, send_an_alien, broker);
    child_hear(&attacker);
    return broker;
}

/* The broker is killed with the descriptor in one of its sockets, which its cleaner, whose pid this is, has longest. */
static pid_t attack_broker(pid_t broker)
{
    pid_t cleaner = youngest_child_of(broker);

    assert_ok(kill(broker, SIGSTOP));
    child_tell(&attacker);
    child_hear(&attacker);
    assert_ok(kill(broker, SIGKILL));
    return cleaner;
}

static void end_attack(void)
{
    fuse_stop(&unclosable);
    assert_int_equal(kill(attacker.pid, SIGKILL), 0);
    child_wait(&attacker);
}

static bool is_gone(pid_t pid)
{
    struct death_cause cause;

    return process_death(pid, &cause) == DEATH_DONE;
}

static int teardown(void **state)
{
    fuse_stop(&unclosable);
    fuse_stop(&unreadable);
    if (attacker.channel >= 0)
        child_kill(&attacker);
    return broker_cleanup(state);
}

/* ---- its victim -------------------------------------------------------------------------------------------------- */

struct victim {
    struct memclient_context *ctx;
    struct memclient_buffer *buf;
    void *p;
};

static struct victim victim_of(struct broker_process *broker)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct victim victim = {.ctx = broker_connect(broker)};

    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    assert_done(memclient_alloc(victim.ctx, SIZE, &options, &victim.buf));
    assert_done(memclient_map(victim.buf, NULL, &victim.p));
    pattern_write(victim.p, SIZE, 7);
    return victim;
}

/* It has all that it had, and gets more. */
static void victim_goes_on(const struct victim *victim)
{
    struct memclient_buffer *other;

    assert_done(memclient_broker_ping(victim->ctx));
    assert_int_equal(broker_info(victim->buf).state, MEMCLIENT_BUFFER_STATE_LIVE);
    assert_int_equal(broker_info(victim->buf).holds, 1);
    assert_true(pattern_holds(victim->p, SIZE, 7));
    assert_done(memclient_alloc(victim->ctx, SIZE, NULL, &other));
    memclient_buffer_unref(other);
}

static void victim_ends(struct victim *victim)
{
    memclient_buffer_unref(victim->buf);
    memclient_context_close(victim->ctx);
}

/* ---- killed ------------------------------------------------------------------------------------------------------ */

static void I8_what_waits_in_a_connection_keeps_no_broker(void **state)
{
    struct broker_process *broker = broker_with_attacker(NULL);
    struct victim victim = victim_of(broker);
    pid_t pid = broker_child(broker);
    pid_t cleaner;

    (void)state;
    cleaner = attack_broker(pid);
    victim_goes_on(&victim);
    assert_true(broker_child(broker) != pid);
    assert_true(WAIT_UNTIL(is_gone(pid) && is_gone(cleaner)));
    broker_check(broker);
    victim_ends(&victim);
    broker_wait_until_empty(broker);
    end_attack();
    broker_finish(broker);
}

/* The last close of some files waits, also that of a packet that nobody has received (not in every kernel). */
static void I8_nor_does_what_must_still_be_written(void **state)
{
    struct broker_process *broker;
    struct victim victim;
    pid_t pid, cleaner;

    (void)state;
    unclosable.caches = true;
    broker = broker_with_attacker(NULL);
    victim = victim_of(broker);
    pid = broker_child(broker);
    cleaner = attack_broker(pid);
    victim_goes_on(&victim);
    assert_true(broker_child(broker) != pid);
    assert_true(WAIT_UNTIL(fuse_writes(&unclosable) > 0));
    broker_check(broker);
    victim_ends(&victim);
    broker_wait_until_empty(broker);
    broker_stop(broker);
    end_attack();
    assert_true(WAIT_UNTIL(is_gone(pid) && is_gone(cleaner)));
}

/* ---- with a worker in the kernel --------------------------------------------------------------------------------- */

/* Is a thread of this process seen in that call? */
static bool is_in_call(pid_t pid, long call)
{
    char pattern[64];
    bool found = false;
    glob_t paths;

    (void)snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/syscall", (int)pid);
    if (glob(pattern, 0, NULL, &paths))
        return false;
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        char text[64] = "";
        FD_AUTO int fd = open(paths.gl_pathv[i], O_RDONLY | O_CLOEXEC);

        found = found || (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strtol(text, NULL, 10) == call);
    }
    globfree(&paths);
    return found;
}

struct writer {
    int fd;
    const void *from;
};

/* Holds the lock of the file as long as its own memory cannot be read. */
static void *write_what_cannot_be_read(void *argument)
{
    const struct writer *writer = argument;

    (void)!write(writer->fd, writer->from, 4096);
    return NULL;
}

static void write_and_wait(int channel, void *context)
{
    struct writer writer = {.fd = *(const int *)context};
    int file = fuse_open(&unreadable);
    pthread_t thread;

    CHECK(file >= 0);
    writer.from = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(writer.from != MAP_FAILED);
    CHECK(pthread_create(&thread, NULL, write_what_cannot_be_read, &writer) == 0);
    tell(channel);
    for (;;)
        pause();
}

/* In a thread: the answer comes from the next broker. */
static void *discard(void *buf)
{
    return (void *)(intptr_t)memclient_discard(buf, 0, 0);
}

static void *publish(void *buf)
{
    return (void *)(intptr_t)memclient_publish(buf, MEMCLIENT_PUBLISH_FUTURE_ONLY);
}

/* A worker is in that call, on a file whose lock the victim's own process holds. The next broker comes after it. */
static void next_broker_comes_after(long call, void *(*request)(void *), int wanted)
{
    struct broker_process *broker = broker_with_attacker(NULL);
    struct victim victim = victim_of(broker);
    pid_t pid = broker_child(broker);
    pid_t cleaner;
    struct child holder;
    pthread_t thread;
    void *result;
    int fd;

    fuse_start(&unreadable);
    assert_done(memclient_export_fd(victim.buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd));
    child_start(&holder, write_and_wait, &fd);
    child_hear(&holder);
    assert_true(WAIT_UNTIL(fuse_reads(&unreadable) >= 1));
    assert_int_equal(pthread_create(&thread, NULL, request, victim.buf), 0);
    assert_true(WAIT_UNTIL(is_in_call(pid, call)));
    cleaner = attack_broker(pid);
    /* it may still change the file: none comes, for longer than it takes to find out that a broker hangs */
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    assert_int_equal(broker_child(broker), pid);
    fuse_stop(&unreadable);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((intptr_t)result, wanted);
    child_kill(&holder);
    close(fd);
    assert_done(memclient_broker_ping(victim.ctx));
    assert_true(WAIT_UNTIL(is_gone(pid) && is_gone(cleaner)));
    broker_check(broker);
    victim_ends(&victim);
    broker_wait_until_empty(broker);
    end_attack();
    broker_finish(broker);
}

static void I5_the_next_broker_comes_after_a_worker_that_punches(void **state)
{
    (void)state;
    next_broker_comes_after(SYS_fallocate, discard, 0);
}

static void I5_the_next_broker_comes_after_a_worker_that_seals(void **state)
{
    (void)state;
    next_broker_comes_after(SYS_fcntl, publish, 0);
}

static void *allocate(void *ctx)
{
    struct memclient_buffer *buf;
    int r = memclient_alloc(ctx, LARGE, NULL, &buf);

    if (!r)
        memclient_buffer_unref(buf);
    return (void *)(intptr_t)r;
}

/* Has this process a memory file of that size, of whose pages some are there? */
static bool is_making(pid_t pid, uint64_t size)
{
    char pattern[64];
    bool found = false;
    struct stat st;
    glob_t paths;

    (void)snprintf(pattern, sizeof(pattern), "/proc/%d/fd/*", (int)pid);
    if (glob(pattern, 0, NULL, &paths))
        return false;
    for (size_t i = 0; i < paths.gl_pathc; i++)
        found = found || (stat(paths.gl_pathv[i], &st) == 0 && (uint64_t)st.st_size == size && st.st_blocks > 0 &&
                          (uint64_t)st.st_blocks * 512 < size / 2);
    globfree(&paths);
    return found;
}

/* A buffer in the making is known to the dead broker only, which keeps none of it. */
static void I5_a_worker_that_allocates_leaves_nothing(void **state)
{
    struct broker_process *broker = broker_with_attacker(NULL);
    struct victim victim = victim_of(broker);
    pid_t pid = broker_child(broker);
    pid_t cleaner;
    pthread_t thread;
    void *result;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, allocate, victim.ctx), 0);
    assert_true(WAIT_UNTIL(is_making(pid, LARGE)));
    cleaner = attack_broker(pid);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((intptr_t)result, 0);
    victim_goes_on(&victim);
    assert_true(WAIT_UNTIL(is_gone(pid) && is_gone(cleaner)));
    broker_check(broker);
    victim_ends(&victim);
    broker_wait_until_empty(broker);
    end_attack();
    broker_finish(broker);
}

#define hostile(function) cmocka_unit_test_teardown(function, teardown)

/* A broker that ends looks for leaks if it was built so, and waits for that until all of its threads have stopped. */
static void look_for_no_leaks(void)
{
    const char *before = getenv("ASAN_OPTIONS");
    char options[512];

    snprintf(options, sizeof(options), "%s:detect_leaks=0", before ? before : "");
    setenv("ASAN_OPTIONS", options, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        hostile(I8_what_waits_in_a_connection_keeps_no_broker),
        hostile(I8_nor_does_what_must_still_be_written),
        hostile(I5_the_next_broker_comes_after_a_worker_that_punches),
        hostile(I5_the_next_broker_comes_after_a_worker_that_seals),
        hostile(I5_a_worker_that_allocates_leaves_nothing),
    };

    be_an_older_kernel();
    look_for_no_leaks();
    return test_run(tests, NULL, NULL);
}
