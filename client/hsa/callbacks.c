/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deallocation callbacks: functions of the application that are called when memory is freed.
 *
 * A callback is in a list of the range that contains its address. Whoever removes the range from the address map takes
 * the list along, and calls the functions after releasing all locks. So they may allocate, free and register, and they
 * find the memory gone, as HSA promises.
 */
#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/memory.h"
#include "hsa/runtime.h"

struct callback {
    struct list link;
    void *address; /* as registered: it may be inside the allocation */
    hsa_amd_deallocation_callback_t function;
    void *data;
};

void callbacks_take(struct address_range *range, struct list *taken)
{
    list_splice(taken, &range->callbacks);
}

void callbacks_run(struct list *taken)
{
    struct list *link;

    while ((link = list_pop(taken))) {
        struct callback *callback = container_of(link, struct callback, link);

        callback->function(callback->address, callback->data);
        free(callback);
    }
}

void callbacks_run_outside(struct list *taken, struct memclient_context **ctx)
{
    if (list_is_empty(taken))
        return;
    runtime_leavep(ctx);
    callbacks_run(taken);
    *ctx = runtime_enter();
}

void callbacks_drop(struct address_range *range)
{
    struct list *link;

    while ((link = list_pop(&range->callbacks)))
        free(container_of(link, struct callback, link));
}

/* The range to which a callback can be attached. HSA does not free ordinary memory that was registered. */
static struct address_range *callbacks_find_memory(const void *address)
{
    struct address_range *range = address_map_find(address);

    return range && range->kind != RANGE_LOCKED ? range : NULL;
}

hsa_status_t hsa_amd_register_deallocation_callback(void *ptr, hsa_amd_deallocation_callback_t callback,
                                                    void *user_data)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct callback *new;
    struct address_range *range;

    if (!ctx || !ptr || !callback)
        return runtime_refusal(ctx);
    new = malloc(sizeof(*new));
    if (!new)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    *new = (struct callback){.address = ptr, .function = callback, .data = user_data};
    address_map_lock();
    range = callbacks_find_memory(ptr);
    if (range)
        list_append(&range->callbacks, &new->link);
    address_map_unlock();
    if (range)
        return HSA_STATUS_SUCCESS;
    free(new);
    return HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

static struct callback *callbacks_find(struct address_range *range, const void *address,
                                       hsa_amd_deallocation_callback_t function)
{
    list_for_each_entry(callback, &range->callbacks, struct callback, link)
        if (callback->address == address && callback->function == function)
            return callback;
    return NULL;
}

hsa_status_t hsa_amd_deregister_deallocation_callback(void *ptr, hsa_amd_deallocation_callback_t callback)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct callback *found = NULL;
    struct address_range *range;

    if (!ctx || !ptr || !callback)
        return runtime_refusal(ctx);
    address_map_lock();
    range = callbacks_find_memory(ptr);
    if (range) {
        found = callbacks_find(range, ptr, callback);
        if (found)
            list_remove(&found->link);
    }
    address_map_unlock();
    if (!found)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    free(found);
    return HSA_STATUS_SUCCESS;
}
