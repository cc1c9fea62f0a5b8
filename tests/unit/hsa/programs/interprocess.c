/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes that share memory, forked before either initialises: by a shareable handle that is sent over a socket,
 * and by an IPC handle, with an IPC signal to take turns on.
 */
#include "program.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { GRANULES = 20, MAPPED = 10 };

static void send_fd(int socket, int fd)
{
    char byte = 'f', control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(int));
    NEED_TRUE(sendmsg(socket, &message, 0) == 1);
}

static int receive_fd(int socket)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    int fd;

    NEED_TRUE(recvmsg(socket, &message, 0) == 1);
    NEED_TRUE(CMSG_FIRSTHDR(&message));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return fd;
}

static void tell(int socket, const void *bytes, size_t size)
{
    NEED_TRUE(send(socket, bytes, size, 0) == (ssize_t)size);
}

static void hear(int socket, void *bytes, size_t size)
{
    NEED_TRUE(recv(socket, bytes, size, MSG_WAITALL) == (ssize_t)size);
}

/* ---- shareable handles ------------------------------------------------------------------------------------------- */

/* The child maps only the first half of what it was given. */
static void import_half(int socket)
{
    hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RW, {0}};
    hsa_amd_vmem_alloc_handle_t handle;
    size_t size;
    uint32_t *address;
    int fd = receive_fd(socket);

    begin();
    desc.agent_handle = agents[1];
    size = MAPPED * granule(pools[0][0]);
    NEED(hsa_amd_vmem_import_shareable_handle(fd, &handle));
    NEED_TRUE(close(fd) == 0);
    NEED(hsa_amd_vmem_address_reserve((void **)&address, size, 0, 0));
    NEED(hsa_amd_vmem_map(address, size, 0, handle, 0));
    NEED(hsa_amd_vmem_set_access(address, size, &desc, 1));
    for (size_t i = 0; i < size / sizeof(*address); i += 512) {
        NEED_TRUE(address[i] == (uint32_t)i);
        address[i] = (uint32_t)i + 1;
    }
    tell(socket, "d", 1);
    NEED(hsa_amd_vmem_unmap(address, size));
    NEED(hsa_amd_vmem_handle_release(handle));
    NEED(hsa_amd_vmem_address_free(address, size));
    end();
}

static void export_whole(int socket)
{
    hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RW, {0}};
    hsa_amd_vmem_alloc_handle_t handle;
    uint32_t *address;
    size_t size;
    char done;
    int fd;

    begin();
    desc.agent_handle = agents[0];
    size = GRANULES * granule(pools[0][0]);
    NEED(hsa_amd_vmem_handle_create(pools[0][0], size, MEMORY_TYPE_PINNED, 0, &handle));
    NEED(hsa_amd_vmem_address_reserve((void **)&address, size, 0, 0));
    NEED(hsa_amd_vmem_map(address, size, 0, handle, 0));
    NEED(hsa_amd_vmem_set_access(address, size, &desc, 1));
    for (size_t i = 0; i < size / sizeof(*address); i += 512)
        address[i] = (uint32_t)i;
    NEED(hsa_amd_vmem_export_shareable_handle(&fd, handle, 0));
    send_fd(socket, fd);
    NEED_TRUE(close(fd) == 0);
    hear(socket, &done, 1);
    for (size_t i = 0; i < size / sizeof(*address); i += 512)
        NEED_TRUE(address[i] == (uint32_t)i + (i < size / sizeof(*address) * MAPPED / GRANULES));
    NEED(hsa_amd_vmem_unmap(address, size));
    NEED(hsa_amd_vmem_handle_release(handle));
    NEED(hsa_amd_vmem_address_free(address, size));
    end();
}

/* ---- IPC handles ------------------------------------------------------------------------------------------------- */

struct offer {
    hsa_amd_ipc_memory_t memory;
    hsa_amd_ipc_signal_t turn;
    size_t size;
};

/* A cache of what is attached, by the handle's bytes, as communication libraries have it. */
static struct {
    hsa_amd_ipc_memory_t handle;
    void *address;
} cache[8];
static unsigned n_cached;

static void *attached(const struct offer *offer)
{
    for (unsigned i = 0; i < n_cached; i++)
        if (memcmp(&cache[i].handle, &offer->memory, sizeof(offer->memory)) == 0)
            return cache[i].address;
    cache[n_cached].handle = offer->memory;
    NEED(hsa_amd_ipc_memory_attach(&offer->memory, offer->size, 0, NULL, &cache[n_cached].address));
    return cache[n_cached++].address;
}

static void attach(int socket)
{
    hsa_amd_pointer_info_t info = {.size = sizeof(info)};
    struct offer offer, first;
    hsa_signal_t turn;
    void *address;

    begin();
    hear(socket, &offer, sizeof(offer));
    first = offer;
    NEED(hsa_amd_ipc_signal_attach(&offer.turn, &turn));
    for (unsigned i = 0; i < 10; i++) {
        uint32_t *words = attached(&offer);

        NEED(hsa_amd_pointer_info(words, &info, NULL, NULL, NULL));
        NEED_TRUE(info.type == HSA_EXT_POINTER_TYPE_IPC && info.sizeInBytes == offer.size);
        NEED_TRUE(words[0] == i);
        words[offer.size / 4 - 1] = ~i;
        hsa_signal_store_screlease(turn, (int64_t)(2 * i + 2));
        NEED_TRUE(hsa_signal_wait_scacquire(turn, HSA_SIGNAL_CONDITION_GTE, (int64_t)(2 * i + 3), UINT64_MAX,
                                            HSA_WAIT_STATE_BLOCKED) == (int64_t)(2 * i + 3));
        hear(socket, &offer, sizeof(offer));
    }
    NEED_TRUE(n_cached == 1);
    NEED(hsa_amd_ipc_memory_detach(cache[0].address));
    NEED_STATUS(hsa_amd_ipc_memory_detach(cache[0].address), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    /* the last offer is of other memory, and what was offered first is gone */
    NEED_TRUE(memcmp(&offer.memory, &first.memory, sizeof(offer.memory)) != 0);
    NEED_STATUS(hsa_amd_ipc_memory_attach(&first.memory, first.size, 0, NULL, &address),
                HSA_STATUS_ERROR_INVALID_ARGUMENT);
    memset(&first.memory, 0x5A, sizeof(first.memory));
    NEED_STATUS(hsa_amd_ipc_memory_attach(&first.memory, first.size, 0, NULL, &address),
                HSA_STATUS_ERROR_INVALID_ARGUMENT);
    NEED(hsa_signal_destroy(turn));
    tell(socket, "d", 1);
    end();
}

static void offer_memory(int socket)
{
    struct offer offer = {.size = 4 * MIB};
    uint32_t *words, *others;
    hsa_signal_t turn;
    char done;

    begin();
    NEED(hsa_amd_memory_pool_allocate(pools[1][0], offer.size, 0, (void **)&words));
    NEED(hsa_amd_agents_allow_access(n_agents, agents, NULL, words));
    NEED(hsa_amd_signal_create(0, 0, NULL, HSA_AMD_SIGNAL_IPC, &turn));
    NEED(hsa_amd_ipc_signal_create(turn, &offer.turn));
    for (unsigned i = 0; i < 10; i++) {
        words[0] = i;
        NEED(hsa_amd_ipc_memory_create(words, offer.size, &offer.memory));
        tell(socket, &offer, sizeof(offer));
        NEED_TRUE(hsa_signal_wait_scacquire(turn, HSA_SIGNAL_CONDITION_GTE, (int64_t)(2 * i + 2), UINT64_MAX,
                                            HSA_WAIT_STATE_BLOCKED) == (int64_t)(2 * i + 2));
        NEED_TRUE(words[offer.size / 4 - 1] == ~i);
        if (i == 9) {
            NEED(hsa_amd_memory_pool_free(words));
            NEED(hsa_amd_memory_pool_allocate(pools[1][0], offer.size, 0, (void **)&others));
            NEED(hsa_amd_ipc_memory_create(others, offer.size, &offer.memory));
            tell(socket, &offer, sizeof(offer));
        }
        hsa_signal_store_screlease(turn, (int64_t)(2 * i + 3));
    }
    hear(socket, &done, 1);
    NEED(hsa_signal_destroy(turn));
    NEED(hsa_amd_memory_pool_free(others));
    end();
}

static void in_two_processes(void (*parent)(int), void (*child)(int))
{
    int ends[2], status;
    pid_t pid;

    NEED_TRUE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid = fork();
    NEED_TRUE(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        child(ends[1]);
        exit(0);
    }
    close(ends[1]);
    parent(ends[0]);
    NEED_TRUE(waitpid(pid, &status, 0) == pid);
    if (status)
        give_up("the child ended with status 0x%x", (unsigned)status);
    close(ends[0]);
    n_agents = 0;
    memset(n_pools, 0, sizeof(n_pools));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    in_two_processes(export_whole, import_half);
    in_two_processes(offer_memory, attach);
    /* and the other way round: it is the child that has the memory */
    in_two_processes(import_half, export_whole);
    return 0;
}
