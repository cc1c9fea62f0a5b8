/* SPDX-License-Identifier: Apache-2.0 */
/* See umf_library.h. */
#include "tests/bench/umf_library.h"

#include <dlfcn.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/pools/pool_jemalloc.h>
#include <memclient/umf/umf/pools/pool_proxy.h>
#include <memclient/umf/umf/providers/provider_os_memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/bench.h"
#include "tests/bench/raw.h"

static const struct umf_library ours = {
    .provider_create = umfMemoryProviderCreate,
    .provider_destroy = umfMemoryProviderDestroy,
    .provider_alloc = umfMemoryProviderAlloc,
    .provider_free = umfMemoryProviderFree,
    .pool_create = umfPoolCreate,
    .pool_destroy = umfPoolDestroy,
    .pool_malloc = umfPoolMalloc,
    .pool_free = umfPoolFree,
    .get_handle = umfGetIPCHandle,
    .put_handle = umfPutIPCHandle,
    .open_handle = umfOpenIPCHandle,
    .close_handle = umfCloseIPCHandle,
    .os_ops = umfOsMemoryProviderOps,
    .proxy_ops = umfProxyPoolOps,
    .disjoint_ops = umfDisjointPoolOps,
    .jemalloc_ops = umfJemallocPoolOps,
};

/* Names in the library, and where they go. */
static const struct {
    const char *name;
    size_t at;
    const char *beside; /* the library in which it may be instead; NULL: it must be here */
} symbols[] = {
    {"umfMemoryProviderCreate", offsetof(struct umf_library, provider_create), NULL},
    {"umfMemoryProviderDestroy", offsetof(struct umf_library, provider_destroy), NULL},
    {"umfMemoryProviderAlloc", offsetof(struct umf_library, provider_alloc), NULL},
    {"umfMemoryProviderFree", offsetof(struct umf_library, provider_free), NULL},
    {"umfPoolCreate", offsetof(struct umf_library, pool_create), NULL},
    {"umfPoolDestroy", offsetof(struct umf_library, pool_destroy), NULL},
    {"umfPoolMalloc", offsetof(struct umf_library, pool_malloc), NULL},
    {"umfPoolFree", offsetof(struct umf_library, pool_free), NULL},
    {"umfGetIPCHandle", offsetof(struct umf_library, get_handle), NULL},
    {"umfPutIPCHandle", offsetof(struct umf_library, put_handle), NULL},
    {"umfOpenIPCHandle", offsetof(struct umf_library, open_handle), NULL},
    {"umfCloseIPCHandle", offsetof(struct umf_library, close_handle), NULL},
    {"umfOsMemoryProviderOps", offsetof(struct umf_library, os_ops), NULL},
    {"umfProxyPoolOps", offsetof(struct umf_library, proxy_ops), NULL},
    {"umfDisjointPoolOps", offsetof(struct umf_library, disjoint_ops), "libdisjoint_pool.so"},
    {"umfJemallocPoolOps", offsetof(struct umf_library, jemalloc_ops), "libjemalloc_pool.so"},
};

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* In the folder, or its lib. Its names are its own, and it looks for them in itself and what it needs before anywhere
 * else: ours are in this process, too. */
static void *open_library(const char *name)
{
    static const char *const parts[] = {"", "/lib"};
    char path[4096];

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        (void)snprintf(path, sizeof(path), "%s%s/%s", getenv("BENCH_UMF"), parts[i], name);
        if (!access(path, R_OK))
            return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    }
    return NULL;
}

/* The libraries beside it are linked with libumf.so.0, and get the one that is loaded. */
static void *find_beside(const char *name, const char *symbol)
{
    void *handle = open_library(name);

    return handle ? dlsym(handle, symbol) : NULL;
}

const char *umf_library_load(bool upstream, struct umf_library *library)
{
    const char *folder = getenv("BENCH_UMF");
    static char reason[256];
    void *handle;

    if (!upstream) {
        *library = ours;
        return NULL;
    }
    if (!folder || !*folder)
        return "BENCH_UMF names no build of upstream's library";
    (void)dlerror();
    handle = open_library("libumf.so.0");
    if (!handle)
        handle = open_library("libumf.so");
    if (!handle) {
        const char *error = dlerror();

        if (!error)
            return "the folder that BENCH_UMF names has no libumf.so.0 or libumf.so, nor its lib";
        (void)snprintf(reason, sizeof(reason), "%s", error);
        return reason;
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
        void *address = dlsym(handle, symbols[i].name);

        if (!address && symbols[i].beside)
            address = find_beside(symbols[i].beside, symbols[i].name);
        if (!address && !symbols[i].beside) {
            (void)snprintf(reason, sizeof(reason), "the library that BENCH_UMF names has no %s", symbols[i].name);
            return reason;
        }
        memcpy((char *)library + symbols[i].at, &address, sizeof(address));
    }
    return NULL;
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

struct answer {
    double us;
    pid_t other;
};

static void become_child(int line, void *upstream)
{
    bench_must(dup2(line, STDIN_FILENO) == STDIN_FILENO, "dup2");
    execl("/proc/self/exe", "bench", "--serve", upstream ? "upstream" : "ours", (char *)NULL);
    _exit(1);
}

void umf_child_start(struct umf_child *child, bool upstream)
{
    struct peer peer;

    peer_start(&peer, become_child, upstream ? child : NULL);
    *child = (struct umf_child){.pids = {peer.pid}, .line = peer.line};
}

/* Not as it ends: upstream's leaves things behind, and some of its builds say so. */
void umf_child_end(struct umf_child *child)
{
    peer_kill(&(struct peer){.pid = child->pids[0], .line = child->line});
}

double umf_child_tell(struct umf_child *child, struct umf_order order)
{
    struct answer answer;

    if (send(child->line, &order, sizeof(order), MSG_NOSIGNAL) != sizeof(order) ||
        recv(child->line, &answer, sizeof(answer), 0) != sizeof(answer))
        return -1;
    child->pids[1] = answer.other;
    return answer.us;
}

int umf_child_serve(double (*serve)(const struct umf_order *order), pid_t other_pid)
{
    struct umf_order order;

    while (recv(STDIN_FILENO, &order, sizeof(order), 0) == sizeof(order)) {
        struct answer answer = {.us = serve(&order), .other = other_pid};

        bench_must(send(STDIN_FILENO, &answer, sizeof(answer), 0) == sizeof(answer), "answering");
    }
    return 0;
}
