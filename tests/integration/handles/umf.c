/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UMF: a pool, whose memory is a part of a slab, and a provider. Their own handles say which part is meant; of others'
 * tokens such handles are made.
 */
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/pools/pool_disjoint.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>

#include <string.h>

#include "tests/integration/handles/facade.h"

static umf_memory_provider_handle_t provider;

static void make_provider(void)
{
    umf_memoryd_memory_provider_params_t params = umfMemorydMemoryProviderParamsDefault();

    CHECK(!umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), &params, &provider));
}

static struct memclient_buffer *get_buffer(const struct memory *memory)
{
    struct memclient_buffer *buf;

    CHECK(!umfMemorydGetBuffer(memory->at, &buf));
    return buf;
}

/* ---- a pool ------------------------------------------------------------------------------------------------------ */

static umf_memory_pool_handle_t make_pool(void)
{
    umf_disjoint_pool_params_t params = umfDisjointPoolParamsDefault();
    umf_memory_pool_handle_t pool;

    params.SlabMinSize = 8 * MEMORY_SIZE;
    params.MaxPoolableSize = 2 * MEMORY_SIZE;
    params.Capacity = 1;
    make_provider();
    CHECK(!umfPoolCreate(umfDisjointPoolOps(), provider, &params, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool));
    return pool;
}

/* The second of its slab, so that it does not begin there. */
static void make_in_pool(struct memory *memory)
{
    umf_memory_pool_handle_t pool = make_pool();

    CHECK(umfPoolMalloc(pool, MEMORY_SIZE));
    memory->at = umfPoolMalloc(pool, MEMORY_SIZE);
    CHECK(memory->at);
    memory->object = pool;
}

static void give_pool_back(struct memory *memory)
{
    CHECK(!umfFree(memory->at));
    umfPoolDestroy(memory->object);
}

static void open_in_pool(const struct memclient_token *token, uint64_t offset, struct memory *memory)
{
    umf_memory_pool_handle_t pool = make_pool();
    umf_ipc_handle_t handle;
    size_t size;
    void *ptr;

    CHECK(!umfMemorydPoolHandle(token, offset, MEMORY_SIZE, &handle, &size));
    CHECK(!umfOpenIPCHandle(pool, handle, &ptr));
    CHECK(!umfPutIPCHandle(handle));
    memory->at = ptr;
    memory->object = pool;
}

static void open_pool_token(const struct handed *handed, struct memory *memory)
{
    open_in_pool(&handed->token, handed->offset, memory);
}

static void open_pool_fd(const struct handed *handed, struct memory *memory)
{
    struct memclient_token token;
    struct memclient_buffer *buf;

    token_of_fd(handed, &token, &buf);
    open_in_pool(&token, handed->offset, memory);
    memclient_buffer_unref(buf);
}

static void close_in_pool(struct memory *memory)
{
    CHECK(!umfCloseIPCHandle(memory->at));
    umfPoolDestroy(memory->object);
}

const struct facade umf_pool_facade = {
    .name = "UMF pool",
    .make = make_in_pool,
    .get_buffer = get_buffer,
    .give_back = give_pool_back,
    .open_token = open_pool_token,
    .open_fd = open_pool_fd,
    .close_token = close_in_pool,
    .close_fd = close_in_pool,
};

/* ---- a provider -------------------------------------------------------------------------------------------------- */

static void make_of_provider(struct memory *memory)
{
    void *ptr;

    make_provider();
    CHECK(!umfMemoryProviderAlloc(provider, MEMORY_SIZE, 0, &ptr));
    memory->at = ptr;
}

static void give_provider_back(struct memory *memory)
{
    CHECK(!umfMemoryProviderFree(provider, memory->at, MEMORY_SIZE));
    umfMemoryProviderDestroy(provider);
}

static void open_of_provider(const struct memclient_token *token, uint64_t offset, struct memory *memory)
{
    char handle[256];
    size_t size;
    void *ptr;

    make_provider();
    CHECK(!umfMemoryProviderGetIPCHandleSize(provider, &size) && size <= sizeof(handle));
    CHECK(!umfMemorydProviderHandle(token, offset, MEMORY_SIZE, handle));
    CHECK(!umfMemoryProviderOpenIPCHandle(provider, handle, &ptr));
    memory->at = ptr;
}

static void open_provider_token(const struct handed *handed, struct memory *memory)
{
    open_of_provider(&handed->token, handed->offset, memory);
}

static void open_provider_fd(const struct handed *handed, struct memory *memory)
{
    struct memclient_token token;
    struct memclient_buffer *buf;

    token_of_fd(handed, &token, &buf);
    open_of_provider(&token, handed->offset, memory);
    memclient_buffer_unref(buf);
}

static void close_of_provider(struct memory *memory)
{
    CHECK(!umfMemoryProviderCloseIPCHandle(provider, memory->at, MEMORY_SIZE));
    umfMemoryProviderDestroy(provider);
}

const struct facade umf_provider_facade = {
    .name = "UMF provider",
    .make = make_of_provider,
    .get_buffer = get_buffer,
    .give_back = give_provider_back,
    .open_token = open_provider_token,
    .open_fd = open_provider_fd,
    .close_token = close_of_provider,
    .close_fd = close_of_provider,
};
