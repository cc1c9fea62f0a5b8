/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Level Zero's memory for other processes.
 *
 * Level Zero's handle has 64 bytes. On Linux it begins with a descriptor of the process that asked for it, so its bytes
 * mean nothing to another process. The broker passes the descriptor on: it is adopted as a foreign buffer, and our
 * handle has a token of that buffer and Level Zero's other bytes. The process that opens our handle gets the descriptor
 * from the broker, writes its number into Level Zero's handle, and passes that to the driver.
 *
 * An allocation has one handle, however often it is asked for. The last put takes it back, and so does freeing the
 * memory. The process that made the handle holds the buffer, and so does each that has it open. Others can open it
 * until all have let go.
 *
 * The broker is called without the lock. Such a call may take as long as its deadline, and threads that free other
 * memory must not wait for it.
 */
#include "umf/level_zero.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/memclient.h>

#include "base/cleanup.h"
#include "base/interval.h"
#include "base/list.h"
#include "umf/check.h"
#include "umf/mutex.h"

#define MAGIC UINT32_C(0x31303d4c) /* "L=01" */

struct l0_handle {
    struct check check;
    struct memclient_token token;
    uint64_t maker;
    uint64_t address;            /* in the process that made it */
    struct l0_ipc_handle driver; /* with zeros for the descriptor */
};

struct l0_given {
    struct interval at;
    unsigned gets; /* gets minus puts; 0: it is being made */
    struct l0_ipc_handle driver;
    struct memclient_buffer *buffer;
    struct l0_handle handle;
};

/* A driver may return one address for two openings, and counts them. So there is a record for each. */
struct l0_opened {
    struct interval at;
    struct memclient_buffer *buffer;
};

DEFINE_CLEANUP(struct memclient_buffer *, memclient_buffer_unref);

static bool l0_read_handle(struct l0_handle *handle, const void *data)
{
    return check_read(handle, sizeof(*handle), MAGIC, data);
}

static int descriptor_of(const struct l0_ipc_handle *driver)
{
    int fd;

    memcpy(&fd, driver->data, sizeof(fd));
    return fd;
}

static void set_descriptor(struct l0_ipc_handle *driver, int fd)
{
    memcpy(driver->data, &fd, sizeof(fd));
}

/* ---- giving one -------------------------------------------------------------------------------------------------- */

static struct l0_given *find_given(struct level_zero *provider, uint64_t address)
{
    struct interval *at = interval_at(&provider->given, address);

    return at ? container_of(at, struct l0_given, at) : NULL;
}

/* With the lock, which is dropped while another thread makes the handle. Returns NULL if there is none then. */
static struct l0_given *wait_given(struct level_zero *provider, uint64_t address)
{
    struct l0_given *given;

    while ((given = find_given(provider, address)) && !given->gets)
        pthread_cond_wait(&provider->made, &provider->lock);
    return given;
}

/* Drivers before Level Zero 1.6 take nothing back. It never runs while another thread gets a handle of this address. */
static void put_driver(const struct level_zero *provider, const struct l0_given *given)
{
    if (provider->call.put_ipc)
        (void)provider->call.put_ipc(provider->context, given->driver);
}

/* With the lock. From now on nobody finds it. */
static void take_out_given(struct level_zero *provider, struct l0_given *given)
{
    interval_remove(&provider->given, &given->at);
    put_driver(provider, given);
}

/* Without the lock. */
static void end_given(struct l0_given *given)
{
    if (!given)
        return;
    memclient_buffer_unref(given->buffer);
    free(given);
}

/* The range must begin where the allocation does, since the driver's handle is of all of it. */
static umf_result_t l0_check_range(const struct level_zero *provider, const void *ptr, size_t size)
{
    void *base = NULL;
    size_t length = 0;
    umf_result_t result =
        l0_result("zeMemGetAddressRange", provider->call.get_range(provider->context, ptr, &base, &length));

    if (result == UMF_RESULT_SUCCESS && (base != ptr || size > length))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    return result;
}

static int l0_carry(struct l0_given *given)
{
    int r = memclient_adopt_fd(NULL, descriptor_of(&given->driver), &given->buffer);

    return r ? r : memclient_share(given->buffer, NULL, &given->handle.token);
}

static umf_result_t l0_make_handle(const struct level_zero *provider, const void *ptr, size_t size,
                                   struct l0_given *given)
{
    umf_result_t result = l0_check_range(provider, ptr, size);

    if (result == UMF_RESULT_SUCCESS)
        result = l0_result("zeMemGetIpcHandle", provider->call.get_ipc(provider->context, ptr, &given->driver));
    if (result != UMF_RESULT_SUCCESS)
        return result;
    result = l0_broker_result(l0_carry(given));
    if (result != UMF_RESULT_SUCCESS) {
        memclient_buffer_unref(given->buffer);
        put_driver(provider, given);
        return result;
    }
    given->handle.maker = provider->maker;
    given->handle.address = given->at.start;
    given->handle.driver = given->driver;
    set_descriptor(&given->handle.driver, 0);
    check_seal(&given->handle, sizeof(given->handle), MAGIC);
    return UMF_RESULT_SUCCESS;
}

/* With the lock, which is dropped meanwhile. */
static umf_result_t l0_give(struct level_zero *provider, const void *ptr, size_t size, struct l0_given **ret)
{
    struct l0_given *given = calloc(1, sizeof(*given));
    umf_result_t result;

    if (!given)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    given->at.start = given->at.last = (uintptr_t)ptr;
    interval_insert(&provider->given, &given->at);
    pthread_mutex_unlock(&provider->lock);
    result = l0_make_handle(provider, ptr, size, given);
    pthread_mutex_lock(&provider->lock);
    pthread_cond_broadcast(&provider->made);
    if (result != UMF_RESULT_SUCCESS) {
        interval_remove(&provider->given, &given->at);
        free(given);
        return result;
    }
    *ret = given;
    return UMF_RESULT_SUCCESS;
}

umf_result_t l0_get_ipc_handle_size(void *p, size_t *size)
{
    if (!size)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    *size = sizeof(struct l0_handle);
    return UMF_RESULT_SUCCESS;
}

umf_result_t l0_get_ipc_handle(void *p, const void *ptr, size_t size, void *data)
{
    struct level_zero *provider = p;
    _cleanup_unlock_ pthread_mutex_t *locked = mutex_lock(&provider->lock);
    umf_result_t result = UMF_RESULT_SUCCESS;
    struct l0_given *given;

    if (!ptr || !size || !data)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    given = wait_given(provider, (uintptr_t)ptr);
    if (!given)
        result = l0_give(provider, ptr, size, &given);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    given->gets++;
    memcpy(data, &given->handle, sizeof(given->handle));
    return UMF_RESULT_SUCCESS;
}

/* If the memory was freed, its handle was put then. */
umf_result_t l0_put_ipc_handle(void *p, void *data)
{
    struct l0_given *given, *ended = NULL;
    struct level_zero *provider = p;
    struct l0_handle handle;

    if (!l0_read_handle(&handle, data) || handle.maker != provider->maker)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&provider->lock);
    given = wait_given(provider, handle.address);
    if (given && !memcmp(&given->handle, &handle, sizeof(handle)) && !--given->gets)
        take_out_given(provider, ended = given);
    pthread_mutex_unlock(&provider->lock);
    end_given(ended);
    return UMF_RESULT_SUCCESS;
}

void l0_ipc_forget(struct level_zero *provider, const void *ptr)
{
    struct l0_given *given;

    pthread_mutex_lock(&provider->lock);
    given = wait_given(provider, (uintptr_t)ptr);
    if (given)
        take_out_given(provider, given);
    pthread_mutex_unlock(&provider->lock);
    end_given(given);
}

/* ---- using one --------------------------------------------------------------------------------------------------- */

/* Accepts only memory that the broker did not make. All that is used of it is its descriptor. */
static int l0_receive(const struct l0_handle *handle, struct memclient_buffer **ret, int *ret_fd)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    int r = memclient_open_token(NULL, &handle->token, MEMCLIENT_ACCEPT_FOREIGN, &buffer);

    if (!r && !(memclient_buffer_flags(buffer) & MEMCLIENT_BUFFER_FOREIGN))
        r = -EBADMSG;
    if (!r)
        r = memclient_export_fd(buffer, 0, ret_fd);
    if (!r)
        *ret = steal_ptr(&buffer);
    return r;
}

umf_result_t l0_open_ipc_handle(void *p, void *data, void **ptr)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buffer = NULL;
    _cleanup_free_ struct l0_opened *opened = NULL;
    _cleanup_close_ int fd = -1; /* the driver does not need it any more once it has opened the memory */
    struct level_zero *provider = p;
    struct l0_handle handle;
    umf_result_t result;
    void *at = NULL;

    if (!ptr || !l0_read_handle(&handle, data))
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    opened = calloc(1, sizeof(*opened));
    if (!opened)
        return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    result = l0_broker_result(l0_receive(&handle, &buffer, &fd));
    if (result != UMF_RESULT_SUCCESS)
        return result;
    set_descriptor(&handle.driver, fd);
    result = l0_result("zeMemOpenIpcHandle",
                       provider->call.open_ipc(provider->context, provider->device, handle.driver, 0, &at));
    if (result != UMF_RESULT_SUCCESS)
        return result;
    opened->at.start = opened->at.last = (uintptr_t)at;
    opened->buffer = steal_ptr(&buffer);
    pthread_mutex_lock(&provider->lock);
    interval_insert(&provider->opened, &steal_ptr(&opened)->at);
    pthread_mutex_unlock(&provider->lock);
    *ptr = at;
    return UMF_RESULT_SUCCESS;
}

umf_result_t l0_close_ipc_handle(void *p, void *ptr, size_t size)
{
    struct level_zero *provider = p;
    struct l0_opened *opened;
    struct interval *at;
    umf_result_t result;

    pthread_mutex_lock(&provider->lock);
    at = interval_at(&provider->opened, (uintptr_t)ptr);
    if (at)
        interval_remove(&provider->opened, at);
    pthread_mutex_unlock(&provider->lock);
    if (!at)
        return UMF_RESULT_ERROR_INVALID_ARGUMENT;
    opened = container_of(at, struct l0_opened, at);
    result = l0_result("zeMemCloseIpcHandle", provider->call.close_ipc(provider->context, ptr));
    memclient_buffer_unref(opened->buffer);
    free(opened);
    return result;
}

void l0_ipc_deinit(struct level_zero *provider)
{
    struct interval *at;

    while ((at = interval_from(&provider->given, 0))) {
        struct l0_given *given = container_of(at, struct l0_given, at);

        take_out_given(provider, given);
        end_given(given);
    }
    while ((at = interval_from(&provider->opened, 0)))
        (void)l0_close_ipc_handle(provider, (void *)(uintptr_t)at->start, 0);
}
