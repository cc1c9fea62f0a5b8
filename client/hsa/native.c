/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From HSA's memory to the native API: programs that allocate by the one may name, publish or limit by the other.
 */
#include <memclient/hsa/hsa_ext_memoryd.h>
#include <memclient/memclient.h>

#include "hsa/ipc.h"
#include "hsa/memory.h"
#include "hsa/place.h"
#include "hsa/runtime.h"
#include "hsa/vmem.h"

/* Not counted up; NULL for memory that is the application's own. */
static struct memclient_buffer *buffer_at(const void *ptr)
{
    struct place *place = place_find(ptr);

    if (!place)
        return NULL;
    switch (place->kind) {
    case PLACE_ALLOCATION:
        return place_allocation(place)->buffer;
    case PLACE_ATTACHMENT:
        return place_attachment(place)->buffer;
    case PLACE_MAPPING:
        return place_mapping(place)->handle->buffer;
    case PLACE_LOCKED:
    case PLACE_RESERVATION:
        break;
    }
    return NULL;
}

hsa_status_t memclient_hsa_buffer(const void *ptr, struct memclient_buffer **buf)
{
    struct memclient_buffer *found;

    RUNTIME_NEEDED();
    if (!ptr || !buf)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    places_lock_read();
    found = memclient_buffer_ref(buffer_at(ptr));
    places_unlock();
    if (!found)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    *buf = found;
    return HSA_STATUS_SUCCESS;
}
