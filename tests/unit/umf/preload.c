/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program has of malloc() and its like where libmemclient-umf-proxy.so is preloaded, which it knows by the sizes
 * that jemalloc gives. Linked with nothing; preload.sh runs it, also with few addresses: "preload limited".
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define PIECES  2000

static int failures;

#define CHECK(what)                                                                  \
    do {                                                                             \
        if (!(what)) {                                                               \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            __atomic_store_n(&failures, 1, __ATOMIC_RELAXED);                        \
        }                                                                            \
    } while (0)

/* glibc gives as much as it is asked for, or 8 bytes more. */
static int is_of_jemalloc(void)
{
    void *ptr = malloc(1000);
    size_t size = malloc_usable_size(ptr);

    free(ptr);
    return size == 1024;
}

static void sizes_and_alignments(void)
{
    volatile size_t odd_alignment = 24;
    volatile size_t too_much = SIZE_MAX / 2;
    char *ptr, *zeros;
    void *at = NULL;

    for (size_t size = 0; size < 1 << 20; size = 2 * size + 1) {
        ptr = malloc(size);
        CHECK(ptr && malloc_usable_size(ptr) >= size && (uintptr_t)ptr % 8 == 0);
        memset(ptr, 7, size);
        ptr = realloc(ptr, 3 * size + 1);
        CHECK(ptr && (!size || (ptr[0] == 7 && ptr[size - 1] == 7)));
        free(ptr);
        zeros = calloc(3, size);
        CHECK(zeros);
        for (size_t i = 0; i < 3 * size; i++)
            CHECK(!zeros[i]);
        free(zeros);
        for (size_t alignment = 8; alignment <= 1 << 16; alignment *= 2) {
            CHECK(!posix_memalign(&at, alignment, size) && (uintptr_t)at % alignment == 0);
            free(at);
            at = memalign(alignment, size);
            CHECK(at && (uintptr_t)at % alignment == 0);
            free(at);
        }
    }
    CHECK(posix_memalign(&at, 3, 8) == EINVAL && posix_memalign(&at, 2, 8) == EINVAL);
    /* no power of two, which compilers refuse where they see it */
    at = memalign(odd_alignment, 8);
    CHECK(at && (uintptr_t)at % 32 == 0);
    free(at);
    at = valloc(10);
    CHECK(at && (uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE) == 0);
    free(at);
    at = reallocarray(NULL, 10, 100);
    CHECK(malloc_usable_size(at) == 1024);
    free(at);
    at = strdup("text");
    CHECK(!strcmp(at, "text"));
    free(at);
    errno = 0;
    CHECK(!malloc(too_much) && errno == ENOMEM);
    CHECK(!calloc(too_much, 3) && !reallocarray(NULL, too_much, 3));
    errno = 5;
    free(malloc(1));
    free(NULL);
    CHECK(errno == 5);
    CHECK(!malloc_usable_size(NULL));
}

static void *volatile pieces[PIECES];
static pthread_key_t key;

/* After the pool has let the thread go. */
static void late(void *ptr)
{
    CHECK(!strcmp(ptr, "late"));
    free(ptr);
    free(malloc(100));
    ptr = calloc(10, 10);
    CHECK(ptr && !*(char *)ptr);
    free(ptr);
}

/* Frees what others have allocated. */
static void *exchange(void *seed)
{
    uintptr_t random = (uintptr_t)seed + 1;

    (void)pthread_setspecific(key, strdup("late"));
    for (unsigned i = 0; i < 20 * PIECES; i++) {
        size_t size = (random = random * 1103515245 + 12345) % 40000;
        char *ptr = malloc(size + 1);

        ptr[0] = ptr[size] = (char)i;
        free(__atomic_exchange_n(&pieces[random / 7 % PIECES], ptr, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[THREADS];

    CHECK(!pthread_key_create(&key, late));
    for (unsigned round = 0; round < 3; round++) {
        for (uintptr_t i = 0; i < THREADS; i++)
            CHECK(!pthread_create(&all[i], NULL, exchange, (void *)i));
        for (unsigned i = 0; i < THREADS; i++)
            CHECK(!pthread_join(all[i], NULL));
    }
    for (unsigned i = 0; i < PIECES; i++) {
        free(pieces[i]);
        pieces[i] = NULL;
    }
}

/* The child has its parent's memory, also what other threads were at. */
static void forks(void)
{
    pthread_t other;
    char *mine = strdup("the parent's");

    CHECK(!pthread_create(&other, NULL, exchange, NULL));
    for (unsigned i = 0; i < 20; i++) {
        int status = -1;
        pid_t child = fork();

        if (!child) {
            sizes_and_alignments();
            CHECK(!strcmp(mine, "the parent's"));
            free(mine);
            _exit(failures);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
    }
    CHECK(!pthread_join(other, NULL));
    free(mine);
}

/* In KiB: memory that may be written, whether it is there or not. */
static unsigned long writable(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    unsigned long size = ULONG_MAX;
    char line[256];

    while (status && fgets(line, sizeof(line), status))
        if (sscanf(line, "VmData: %lu kB", &size) == 1)
            break;
    if (status)
        (void)fclose(status);
    return size;
}

/* What was never allocated is neither made by mlockall() nor written into core files nor counted as data. */
static void reserved_costs_nothing(void)
{
    bool is_little = writable() < 1 << 20;

    CHECK(is_little);
    /* else the machine's memory may be gone; without the right to lock so much it is refused */
    if (is_little && !mlockall(MCL_CURRENT | MCL_FUTURE)) {
        char *ptr = malloc(1 << 20);

        CHECK(ptr);
        memset(ptr, 7, 1 << 20);
        free(ptr);
        CHECK(!munlockall());
    }
}

static pthread_barrier_t all_started;

static void *wait_for_all(void *unused)
{
    free(malloc(1000));
    (void)pthread_barrier_wait(&all_started);
    return unused;
}

/* Stacks find addresses beside what was reserved, and malloc() those beside it when that is used up. */
static void few_addresses(void)
{
    static char *large[1024];
    pthread_t all[THREADS];
    struct rlimit limit;
    size_t n;

    CHECK(!pthread_barrier_init(&all_started, NULL, THREADS + 1));
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&all[i], NULL, wait_for_all, NULL)) {
            (void)fprintf(stderr, "%u threads, and no more\n", i);
            exit(1);
        }
    (void)pthread_barrier_wait(&all_started);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(!pthread_join(all[i], NULL));
    CHECK(!getrlimit(RLIMIT_AS, &limit));
    n = (size_t)limit.rlim_cur / 8 * 5 / (8 << 20);
    CHECK(n < sizeof(large) / sizeof(*large));
    for (size_t i = 0; i < n; i++) {
        large[i] = i % 2 ? malloc(8 << 20) : realloc(memset(malloc(100), 7, 100), 8 << 20);
        CHECK(large[i] && (i % 2 || large[i][99] == 7));
    }
    for (size_t i = 0; i < n; i++)
        free(large[i]);
}

int main(int argc, char **argv)
{
    CHECK(is_of_jemalloc());
    if (argc > 1 && !strcmp(argv[1], "limited")) {
        few_addresses();
        return failures;
    }
    reserved_costs_nothing();
    sizes_and_alignments();
    threads();
    forks();
    return failures;
}
