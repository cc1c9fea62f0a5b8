/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host of plug-ins: unload LIBRARY USE. It loads a library of memoryd's with dlopen(), uses it, and drops it with
 * dlclose(), again and again. USE says how: native, hsa, nbla, umf, provider or svm give back what they have got; kept
 * does not, and goes on using the memory; handlers leaves a thread of the library's behind.
 *
 * It is itself linked with none of them. After each time it looks at its own descriptors, threads and mappings: a
 * library that has gone must have left none, and one that stays loaded no more than it may keep. Then it forks, writes
 * "gone" or "stays", and waits for its input, so that the broker can be asked about it.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>
#include <memclient/memclient.h>
#include <memclient/nbla.h>
#include <memclient/svm.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>
#include <memclient/umf_provider.h>

#include "client/umf/plugin.h"

#define TIMES 20
#define SIZE  ((size_t)64 << 10)
/* A library that stays loaded is used as often as would show a descriptor or mapping left each time. */
#define TIMES_LOADED 200
#define MAY_KEEP     80

#define CHECK(true_)                                                    \
    do {                                                                \
        if (!(true_)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #true_); \
            exit(1);                                                    \
        }                                                               \
    } while (0)

/* The library's function of that name. */
#define GET(name) __typeof__(name) *name##_ = get(#name)

static void *library;
static char *kept[TIMES];

static void *get(const char *name)
{
    void *function = dlsym(library, name);

    CHECK(function);
    return function;
}

static void use_native(void)
{
    GET(memclient_alloc);
    GET(memclient_map);
    GET(memclient_share);
    GET(memclient_event_subscribe);
    GET(memclient_event_fd);
    GET(memclient_unmap);
    GET(memclient_buffer_unref);
    struct memclient_buffer *buf;
    struct memclient_token token;
    void *p;
    int fd;

    CHECK(!memclient_event_subscribe_(NULL, MEMCLIENT_EVENT_NAME) && !memclient_event_fd_(NULL, &fd));
    CHECK(!memclient_alloc_(NULL, SIZE, NULL, &buf) && !memclient_map_(buf, NULL, &p));
    CHECK(!memclient_share_(buf, NULL, &token));
    memset(p, 1, SIZE);
    CHECK(!memclient_unmap_(NULL, p, 0));
    memclient_buffer_unref_(buf);
}

static void use_and_keep(void)
{
    GET(memclient_alloc);
    GET(memclient_map);
    struct memclient_buffer *buf;
    unsigned n = 0;
    void *p;

    while (kept[n])
        n++;
    CHECK(!memclient_alloc_(NULL, SIZE, NULL, &buf) && !memclient_map_(buf, NULL, &p));
    kept[n] = p;
    memset(p, (int)n + 1, SIZE);
}

static hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void *data)
{
    *(hsa_amd_memory_pool_t *)data = pool;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t take_agent(hsa_agent_t agent, void *data)
{
    *(hsa_agent_t *)data = agent;
    return HSA_STATUS_INFO_BREAK;
}

static void use_hsa(void)
{
    GET(hsa_init);
    GET(hsa_iterate_agents);
    GET(hsa_amd_agent_iterate_memory_pools);
    GET(hsa_amd_memory_pool_allocate);
    GET(hsa_amd_memory_pool_free);
    GET(hsa_signal_create);
    GET(hsa_signal_destroy);
    GET(hsa_shut_down);
    hsa_amd_memory_pool_t pool;
    hsa_signal_t signal;
    hsa_agent_t agent;
    void *p;

    CHECK(!hsa_init_());
    CHECK(hsa_iterate_agents_(take_agent, &agent) == HSA_STATUS_INFO_BREAK);
    CHECK(hsa_amd_agent_iterate_memory_pools_(agent, take_pool, &pool) == HSA_STATUS_INFO_BREAK);
    CHECK(!hsa_amd_memory_pool_allocate_(pool, SIZE, 0, &p));
    memset(p, 1, SIZE);
    CHECK(!hsa_signal_create_(1, 0, NULL, &signal) && !hsa_signal_destroy_(signal));
    CHECK(!hsa_amd_memory_pool_free_(p));
    CHECK(!hsa_shut_down_());
}

static bool note_call(hsa_signal_value_t value, void *called)
{
    __atomic_store_n((int64_t *)called, value, __ATOMIC_RELEASE);
    return true;
}

/* A thread of the library's that nobody ends. */
static void use_handlers(void)
{
    GET(hsa_init);
    GET(hsa_signal_create);
    GET(hsa_signal_store_relaxed);
    GET(hsa_signal_wait_relaxed);
    GET(hsa_amd_signal_async_handler);
    static int64_t called;
    hsa_signal_t signal;

    called = 0;
    CHECK(!hsa_init_() && !hsa_signal_create_(0, 0, NULL, &signal));
    CHECK(!hsa_amd_signal_async_handler_(signal, HSA_SIGNAL_CONDITION_EQ, 7, note_call, &called));
    hsa_signal_store_relaxed_(signal, 7);
    while (__atomic_load_n(&called, __ATOMIC_ACQUIRE) != 7)
        (void)hsa_signal_wait_relaxed_(signal, HSA_SIGNAL_CONDITION_EQ, 8, 1000000, HSA_WAIT_STATE_BLOCKED);
}

/* One after the other, so that chunks are spare and addresses are left. */
static void use_nbla_virtual(void)
{
    GET(nbla_physical_memory_new);
    GET(nbla_physical_memory_unref);
    GET(nbla_memory_new_virtual);
    GET(nbla_memory_bind);
    GET(nbla_memory_destroy);

    for (int i = 0; i < 4; i++) {
        nbla_physical_memory *p = nbla_physical_memory_new_(NULL, 1024, "");
        nbla_memory *memory = nbla_memory_new_virtual_(NULL, 1024, "", &p, 1);

        CHECK(memory && !nbla_memory_bind_(memory));
        CHECK(!nbla_memory_destroy_(memory));
        nbla_physical_memory_unref_(p);
    }
}

static void use_nbla(void)
{
    GET(nbla_memory_new);
    GET(nbla_memory_alloc);
    GET(nbla_memory_divide);
    GET(nbla_memory_pointer);
    GET(nbla_memory_token);
    GET(nbla_memory_get_device_state);
    GET(nbla_memory_destroy);
    nbla_memory *memory = nbla_memory_new_(NULL, SIZE, ""), *second;
    struct memclient_token token;
    uint64_t offset, length;

    CHECK(memory && !nbla_memory_alloc_(memory) && !nbla_memory_divide_(memory, 100, &second));
    memset(nbla_memory_pointer_(second), 1, SIZE - 100);
    CHECK(!nbla_memory_token_(second, &token, &offset, &length));
    CHECK(nbla_memory_get_device_state_(second) == NBLA_DEVICE_UNLOCKED);
    CHECK(!nbla_memory_destroy_(memory) && !nbla_memory_destroy_(second));
    use_nbla_virtual();
}

static void use_umf(void)
{
    GET(umfMemorydMemoryProviderOps);
    GET(umfMemoryProviderCreate);
    GET(umfMemoryProviderAlloc);
    GET(umfMemoryProviderFree);
    GET(umfMemoryProviderDestroy);
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;
    void *p;

    CHECK(!umfMemoryProviderCreate_(umfMemorydMemoryProviderOps_(), &params, &provider));
    CHECK(!umfMemoryProviderAlloc_(provider, SIZE, 0, &p));
    memset(p, 1, SIZE);
    CHECK(!umfMemoryProviderFree_(provider, p, SIZE));
    umfMemoryProviderDestroy_(provider);
}

static void use_provider(void)
{
    GET(memclient_umf_provider_ops);
    const struct umf1_ops *ops = (const void *)memclient_umf_provider_ops_();
    void *provider, *p;

    CHECK(!ops->initialize(NULL, &provider) && !ops->alloc(provider, SIZE, 0, &p));
    memset(p, 1, SIZE);
    CHECK(!ops->free(provider, p, SIZE) && !ops->finalize(provider));
}

static void use_svm(void)
{
    GET(memclient_svm_create);
    GET(memclient_svm_alloc);
    GET(memclient_svm_free);
    GET(memclient_svm_destroy);
    struct memclient_svm *svm;
    void *p;

    CHECK(!memclient_svm_create_(NULL, &svm));
    CHECK(!memclient_svm_alloc_(svm, MEMCLIENT_SVM_READ_WRITE, SIZE, 0, &p));
    memset(p, 1, SIZE);
    CHECK(!memclient_svm_free_(svm, p));
    memclient_svm_destroy_(svm);
}

static const struct {
    const char *name;
    void (*use)(void);
} uses[] = {
    {"native", use_native}, {"kept", use_and_keep}, {"hsa", use_hsa},           {"handlers", use_handlers},
    {"nbla", use_nbla},     {"umf", use_umf},       {"provider", use_provider}, {"svm", use_svm},
};

/* What the process has of the kernel. */
struct had {
    unsigned fds;
    unsigned threads;
    unsigned mappings; /* of the library's making: of memory files, and of addresses without access */
    bool loaded;
};

static unsigned count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    unsigned n = 0;

    CHECK(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static struct had look(void)
{
    struct had had = {.fds = count_entries("/proc/self/fd"), .threads = count_entries("/proc/self/task")};
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];

    CHECK(maps);
    while (fgets(line, sizeof(line), maps)) {
        had.loaded |= strstr(line, "libmemclient") != NULL;
        had.mappings += strstr(line, "/memfd:") || strstr(line, " ---p 00000000 00:00 0");
    }
    fclose(maps);
    return had;
}

static void *use_malloc(void *unused)
{
    void *volatile one = malloc(1);

    free(one);
    return unused;
}

/* What the C library keeps of a thread that has ended, a stack and a heap, is there from the beginning. */
static struct had look_after_a_thread(void)
{
    pthread_t thread;

    CHECK(!pthread_create(&thread, NULL, use_malloc, NULL) && !pthread_join(thread, NULL));
    return look();
}

static void say(const char *when, unsigned time, struct had had)
{
    fprintf(stderr, "%s %u: %u descriptors, %u threads, %u mappings, %s\n", when, time, had.fds, had.threads,
            had.mappings, had.loaded ? "loaded" : "not loaded");
}

static bool is_more(struct had now, struct had than)
{
    return now.fds > than.fds || now.threads > than.threads || now.mappings > than.mappings || now.loaded > than.loaded;
}

/* Nobody's handlers of forks are left, or they work. */
static void fork_once(void)
{
    pid_t child = fork();
    int status;

    CHECK(child >= 0);
    if (!child)
        _exit(0);
    CHECK(waitpid(child, &status, 0) == child && !status);
}

static void check_kept(void)
{
    for (unsigned n = 0; n < TIMES && kept[n]; n++) {
        for (size_t i = 0; i < SIZE; i++)
            CHECK(kept[n][i] == (char)(n + 1));
        CHECK(!munmap(kept[n], SIZE));
    }
}

int main(int argc, char **argv)
{
    struct had before = look_after_a_thread(), most = before, now;
    unsigned which = 0, times = TIMES;

    CHECK(argc == 3);
    while (strcmp(uses[which].name, argv[2]) != 0)
        CHECK(++which < sizeof(uses) / sizeof(*uses));
    for (unsigned time = 1; time <= times; time++) {
        library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        uses[which].use();
        CHECK(!dlclose(library));
        now = look();
        if (kept[0])
            now.mappings -= time;
        if (now.loaded) {
            times = TIMES_LOADED;
            most = (struct had){before.fds + MAY_KEEP, before.threads + 1, before.mappings + MAY_KEEP, true};
        }
        if (is_more(now, most)) {
            say("before", 0, before);
            say("after", time, now);
            return 1;
        }
    }
    fork_once();
    puts(now.loaded ? "stays" : "gone");
    fflush(stdout);
    if (getchar() == '\n')
        check_kept();
    puts("done");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
