/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer and a consumer that have only a socket between them, and send handles as bytes: over a Unix socket and
 * over TCP, from every pool over either kind of shared memory, and from providers alone. The consumer answers in the
 * producer's memory. Both are forked before either has used UMF.
 */
#include "program.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { OBJECTS = 40, TEXT = 1024 };

static unsigned provider_kind, pool_kind; /* of this pair */

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

static void tell(int channel, const void *bytes, size_t size)
{
    NEED_TRUE(send(channel, bytes, size, 0) == (ssize_t)size);
}

static void hear(int channel, void *bytes, size_t size)
{
    NEED_TRUE(recv(channel, bytes, size, MSG_WAITALL) == (ssize_t)size);
}

/* The size first, which the other side confirms; then the handle, which arrives in one piece. */
static void send_handle(int channel, const void *handle, size_t size)
{
    size_t confirmed;

    tell(channel, &size, sizeof(size));
    hear(channel, &confirmed, sizeof(confirmed));
    NEED_TRUE(confirmed == size);
    tell(channel, handle, size);
}

static void *receive_handle(int channel, size_t *size)
{
    void *handle;

    hear(channel, size, sizeof(*size));
    NEED_TRUE(*size > 0 && *size <= TEXT);
    tell(channel, size, sizeof(*size));
    handle = calloc(1, *size);
    NEED_TRUE(handle);
    NEED_TRUE(recv(channel, handle, *size, 0) == (ssize_t)*size);
    return handle;
}

static void unix_pair(int ends[2])
{
    NEED_TRUE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
}

static void tcp_pair(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    NEED_TRUE(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    NEED_TRUE(listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    NEED_TRUE(ends[0] >= 0 && connect(ends[0], (struct sockaddr *)&address, sizeof(address)) == 0);
    ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    NEED_TRUE(ends[1] >= 0);
    close(listener);
    /* each word is waited for */
    for (int i = 0; i < 2; i++)
        NEED_TRUE(setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0);
}

static pid_t fork_with(int mine, int other, void (*body)(int))
{
    pid_t pid = fork();

    NEED_TRUE(pid >= 0);
    if (pid)
        return pid;
    close(other);
    body(mine);
    exit(0);
}

static void in_two_processes(void (*pair)(int[2]), void (*producer)(int), void (*consumer)(int))
{
    int ends[2], status;
    pid_t pids[2];

    pair(ends);
    pids[0] = fork_with(ends[0], ends[1], producer);
    pids[1] = fork_with(ends[1], ends[0], consumer);
    close(ends[0]);
    close(ends[1]);
    for (int i = 0; i < 2; i++) {
        NEED_TRUE(waitpid(pids[i], &status, 0) == pids[i]);
        if (status)
            give_up("the %s ended with status 0x%x: provider %u, pool %u", i ? "consumer" : "producer",
                    (unsigned)status, provider_kind, pool_kind);
    }
}

/* ---- one number -------------------------------------------------------------------------------------------------- */

/* One, two and three pages; a number in the last is halved by the consumer. */
static void produce_number(int channel)
{
    umf_memory_provider_handle_t provider = make_provider(provider_kind);
    umf_memory_pool_handle_t pool = make_pool_with(pool_kind, provider, UMF_POOL_CREATE_FLAG_NONE);
    unsigned long long number = (unsigned long long)(uintptr_t)&provider, *shared;
    umf_ipc_handle_t handle = NULL;
    size_t size = 0, page = 0;
    char answer[TEXT] = "";
    void *others[2];

    NEED(umfMemoryProviderGetMinPageSize(provider, NULL, &page));
    others[0] = umfPoolMalloc(pool, page);
    others[1] = umfPoolMalloc(pool, 2 * page);
    shared = umfPoolMalloc(pool, 3 * page);
    NEED_TRUE(others[0] && others[1] && shared);
    NEED(umfGetIPCHandle(shared, &handle, &size));
    *shared = number;
    send_handle(channel, handle, size);
    NEED_TRUE(recv(channel, answer, sizeof(answer) - 1, 0) > 0);
    NEED_TRUE(strcmp(answer, "halved") == 0);
    NEED_TRUE(*shared == number / 2);
    NEED(umfPutIPCHandle(handle));
    NEED(umfPoolFree(pool, shared));
    NEED(umfPoolFree(pool, others[1]));
    NEED(umfFree(others[0]));
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

static void consume_number(int channel)
{
    umf_memory_provider_handle_t provider = make_provider(provider_kind);
    umf_memory_pool_handle_t pool = make_pool_with(pool_kind, provider, UMF_POOL_CREATE_FLAG_NONE);
    unsigned long long *shared;
    size_t size, own = 0;
    umf_ipc_handle_t handle = receive_handle(channel, &size);
    void *opened = NULL;

    NEED(umfPoolGetIPCHandleSize(pool, &own));
    NEED_TRUE(own == size);
    NEED(umfOpenIPCHandle(pool, handle, &opened));
    NEED_TRUE(umfPoolByPtr(opened) == pool);
    shared = opened;
    *shared /= 2;
    tell(channel, "halved", sizeof("halved"));
    NEED(umfCloseIPCHandle(opened));
    NEED_RESULT(umfCloseIPCHandle(opened), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    free(handle);
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

/* ---- many objects ------------------------------------------------------------------------------------------------ */

/* Sizes from a word to some pages. */
static size_t object_size(unsigned i)
{
    return 16 + (size_t)i * i * 7;
}

static void produce_many(int channel)
{
    umf_memory_pool_handle_t pool = make_pool(pool_kind, provider_kind);
    uint32_t *objects[OBJECTS];
    umf_ipc_handle_t handles[OBJECTS];
    size_t sizes[OBJECTS];
    char done;

    for (unsigned i = 0; i < OBJECTS; i++) {
        objects[i] = umfPoolMalloc(pool, object_size(i));
        NEED_TRUE(objects[i]);
        objects[i][0] = i;
        objects[i][1] = ~i;
        NEED(umfGetIPCHandle(objects[i], &handles[i], &sizes[i]));
        NEED_TRUE(sizes[i] == sizes[0]);
        send_handle(channel, handles[i], sizes[i]);
        /* what was sent is opened by its bytes: it needs no handle here */
        if (i % 2)
            NEED(umfPutIPCHandle(handles[i]));
    }
    hear(channel, &done, 1);
    for (unsigned i = 0; i < OBJECTS; i++) {
        NEED_TRUE(objects[i][0] == i * 3 + 1 && objects[i][1] == ~i);
        /* some handles are put before, and some after the object is freed */
        if (i % 4 == 0)
            NEED(umfPutIPCHandle(handles[i]));
        NEED(umfPoolFree(pool, objects[i]));
        if (i % 4 == 2)
            NEED(umfPutIPCHandle(handles[i]));
    }
    tell(channel, "f", 1);
    hear(channel, &done, 1);
    umfPoolDestroy(pool);
}

/* Opens all, twice, into two pools, and closes in another order; what is open stays when the producer frees it. */
static void consume_many(int channel)
{
    umf_memory_pool_handle_t pools[2] = {make_pool(pool_kind, provider_kind), make_pool(PROXY_POOL, provider_kind)};
    uint32_t *opened[2 * OBJECTS], sum = 0;
    char freed;

    for (unsigned i = 0; i < OBJECTS; i++) {
        size_t size;
        umf_ipc_handle_t handle = receive_handle(channel, &size);

        for (unsigned k = 0; k < 2; k++) {
            void *ptr = NULL;

            NEED(umfOpenIPCHandle(pools[k], handle, &ptr));
            opened[2 * i + k] = ptr;
            /* where both got one address, either is right */
            NEED_TRUE(umfPoolByPtr(ptr) == pools[0] || umfPoolByPtr(ptr) == pools[1]);
            NEED_TRUE(opened[2 * i + k][0] == i && opened[2 * i + k][1] == ~i);
        }
        free(handle);
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        opened[2 * i][0] = i * 3 + 1;
        NEED_TRUE(opened[2 * i + 1][0] == i * 3 + 1);
    }
    tell(channel, "d", 1);
    hear(channel, &freed, 1);
    for (unsigned n = 0; n < 2 * OBJECTS; n++) {
        unsigned i = n * 37 % (2 * OBJECTS);

        /* the pool that freed it may have written there, but it is there */
        sum += *(volatile uint32_t *)opened[i];
        NEED(umfCloseIPCHandle(opened[i]));
    }
    tell(channel, &sum, 1);
    umfPoolDestroy(pools[0]);
    umfPoolDestroy(pools[1]);
}

/* ---- providers alone --------------------------------------------------------------------------------------------- */

static void produce_without_pool(int channel)
{
    umf_memory_provider_handle_t provider = make_provider(provider_kind);
    size_t size = 0, page = 0;
    uint64_t *shared;
    void *handle, *ptr = NULL;
    char done;

    NEED(umfMemoryProviderGetIPCHandleSize(provider, &size));
    NEED(umfMemoryProviderGetMinPageSize(provider, NULL, &page));
    NEED(umfMemoryProviderAlloc(provider, 3 * page, 0, &ptr));
    handle = malloc(size);
    NEED_TRUE(handle);
    NEED(umfMemoryProviderGetIPCHandle(provider, ptr, 3 * page, handle));
    shared = ptr;
    shared[0] = 4711;
    send_handle(channel, handle, size);
    hear(channel, &done, 1);
    NEED_TRUE(shared[0] == 4712);
    NEED(umfMemoryProviderPutIPCHandle(provider, handle));
    NEED(umfMemoryProviderFree(provider, ptr, 3 * page));
    free(handle);
    umfMemoryProviderDestroy(provider);
}

/* It does not know how large that is, and says so when it closes. */
static void consume_without_pool(int channel)
{
    umf_memory_provider_handle_t provider = make_provider(provider_kind);
    size_t size, own = 0;
    void *handle = receive_handle(channel, &size), *first = NULL, *second = NULL;

    NEED(umfMemoryProviderGetIPCHandleSize(provider, &own));
    NEED_TRUE(own == size);
    NEED(umfMemoryProviderOpenIPCHandle(provider, handle, &first));
    NEED(umfMemoryProviderOpenIPCHandle(provider, handle, &second));
    NEED(umfMemoryProviderCloseIPCHandle(provider, first, sizeof(uint64_t)));
    ++*(uint64_t *)second;
    tell(channel, "d", 1);
    NEED(umfMemoryProviderCloseIPCHandle(provider, second, sizeof(uint64_t)));
    free(handle);
    umfMemoryProviderDestroy(provider);
}

/* ---- what must fail ---------------------------------------------------------------------------------------------- */

static void produce_for_others(int channel)
{
    umf_memory_pool_handle_t pool = make_pool(pool_kind, provider_kind);
    umf_memory_pool_handle_t own = make_pool(pool_kind, PRIVATE_PROVIDER);
    umf_ipc_handle_t handle = NULL;
    void *object = umfPoolMalloc(pool, 100), *ours = umfPoolMalloc(own, 100);
    size_t size = 0;
    char done;

    NEED_TRUE(object && ours);
    NEED_RESULT(umfGetIPCHandle(&size, &handle, &size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    NEED_TRUE(umfGetIPCHandle(ours, &handle, &size) != UMF_RESULT_SUCCESS);
    NEED(umfGetIPCHandle(object, &handle, &size));
    send_handle(channel, handle, size);
    hear(channel, &done, 1);
    NEED(umfPutIPCHandle(handle));
    NEED(umfFree(object));
    NEED(umfFree(ours));
    umfPoolDestroy(own);
    umfPoolDestroy(pool);
}

/* A pool over private memory, and damaged bytes. */
static void consume_wrongly(int channel)
{
    umf_memory_pool_handle_t pool = make_pool(pool_kind, provider_kind);
    umf_memory_pool_handle_t wrong = make_pool(pool_kind, PRIVATE_PROVIDER);
    size_t size;
    unsigned char *bytes = receive_handle(channel, &size);
    void *ptr = NULL;

    NEED_TRUE(umfOpenIPCHandle(wrong, (umf_ipc_handle_t)(void *)bytes, &ptr) != UMF_RESULT_SUCCESS);
    NEED_TRUE(!ptr);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 0x10;
        NEED_RESULT(umfOpenIPCHandle(pool, (umf_ipc_handle_t)(void *)bytes, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
        NEED_TRUE(!ptr);
        bytes[i] ^= 0x10;
    }
    NEED(umfOpenIPCHandle(pool, (umf_ipc_handle_t)(void *)bytes, &ptr));
    NEED(umfCloseIPCHandle(ptr));
    NEED_RESULT(umfCloseIPCHandle(&size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    tell(channel, "d", 1);
    free(bytes);
    umfPoolDestroy(wrong);
    umfPoolDestroy(pool);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    for (provider_kind = SHARED_PROVIDER; provider_kind < PROVIDERS; provider_kind++) {
        in_two_processes(unix_pair, produce_without_pool, consume_without_pool);
        in_two_processes(tcp_pair, produce_without_pool, consume_without_pool);
        for (pool_kind = 0; pool_kind < POOLS; pool_kind++) {
            in_two_processes(unix_pair, produce_number, consume_number);
            in_two_processes(tcp_pair, produce_number, consume_number);
            in_two_processes(unix_pair, produce_many, consume_many);
            in_two_processes(tcp_pair, produce_many, consume_many);
            in_two_processes(unix_pair, produce_for_others, consume_wrongly);
        }
    }
    return 0;
}
