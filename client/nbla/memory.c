/* SPDX-License-Identifier: Apache-2.0 */
/* See memory.h. */
#include "nbla/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "nbla/error.h"

/* ---- making and ending ------------------------------------------------------------------------------------------- */

nbla_memory *nbla_memory_new_ops(size_t bytes, const char *device_id, nbla_memory_type type,
                                 const struct nbla_memory_ops *ops, void *priv)
{
    nbla_memory *memory;

    if (!device_id || !ops || sized_accept(ops, sizeof(*ops)) || ops->size < offsetof(struct nbla_memory_ops, bind) ||
        !ops->alloc || !ops->divide || !ops->merge_next || !ops->merge_prev ||
        (type != NBLA_TYPE_NORMAL && type != NBLA_TYPE_VIRTUAL)) {
        (void)fail(NBLA_ERROR_VALUE, "a kind of memory needs a device id, a type, and operations: alloc, divide, "
                                     "merge_next and merge_prev, in a table that says its size");
        return NULL;
    }
    memory = calloc(1, sizeof(*memory));
    if (memory)
        memory->device_id = strdup(device_id);
    if (!memory || !memory->device_id) {
        free(memory);
        (void)fail(NBLA_ERROR_MEMORY, "no memory for an object");
        return NULL;
    }
    memory->ops = ops;
    memory->priv = priv;
    memory->type = type;
    memory->bytes = bytes ? bytes : 1;
    nbla_memory_set_requested_bytes(memory, memory->bytes);
    list_init(&memory->next.in);
    list_init(&memory->prev.in);
    list_init(&memory->links);
    return memory;
}

void *nbla_memory_priv(nbla_memory *memory)
{
    return memory->priv;
}

void nbla_memory_set_pointer(nbla_memory *memory, void *pointer)
{
    memory->pointer = pointer;
}

static void link_set(struct link *link, nbla_memory *to)
{
    list_remove(&link->in);
    link->to = to;
    if (to)
        list_append(&to->links, &link->in);
}

int nbla_memory_destroy(nbla_memory *memory)
{
    if (!memory)
        return 0;
    if (memory->pointer && memory->prev.to)
        return fail(NBLA_ERROR_RUNTIME,
                    "this block was divided from the one before it: merge it there, or destroy that one first");
    if (memory_op(memory, destroy))
        memory->ops->destroy(memory);
    list_for_each_entry_safe(link, &memory->links, struct link, in)
        link_set(link, NULL);
    link_set(&memory->next, NULL);
    link_set(&memory->prev, NULL);
    chunks_clear(&memory->chunks);
    free(memory->device_id);
    free(memory);
    return 0;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

size_t nbla_memory_bytes(const nbla_memory *memory)
{
    return memory->bytes;
}

size_t nbla_memory_requested_bytes(const nbla_memory *memory)
{
    return memory->requested < 0 ? memory->bytes : (size_t)memory->requested;
}

void nbla_memory_set_requested_bytes(nbla_memory *memory, size_t bytes)
{
    memory->requested = bytes > INT64_MAX ? -1 : (int64_t)bytes;
}

const char *nbla_memory_device_id(const nbla_memory *memory)
{
    return memory->device_id;
}

nbla_memory_type nbla_memory_get_type(const nbla_memory *memory)
{
    return memory->type;
}

void *nbla_memory_pointer(nbla_memory *memory)
{
    return memory->pointer;
}

const void *nbla_memory_const_pointer(const nbla_memory *memory)
{
    return memory->pointer;
}

bool nbla_memory_locked(const nbla_memory *memory)
{
    return memory->locked;
}

bool nbla_memory_disabled(const nbla_memory *memory)
{
    return !memory->pointer;
}

nbla_memory *nbla_memory_next(const nbla_memory *memory)
{
    return memory->next.to;
}

nbla_memory *nbla_memory_prev(const nbla_memory *memory)
{
    return memory->prev.to;
}

size_t nbla_memory_bytes_active(const nbla_memory *memory)
{
    return memory->pointer && !memory->next.to && !memory->prev.to ? memory->bytes : 0;
}

void nbla_memory_lock(nbla_memory *memory)
{
    memory->locked = true;
}

void nbla_memory_release(nbla_memory *memory)
{
    memory->locked = false;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

int nbla_memory_alloc(nbla_memory *memory)
{
    unsigned before = error_count();
    int r;

    if (!memory)
        return fail_null("memory");
    if (memory->pointer)
        return fail(NBLA_ERROR_VALUE, "it has memory already");
    r = wrap_error(memory->ops->alloc(memory), before, "get memory");
    if (r < 0)
        return r;
    return memory->pointer ? 0 : fail(NBLA_ERROR_MEMORY, "this kind of memory allocated nothing");
}

void nbla_memory_associate_consecutive(nbla_memory *left, nbla_memory *right)
{
    if (left)
        link_set(&left->next, right);
    if (right)
        link_set(&right->prev, left);
}

int nbla_memory_divide(nbla_memory *memory, size_t second_start, nbla_memory **second)
{
    unsigned before = error_count();
    nbla_memory *made = NULL;
    int r;

    if (!memory || !second)
        return fail_null("memory or second");
    if (!second_start || second_start >= memory->bytes)
        return fail(NBLA_ERROR_VALUE, "a block of %zu bytes cannot be divided at %zu", memory->bytes, second_start);
    if (!memory->pointer)
        return fail(NBLA_ERROR_MEMORY, "it has no memory that could be divided: alloc() it first");
    r = wrap_error(memory->ops->divide(memory, second_start, &made), before, "divide it");
    if (r < 0)
        return r;
    if (!made)
        return fail(NBLA_ERROR_MEMORY, "this kind of memory made no second block");
    memory->bytes = second_start;
    nbla_memory_associate_consecutive(made, memory->next.to);
    nbla_memory_associate_consecutive(memory, made);
    *second = made;
    return 0;
}

int nbla_memory_try_merge(nbla_memory *memory, nbla_memory *from)
{
    unsigned before = error_count();
    bool is_next;
    int r;

    if (!memory)
        return fail_null("memory");
    if (!from || from->locked)
        return 0;
    is_next = memory->next.to == from;
    if (!is_next && memory->prev.to != from)
        return 0;
    if (memory->ops != from->ops)
        return fail(NBLA_ERROR_RUNTIME, "two kinds of memory cannot be merged");
    r = is_next ? memory->ops->merge_next(memory, from) : memory->ops->merge_prev(memory, from);
    if (r < 0)
        return wrap_error(r, before, "merge them");
    if (is_next)
        nbla_memory_associate_consecutive(memory, from->next.to);
    else
        nbla_memory_associate_consecutive(from->prev.to, memory);
    memory->bytes += from->bytes;
    from->pointer = NULL;
    return 1;
}

/* ---- virtual memory ---------------------------------------------------------------------------------------------- */

static int check_virtual(const nbla_memory *memory, bool has_op, const char *what)
{
    if (!memory)
        return fail_null("memory");
    if (memory->type != NBLA_TYPE_VIRTUAL)
        return fail(NBLA_ERROR_MEMORY, "this memory is not virtual: calling %s() is prohibited", what);
    return has_op ? 0 : fail(NBLA_ERROR_NOT_IMPLEMENTED, "this kind of memory has no %s()", what);
}

int nbla_memory_bind(nbla_memory *memory)
{
    unsigned before = error_count();
    int r = check_virtual(memory, memory && memory_op(memory, bind), "bind");

    if (r < 0)
        return r;
    r = wrap_error(memory->ops->bind(memory), before, "bind it");
    return r < 0 ? r : 0;
}

int nbla_memory_unbind(nbla_memory *memory)
{
    unsigned before = error_count();
    int r = check_virtual(memory, memory && memory_op(memory, unbind), "unbind");

    if (r < 0)
        return r;
    r = wrap_error(memory->ops->unbind(memory), before, "unbind it");
    if (r < 0)
        return r;
    memory->pointer = NULL;
    return 0;
}

int nbla_memory_grow(nbla_memory *memory, nbla_physical_memory *const *p, size_t n)
{
    unsigned before = error_count();
    int r = check_virtual(memory, memory && memory_op(memory, grow), "grow");

    if (r < 0)
        return r;
    if (n && !p)
        return fail_null("p");
    for (size_t i = 0; i < n; i++)
        if (!p[i])
            return fail_null("a physical memory");
    r = wrap_error(memory->ops->grow(memory, p, n), before, "grow");
    if (r <= 0)
        return r;
    for (size_t i = 0; i < n; i++)
        memory->bytes += nbla_physical_memory_bytes(p[i]);
    return 1;
}

size_t nbla_memory_phys_count(const nbla_memory *memory)
{
    return memory->chunks.n;
}

nbla_physical_memory *nbla_memory_phys_at(const nbla_memory *memory, size_t i)
{
    return i < memory->chunks.n ? memory->chunks.at[i] : NULL;
}

int nbla_memory_append_phys(nbla_memory *memory, nbla_physical_memory *const *p, size_t n)
{
    return memory ? chunks_append(&memory->chunks, p, n) : fail_null("memory");
}

void nbla_memory_clear_phys(nbla_memory *memory)
{
    chunks_clear(&memory->chunks);
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

nbla_device_memory_state nbla_memory_get_device_state(nbla_memory *memory)
{
    return memory_op(memory, get_device_state) ? memory->ops->get_device_state(memory) : NBLA_DEVICE_UNLOCKED;
}

void nbla_memory_lock_device(nbla_memory *memory)
{
    if (memory_op(memory, lock_device))
        memory->ops->lock_device(memory);
}

void nbla_memory_unlock_device(nbla_memory *memory)
{
    if (memory_op(memory, unlock_device))
        memory->ops->unlock_device(memory);
}
