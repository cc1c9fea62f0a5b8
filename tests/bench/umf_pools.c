/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small allocations: UMF's pools over memory that can be shared, and what processes have, against jemalloc as it is
 * when it is a process's malloc.
 *
 * One process has one malloc. So glibc's, jemalloc and TBB are each in a child, this program again with that one
 * preloaded, which does a round when it is told to by a byte.
 */
#include <memclient/umf.h>
#include <memclient/umf/pools/pool_disjoint.h>
#include <memclient/umf/pools/pool_jemalloc.h>
#include <memclient/umf/pools/pool_scalable.h>
#include <memclient/umf/providers/provider_memoryd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define OPERATIONS 100000 /* of each thread in a round */
#define SLOTS      256
#define LIVE       ((size_t)64 << 20)
#define MIB        ((double)(1 << 20))

/* NULL: malloc and free */
static umf_memory_pool_handle_t pool;

static void *
get(size_t size)
{
    void *ptr = pool ? umfPoolMalloc(pool, size) : malloc(size);

    bench_must(ptr != NULL, "allocating");
    *(volatile char *)ptr = 1;
    return ptr;
}

static void
put(void *ptr)
{
    if (pool)
        (void)umfPoolFree(pool, ptr);
    else
        free(ptr);
}

/* ---- the work --------------------------------------------------------------------------------------------- */

static void *
pairs(void *arg)
{
    (void)arg;
    for (int i = 0; i < OPERATIONS; i++)
        put(get(64));
    return NULL;
}

static void *
mixed(void *arg)
{
    void *slots[SLOTS] = {NULL};
    unsigned x = 1 + (unsigned)(uintptr_t)arg;

    for (int i = 0; i < OPERATIONS; i++) {
        unsigned slot = (x = x * 1664525 + 1013904223) >> 24;

        if (slots[slot])
            put(slots[slot]);
        slots[slot] = get(16 + (x >> 8) % 4000);
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i])
            put(slots[i]);
    return NULL;
}

static void
work(unsigned char kind)
{
    void *(*body)(void *) = kind & 0x80 ? mixed : pairs;
    pthread_t threads[8];
    int n = kind & 0x7f;

    if (n == 1) {
        (void)body(NULL);
        return;
    }
    for (intptr_t i = 0; i < n; i++)
        bench_must(!pthread_create(&threads[i], NULL, body, (void *)i), "pthread_create");
    for (int i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
}

/* Half of what was allocated is freed, here and there, and allocated in other sizes. What is resident then, of as much
 * as there is? */
static void
print_footprint(const char *name)
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
    printf("%-34s %10.1f MiB resident for %.1f MiB at most, then about three quarters\n", name,
           (double)resident * (double)sysconf(_SC_PAGESIZE) / MIB, (double)live / MIB);
    for (size_t i = 0; i < n; i++)
        put(ptrs[i]);
}

/* ---- pools ------------------------------------------------------------------------------------------------ */

static bool
make_pool(const char *name)
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

/* ---- children --------------------------------------------------------------------------------------------- */

struct child {
    pid_t pid;
    int fds[2]; /* to it, from it */
};

/* What the child runs: rounds, until its input ends; then its footprint, if it is asked for. */
static int
serve(const char *name, bool footprint)
{
    unsigned char kind;

    if (strncmp(name, "malloc", 6) && !make_pool(name))
        return 77;
    while (read(STDIN_FILENO, &kind, 1) == 1) {
        work(kind);
        bench_must(write(STDOUT_FILENO, &kind, 1) == 1, "answering");
    }
    if (footprint) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        print_footprint(name);
        fflush(stdout);
    }
    if (pool)
        umfPoolDestroy(pool);
    return 0;
}

static void
start(struct child *child, const char *name, const char *preload, bool footprint)
{
    int to[2], from[2];

    bench_must(!pipe(to) && !pipe(from), "pipe");
    child->pid = fork();
    bench_must(child->pid >= 0, "fork");
    if (!child->pid) {
        (void)dup2(to[0], STDIN_FILENO);
        (void)dup2(from[1], STDOUT_FILENO);
        for (int fd = 3; fd < 64; fd++)
            (void)close(fd);
        if (preload)
            (void)setenv("LD_PRELOAD", preload, 1);
        execl("/proc/self/exe", "umf_pools", "--serve", name, footprint ? "footprint" : "", (char *)NULL);
        _exit(1);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    child->fds[0] = to[1];
    child->fds[1] = from[0];
}

struct context {
    struct child *ours, *floor;
    unsigned char kind;
};

/* false: it is not there any more. */
static bool
tell(const struct child *child, unsigned char kind)
{
    return write(child->fds[0], &kind, 1) == 1 && read(child->fds[1], &kind, 1) == 1;
}

static void
ours_once(void *arg)
{
    const struct context *context = arg;

    bench_must(tell(context->ours, context->kind), "a child's round");
}

static void
floor_once(void *arg)
{
    const struct context *context = arg;

    bench_must(tell(context->floor, context->kind), "a child's round");
}

static void
measure(const char *name, struct child *ours, struct child *floor_, bool json)
{
    static const int threads[] = {1, 2, 4};

    for (int kind = 0; kind < 2; kind++)
        for (unsigned i = 0; i < 3; i++) {
            struct context context = {ours, floor_, (unsigned char)(threads[i] | kind << 7)};
            char label[64];
            struct bench bench = {
                .name = label,
                .ours = {name, ours_once, NULL},
                .floor = {"jemalloc", floor_once, NULL},
                .context = &context,
                .rounds = 15,
                .a_round = 3,
                .hold = kind || !strncmp(name, "malloc", 6) ? 0 : 1.5,
            };

            (void)snprintf(label, sizeof(label), "%s, %s, %d threads", name, kind ? "mixed" : "pairs", threads[i]);
            (void)bench_run(&bench, json);
        }
}

/* Its footprint is printed when its input ends. */
static void
end(struct child *child)
{
    (void)close(child->fds[0]);
    (void)waitpid(child->pid, NULL, 0);
    (void)close(child->fds[1]);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name, *preload;
    } rivals[] = {
        {"disjoint", NULL},        {"jemalloc", NULL}, {"scalable", NULL},
        {"malloc of glibc", NULL}, {"malloc of TBB", "libtbbmalloc_proxy.so.2"},
    };
    struct child jemalloc, child;
    bool json;

    if (argc == 4 && !strcmp(argv[1], "--serve"))
        return serve(argv[2], *argv[3]);
    if (!bench_options(argc, argv, &json))
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    start(&jemalloc, "malloc of jemalloc", "libjemalloc.so.2", !json);
    for (unsigned i = 0; i < sizeof(rivals) / sizeof(*rivals); i++) {
        start(&child, rivals[i].name, rivals[i].preload, !json);
        if (tell(&child, 1))
            measure(rivals[i].name, &child, &jemalloc, json);
        else
            fprintf(stderr, "%s: not here\n", rivals[i].name);
        fflush(stdout);
        end(&child);
    }
    end(&jemalloc);
    return fflush(stdout) ? 1 : 0;
}
