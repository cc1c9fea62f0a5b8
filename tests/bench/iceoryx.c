/* SPDX-License-Identifier: Apache-2.0 */
/* See iceoryx.h. The functions are those of its C binding, version 2. */
#include "tests/bench/iceoryx.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

#define LIBRARY "libiceoryx_binding_c.so.2"
#define ROUDI   "/usr/bin/iox-roudi"

enum { SUBSCRIBED = 2, RECEIVED = 3, TRIES = 1000, TRY_US = 10000 };

static struct {
    void (*runtime_init)(const char *name);
    void *(*pub_init)(uint64_t *storage, const char *service, const char *instance, const char *event, const void *);
    void *(*sub_init)(uint64_t *storage, const char *service, const char *instance, const char *event, const void *);
    bool (*pub_has_subscribers)(void *pub);
    int (*sub_get_subscription_state)(void *sub);
    int (*pub_loan_chunk)(void *pub, void **chunk, uint32_t size);
    void (*pub_publish_chunk)(void *pub, void *chunk);
    int (*sub_take_chunk)(void *sub, const void **chunk);
    void (*sub_release_chunk)(void *sub, const void *chunk);
} iox;

static void *port; /* publisher or subscriber */

bool iceoryx_is_here(void)
{
    return raw_can_preload(LIBRARY) && !access(ROUDI, X_OK);
}

static void load(void)
{
    static const struct {
        const char *name;
        void *function;
    } symbols[] = {
        {"iox_runtime_init", &iox.runtime_init},
        {"iox_pub_init", &iox.pub_init},
        {"iox_sub_init", &iox.sub_init},
        {"iox_pub_has_subscribers", &iox.pub_has_subscribers},
        {"iox_sub_get_subscription_state", &iox.sub_get_subscription_state},
        {"iox_pub_loan_chunk", &iox.pub_loan_chunk},
        {"iox_pub_publish_chunk", &iox.pub_publish_chunk},
        {"iox_sub_take_chunk", &iox.sub_take_chunk},
        {"iox_sub_release_chunk", &iox.sub_release_chunk},
    };
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    bench_must(!!library, LIBRARY);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        void *symbol = dlsym(library, symbols[i].name);

        bench_must(!!symbol, symbols[i].name);
        memcpy(symbols[i].function, &symbol, sizeof(symbol));
    }
}

static pid_t roudi;

/* The next one, of another program of this benchmark, can begin only then. */
static void end_roudi(void)
{
    (void)kill(roudi, SIGTERM);
    (void)waitpid(roudi, NULL, 0);
}

/* It ends with this process, and puts its segments away. */
static void start_roudi(void)
{
    roudi = fork();
    bench_must(roudi >= 0, "fork");
    /* the library, which is loaded later, takes leave before that */
    if (roudi) {
        bench_must(!atexit(end_roudi), "atexit");
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)dup2(STDERR_FILENO, STDIN_FILENO);
    execl(ROUDI, ROUDI, "-m", "off", "-l", "off", (char *)NULL);
    _exit(1);
}

void iceoryx_begin(bool maker)
{
    static uint64_t storage;
    int tries = TRIES;

    /* it has much to say; that it does not work is seen by whoever waits for it */
    bench_must(dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDERR_FILENO) >= 0, "/dev/null");
    if (maker)
        start_roudi();
    load();
    iox.runtime_init(maker ? "memoryd-bench-maker" : "memoryd-bench-taker");
    port = maker ? iox.pub_init(&storage, "memoryd", "bench", "chunk", NULL)
                 : iox.sub_init(&storage, "memoryd", "bench", "chunk", NULL);
    while (maker ? !iox.pub_has_subscribers(port) : iox.sub_get_subscription_state(port) != SUBSCRIBED) {
        bench_must(tries--, "meeting the other process");
        usleep(TRY_US);
    }
}

void *iceoryx_loan(size_t size)
{
    void *chunk = NULL;

    (void)iox.pub_loan_chunk(port, &chunk, (uint32_t)size);
    bench_must(!!chunk, "a chunk");
    return chunk;
}

void iceoryx_publish(void *chunk)
{
    iox.pub_publish_chunk(port, chunk);
}

const void *iceoryx_take(void)
{
    const void *chunk = NULL;

    bench_must(iox.sub_take_chunk(port, &chunk) == RECEIVED, "taking a chunk");
    return chunk;
}

void iceoryx_release(const void *chunk)
{
    iox.sub_release_chunk(port, chunk);
}
