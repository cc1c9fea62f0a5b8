/* SPDX-License-Identifier: Apache-2.0 */
/* HSA: virtual memory, whose shareable handles are descriptors, and regions, whose IPC handles are tokens. */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>
#include <memclient/hsa/hsa/hsa_ext_memoryd.h>

#include <string.h>

#include "tests/integration/handles/facade.h"

static hsa_status_t take_agent(hsa_agent_t agent, void *data)
{
    *(hsa_agent_t *)data = agent;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void *data)
{
    *(hsa_amd_memory_pool_t *)data = pool;
    return HSA_STATUS_INFO_BREAK;
}

static hsa_agent_t begin(void)
{
    hsa_agent_t agent = {0};

    CHECK(!hsa_init());
    CHECK(hsa_iterate_agents(take_agent, &agent) == HSA_STATUS_INFO_BREAK);
    return agent;
}

static hsa_amd_memory_pool_t pool_of(hsa_agent_t agent)
{
    hsa_amd_memory_pool_t pool = {0};

    CHECK(hsa_amd_agent_iterate_memory_pools(agent, take_pool, &pool) == HSA_STATUS_INFO_BREAK);
    return pool;
}

static struct memclient_buffer *get_buffer(const struct memory *memory)
{
    struct memclient_buffer *buf;

    CHECK(!memclient_hsa_buffer(memory->at, &buf));
    return buf;
}

static void end(void)
{
    CHECK(!hsa_shut_down());
}

/* ---- virtual memory ---------------------------------------------------------------------------------------------- */

/* Takes over the handle: what is mapped keeps it. */
static void map_vmem(struct memory *memory, hsa_agent_t agent, hsa_amd_vmem_alloc_handle_t handle, size_t size,
                     uint64_t wish, uint64_t offset)
{
    const hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, agent};
    void *va;

    CHECK(!hsa_amd_vmem_address_reserve(&va, size, wish, 0));
    CHECK(!hsa_amd_vmem_map(va, size, 0, handle, 0));
    CHECK(!hsa_amd_vmem_set_access(va, size, &rw, 1));
    CHECK(!hsa_amd_vmem_handle_release(handle));
    memory->at = (char *)va + offset;
    memory->object = va;
    memory->number = size;
}

static void make_vmem(struct memory *memory)
{
    hsa_agent_t agent = begin();
    hsa_amd_vmem_alloc_handle_t handle;

    CHECK(!hsa_amd_vmem_handle_create(pool_of(agent), MEMORY_SIZE, MEMORY_TYPE_PINNED, 0, &handle));
    map_vmem(memory, agent, handle, MEMORY_SIZE, 0, 0);
}

static void get_vmem_fd(const struct memory *memory, struct handed *handed)
{
    hsa_amd_vmem_alloc_handle_t handle;

    CHECK(!hsa_amd_vmem_retain_alloc_handle(&handle, memory->at));
    CHECK(!hsa_amd_vmem_export_shareable_handle(&handed->fd, handle, 0));
    CHECK(!hsa_amd_vmem_handle_release(handle));
}

static void open_vmem(const struct handed *handed, struct memory *memory)
{
    hsa_agent_t agent = begin();
    hsa_amd_vmem_alloc_handle_t handle;

    CHECK(!hsa_amd_vmem_import_shareable_handle(handed->fd, &handle));
    map_vmem(memory, agent, handle, handed->buffer_bytes, handed->address - handed->offset, handed->offset);
}

static void give_vmem_back(struct memory *memory)
{
    CHECK(!hsa_amd_vmem_unmap(memory->object, memory->number));
    CHECK(!hsa_amd_vmem_address_free(memory->object, memory->number));
    end();
}

const struct facade hsa_vmem_facade = {
    .name = "HSA vmem",
    .make = make_vmem,
    .get_fd = get_vmem_fd,
    .get_buffer = get_buffer,
    .give_back = give_vmem_back,
    .open_fd = open_vmem,
    .close_fd = give_vmem_back,
};

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static void make_region(struct memory *memory)
{
    void *ptr;

    CHECK(!hsa_memory_allocate((hsa_region_t){pool_of(begin()).handle}, MEMORY_SIZE, &ptr));
    memory->at = ptr;
}

static void get_region_token(const struct memory *memory, struct handed *handed)
{
    hsa_amd_ipc_memory_t handle;

    CHECK(!hsa_amd_ipc_memory_create(memory->at, MEMORY_SIZE, &handle));
    memcpy(&handed->token, &handle, sizeof(handed->token));
}

static void get_region_fd(const struct memory *memory, struct handed *handed)
{
    uint64_t offset;

    CHECK(!hsa_amd_portable_export_dmabuf(memory->at, MEMORY_SIZE, &handed->fd, &offset));
    CHECK(offset == handed->offset);
}

static void give_region_back(struct memory *memory)
{
    CHECK(!hsa_memory_free(memory->at));
    end();
}

static void attach_token(const struct handed *handed, struct memory *memory)
{
    hsa_agent_t agent = begin();
    hsa_amd_ipc_memory_t handle;

    memcpy(&handle, &handed->token, sizeof(handle));
    CHECK(!hsa_amd_ipc_memory_attach(&handle, handed->buffer_bytes, 1, &agent, &memory->object));
    memory->at = (char *)memory->object + handed->offset;
}

static void detach_token(struct memory *memory)
{
    CHECK(!hsa_amd_ipc_memory_detach(memory->object));
    end();
}

static void interop_fd(const struct handed *handed, struct memory *memory)
{
    hsa_agent_t agent = begin();
    size_t size;

    CHECK(!hsa_amd_interop_map_buffer(1, &agent, handed->fd, 0, &size, &memory->object, NULL, NULL));
    CHECK(size == handed->buffer_bytes);
    memory->at = (char *)memory->object + handed->offset;
}

static void interop_end(struct memory *memory)
{
    CHECK(!hsa_amd_interop_unmap_buffer(memory->object));
    end();
}

const struct facade hsa_region_facade = {
    .name = "HSA region",
    .make = make_region,
    .get_token = get_region_token,
    .get_fd = get_region_fd,
    .get_buffer = get_buffer,
    .give_back = give_region_back,
    .open_token = attach_token,
    .open_fd = interop_fd,
    .close_token = detach_token,
    .close_fd = interop_end,
};
