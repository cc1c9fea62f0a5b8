/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small allocations: UMF's pools over memory that can be shared, and what processes have, against jemalloc as it is
 * when it is a process's malloc.
 *
 * One process has one malloc. So glibc's, jemalloc and TBB are each in a child, this program again with that one
 * preloaded, which does a round when it is told to by a byte.
 *
 * What counts is the processor time of the thread that took most: what other programs on the machine took of the
 * processors in between would be most of what is seen otherwise. Threads that stand in one another's way show, since
 * going to sleep for a lock and being woken takes far longer than what is measured here.
 */
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/pools/pool_scalable.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

#define JEMALLOC    "libjemalloc.so.2"
#define OPERATIONS  100000 /* of each thread in a round */
#define BATCH       10000
#define SLOTS       256
#define THREADS_MAX 4
#define LIVE        ((size_t)64 << 20)
#define MIB         ((double)(1 << 20))

/* NULL: malloc and free */
static umf_memory_pool_handle_t pool;

static void *get(size_t size)
{
    void *ptr = pool ? umfPoolMalloc(pool, size) : malloc(size);

    bench_must(ptr != NULL, "allocating");
    *(volatile char *)ptr = 1;
    return ptr;
}

static void put(void *ptr)
{
    if (pool)
        (void)umfPoolFree(pool, ptr);
    else
        free(ptr);
}

/* ---- the work ---------------------------------------------------------------------------------------------------- */

static void pairs(void)
{
    for (int i = 0; i < OPERATIONS; i++)
        put(get(64));
}

/* As many as there are, before one is freed. */
static void batches(void)
{
    static void *ptrs[BATCH];

    for (int done = 0; done < OPERATIONS; done += BATCH) {
        for (int i = 0; i < BATCH; i++)
            ptrs[i] = get(64);
        for (int i = 0; i < BATCH; i++)
            put(ptrs[i]);
    }
}

static void mixed(void)
{
    static _Atomic unsigned seeds;
    void *slots[SLOTS] = {NULL};
    unsigned x = ++seeds;

    for (int i = 0; i < OPERATIONS; i++) {
        unsigned slot = (x = x * 1664525 + 1013904223) >> 24;

        if (slots[slot])
            put(slots[slot]);
        slots[slot] = get(16 + (x >> 8) % 4000);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            put(slots[i]);
}

enum work { PAIRS, MIXED, BATCHES };

/* A round, in one byte. */
struct task {
    unsigned char work : 2, threads : 6;
};

static _Atomic uint64_t longest_ns; /* of a round's threads */

/* Whoever fetches memory waits for it, too: it is no processor time then. */
static uint64_t clock_ns(enum work work)
{
    struct timespec t;

    bench_must(!clock_gettime(work == BATCHES ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t), "clock_gettime");
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void work_alone(enum work work)
{
    uint64_t took = clock_ns(work), longest = 0;

    switch (work) {
    case PAIRS:
        pairs();
        break;
    case MIXED:
        mixed();
        break;
    case BATCHES:
        batches();
        break;
    }
    took = clock_ns(work) - took;
    while (took > longest && !atomic_compare_exchange_weak(&longest_ns, &longest, took))
        ;
}

/* Threads that work together, and live as long as the process: what starting and ending one takes is not the pool's. */
static struct crew {
    pthread_barrier_t begin, end;
    unsigned n; /* 0: there is none yet */
    enum work work;
} crews[THREADS_MAX + 1];

static void *member(void *arg)
{
    struct crew *crew = arg;

    for (;;) {
        (void)pthread_barrier_wait(&crew->begin);
        work_alone(crew->work);
        (void)pthread_barrier_wait(&crew->end);
    }
    return NULL;
}

static void engage(struct crew *crew, unsigned n)
{
    pthread_t thread;

    bench_must(!pthread_barrier_init(&crew->begin, NULL, n + 1), "pthread_barrier_init");
    bench_must(!pthread_barrier_init(&crew->end, NULL, n + 1), "pthread_barrier_init");
    for (crew->n = 0; crew->n < n; crew->n++)
        bench_must(!pthread_create(&thread, NULL, member, crew), "pthread_create");
}

static void perform(struct task task)
{
    struct crew *crew = &crews[task.threads];

    if (task.threads == 1) {
        work_alone(task.work);
        return;
    }
    if (!crew->n)
        engage(crew, task.threads);
    crew->work = task.work;
    (void)pthread_barrier_wait(&crew->begin);
    (void)pthread_barrier_wait(&crew->end);
}

/* Half of what was allocated is freed, here and there, and allocated in other sizes. What is resident then, of as much
 * as there is? */
static void print_footprint(const char *name)
{
    static void *ptrs[LIVE / 1024];
    size_t live = 0, n = 0, resident = 0;
    unsigned x = 1;
    FILE *file;

    while (live < LIVE && n < LIVE / 1024) {
        size_t size = 16 + ((x = x * 1664525 + 1013904223) >> 8) % 4000;

        ptrs[n] = memset(get(size), 1, size);
        live += size;
        n++;
    }
    for (size_t i = 0; i < n; i += 2) {
        size_t size = 16 + ((x = x * 1664525 + 1013904223) >> 8) % 2000;

        put(ptrs[i]);
        ptrs[i] = memset(get(size), 1, size);
    }
    file = fopen("/proc/self/statm", "re");
    bench_must(file && fscanf(file, "%*s %zu", &resident) == 1, "/proc/self/statm");
    fclose(file);
    fprintf(stderr, "umf_pools: %s: %.1f MiB resident for %.1f MiB at most, then about three quarters\n", name,
            (double)resident * (double)sysconf(_SC_PAGESIZE) / MIB, (double)live / MIB);
    for (size_t i = 0; i < n; i++)
        put(ptrs[i]);
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

static bool make_pool(const char *name)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_provider_handle_t provider;
    umf_memory_pool_ops_t *ops = !strcmp(name, "disjoint")   ? umfDisjointPoolOps()
                                 : !strcmp(name, "jemalloc") ? umfJemallocPoolOps()
                                                             : umfScalablePoolOps();

    params.SlabMinSize = 256 << 10;
    params.MaxPoolableSize = 4 << 20;
    params.Capacity = 4;
    params.MinBucketSize = 16;
    bench_must(!umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &provider), "umfMemoryProviderCreate");
    return !umfPoolCreate(ops, provider, ops == umfDisjointPoolOps() ? &params : NULL,
                          UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool);
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

struct child {
    pid_t pid[2]; /* and a 0 */
    int fds[2];   /* to it, from it */
};

/* What the child runs: rounds, until its input ends; then its footprint. */
static int serve(const char *name)
{
    struct task task;

    if (strncmp(name, "malloc", 6) && !make_pool(name))
        return 77;
    while (read(STDIN_FILENO, &task, 1) == 1) {
        uint64_t took;

        longest_ns = 0;
        perform(task);
        took = longest_ns;
        bench_must(write(STDOUT_FILENO, &took, sizeof(took)) == sizeof(took), "answering");
    }
    print_footprint(name);
    if (pool)
        umfPoolDestroy(pool);
    return 0;
}

static void start(struct child *child, const char *name, const char *preload)
{
    int to[2], from[2];

    bench_must(!pipe(to) && !pipe(from), "pipe");
    child->pid[0] = fork();
    bench_must(child->pid[0] >= 0, "fork");
    if (!child->pid[0]) {
        (void)dup2(to[0], STDIN_FILENO);
        (void)dup2(from[1], STDOUT_FILENO);
        for (int fd = 3; fd < 64; fd++)
            (void)close(fd);
        if (preload)
            (void)setenv("LD_PRELOAD", preload, 1);
        execl("/proc/self/exe", "umf_pools", "--serve", name, (char *)NULL);
        _exit(1);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    child->fds[0] = to[1];
    child->fds[1] = from[0];
}

struct context {
    struct child *ours, *other;
    struct task task;
};

/* How many us its round took; negative: it is not there any more. */
static double tell(const struct child *child, struct task task)
{
    uint64_t ns;

    if (write(child->fds[0], &task, 1) != 1 || read(child->fds[1], &ns, sizeof(ns)) != sizeof(ns))
        return -1;
    return (double)ns / 1e3;
}

static double time_ours(void *arg)
{
    const struct context *context = arg;
    double us = tell(context->ours, context->task);

    bench_must(us >= 0, "a child's round");
    return us;
}

static double time_other(void *arg)
{
    const struct context *context = arg;
    double us = tell(context->other, context->task);

    bench_must(us >= 0, "a child's round");
    return us;
}

/* Its footprint is printed when its input ends. */
static void end(struct child *child)
{
    (void)close(child->fds[0]);
    (void)waitpid(child->pid[0], NULL, 0);
    (void)close(child->fds[1]);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *preload, *row;
} contenders[] = {
    {"disjoint", NULL, "disjoint"},
    {"jemalloc", NULL, "jemalloc"},
    {"scalable", NULL, "scalable"},
    {"malloc of glibc", NULL, "glibc"},
    {"malloc of TBB", "libtbbmalloc_proxy.so.2", "tbb"},
};

static const unsigned char threads[] = {1, 2, 4};

enum {
    CONTENDERS = sizeof(contenders) / sizeof(*contenders),
    THREADS = sizeof(threads),
    ROWS = CONTENDERS * (2 * THREADS + 1)
};

static struct bench_row rows[ROWS];
static struct {
    char name[32];
    unsigned contender;
    struct task task;
} about[ROWS];

static struct bench_row row_of(unsigned contender, struct task task, char *name, size_t size)
{
    static const char *const works[] = {[PAIRS] = "pairs", [MIXED] = "mixed", [BATCHES] = "batches"};
    struct bench_row row = {.name = name, .unit = BENCH_NS, .operations = OPERATIONS, .rival = true};

    if (task.work == PAIRS && strncmp(contenders[contender].name, "malloc", 6))
        row.hold = 1.5;
    (void)snprintf(name, size, "%s_%s_%u", works[task.work], contenders[contender].row, (unsigned)task.threads);
    /* the pool that is all ours is the one that is asked after */
    if (task.threads == 1 && !contender) {
        if (task.work == PAIRS)
            row.name = "malloc_pair_vs_jemalloc";
        if (task.work == BATCHES)
            row = (struct bench_row){
                .name = "alloc_batched", .unit = BENCH_PER_S, .operations = OPERATIONS, .rival = true, .goal = 1e6};
    }
    return row;
}

static void name_rows(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < CONTENDERS; i++)
        for (unsigned char work = PAIRS; work <= BATCHES; work++)
            for (unsigned k = 0; k < (work == BATCHES ? 1 : THREADS); k++, n++) {
                about[n].contender = i;
                about[n].task = (struct task){.work = work, .threads = threads[k] & 7};
                rows[n] = row_of(i, about[n].task, about[n].name, sizeof(about[n].name));
            }
}

static void measure(unsigned contender, struct child *jemalloc)
{
    struct child child = {0};
    bool here, any = false;

    for (unsigned i = 0; i < ROWS; i++)
        any = any || (about[i].contender == contender && bench_wanted(&rows[i]));
    if (!any)
        return;
    start(&child, contenders[contender].name, contenders[contender].preload);
    here = raw_can_preload(JEMALLOC) && raw_can_preload(contenders[contender].preload) &&
           tell(&child, (struct task){.work = PAIRS, .threads = 1}) >= 0;
    for (unsigned i = 0; i < ROWS; i++) {
        struct context context = {&child, jemalloc, about[i].task};

        if (about[i].contender != contender)
            continue;
        if (here)
            (void)bench_run(&rows[i], &(struct bench){.ours = {.timed = time_ours, .workers = child.pid},
                                                      .other = {.timed = time_other, .workers = jemalloc->pid},
                                                      .context = &context,
                                                      .rounds = 8,
                                                      .a_round = 2});
        else
            bench_skip(&rows[i], "it, or jemalloc, is not on this machine");
    }
    end(&child);
}

int main(int argc, char **argv)
{
    struct child jemalloc = {0};

    if (argc == 3 && !strcmp(argv[1], "--serve"))
        return serve(argv[2]);
    name_rows();
    bench_begin(argc, argv, rows, ROWS);
    (void)signal(SIGPIPE, SIG_IGN);
    start(&jemalloc, "malloc of jemalloc", JEMALLOC);
    for (unsigned i = 0; i < CONTENDERS; i++)
        measure(i, &jemalloc);
    end(&jemalloc);
    return bench_end();
}
