/* SPDX-License-Identifier: Apache-2.0 */
/* Making, opening and leaving a heap. */
#include "heap/heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "base/cleanup.h"
#include "heap/cache.h"
#include "heap/directory.h"
#include "heap/fork.h"
#include "heap/geometry.h"
#include "heap/member.h"
#include "heap/reader.h"
#include "heap/slab.h"

#define ALL_WRITING     (MEMCLIENT_READ | MEMCLIENT_WRITE)
#define SLAB_NAMES_ROOM 5 /* "/1023" */
/* A buffer has 64 at most, and others may be bound meanwhile. */
#define NAMES_MAX 100

/* ---- the object -------------------------------------------------------------------------------------------------- */

static void heap_free(struct memclient_heap *heap)
{
    for (unsigned i = 0; i < HEAP_SLABS; i++)
        if (heap->slabs[i])
            slab_free(heap, heap->slabs[i]);
    for (unsigned i = 0; i < HEAP_MEMBERS; i++)
        queue_close(heap, i);
    range_index_deinit(&heap->index);
    if (heap->control || heap->queue)
        (void)memclient_unmap(heap->ctx, heap->control ? (void *)heap->control : (void *)heap->queue,
                              memclient_buffer_bytes(heap->control_buf));
    memclient_buffer_unref(heap->control_buf);
    (void)fd_close(heap->import_fd);
    (void)fd_close(heap->lock_fd);
    cache_deinit(heap);
    free(heap);
}
DEFINE_CLEANUP(struct memclient_heap *, heap_free);

static struct memclient_heap *heap_new(struct memclient_context *ctx)
{
    struct memclient_heap *heap = calloc(1, sizeof(*heap));

    if (!heap) {
        (void)fail_with(ENOMEM, "no memory for a heap's record");
        return NULL;
    }
    heap->ctx = ctx;
    heap->lock_fd = heap->import_fd = -1;
    pthread_mutex_init(&heap->grow, NULL);
    pthread_mutex_init(&heap->sweep, NULL);
    pthread_mutex_init(&heap->lock, NULL);
    return heap;
}

static int heap_refuse_buffer(const struct memclient_heap *heap)
{
    return fail_with(EBADMSG,
                     "buffer %llu is no heap: one is opened by its name, or by a token of memclient_heap_share() or "
                     "memclient_heap_invite()",
                     ULL(memclient_buffer_id(heap->control_buf)));
}

static int heap_map_control(struct memclient_heap *heap, void **address)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

    if (memclient_buffer_flags(heap->control_buf) & MEMCLIENT_BUFFER_LAZY)
        return heap_refuse_buffer(heap);
    options.flags = MEMCLIENT_MAP_ANYWHERE;
    options.access = ALL_WRITING;
    return memclient_map(heap->control_buf, &options, address);
}

/* ---- creating ---------------------------------------------------------------------------------------------------- */

static int heap_check_name(const struct memclient_heap_options *options, struct memclient_name_options *name)
{
    int r = check_name_options(options->name_options, name);

    if (r || !options->name)
        return r;
    r = check_name(options->name);
    if (r)
        return r;
    if (strlen(options->name) > MEMCLIENT_NAME_MAX - SLAB_NAMES_ROOM)
        return fail_with(ENAMETOOLONG, "a heap's name has at most %d bytes, since its slabs have longer ones",
                         MEMCLIENT_NAME_MAX - SLAB_NAMES_ROOM);
    if (name->policy != MEMCLIENT_NAME_KEEP)
        return fail_with(
            EINVAL, "name_options: the policy of a heap's name is MEMCLIENT_NAME_KEEP, until memclient_heap_destroy()");
    if ((name->group_rights && (name->group_rights & ALL_WRITING) != ALL_WRITING) ||
        (name->other_rights && (name->other_rights & ALL_WRITING) != ALL_WRITING))
        return fail_with(EINVAL, "a heap's name gives others READ and WRITE, or nothing: invite readers instead");
    return 0;
}

static int heap_make_control(struct memclient_heap *heap)
{
    void *address;
    int r;

    r = memclient_alloc(heap->ctx, sizeof(struct heap_control), NULL, &heap->control_buf);
    if (!r)
        r = heap_map_control(heap, &address);
    if (r)
        return r;
    heap->control = address;
    heap->control->version = HEAP_VERSION;
    heap->control->geometry = heap->geometry;
    __atomic_store_n(&heap->control->magic, HEAP_CONTROL, __ATOMIC_RELEASE);
    return 0;
}

/* Everything but the number. */
static int heap_finish(struct memclient_heap *heap)
{
    int r = cache_init(heap);

    if (!r && heap->control)
        r = memclient_export_fd(heap->control_buf, ALL_WRITING, &heap->import_fd);
    if (!r)
        r = heap->control ? member_join(heap) : reader_join(heap);
    return r;
}

int memclient_heap_create(struct memclient_context *ctx, const struct memclient_heap_options *from,
                          struct memclient_heap **heapp)
{
    _cleanup_(heap_freep) struct memclient_heap *heap = NULL;
    struct memclient_heap_options options;
    struct memclient_name_options name;
    int r;

    r = check_pointer(heapp, "heap");
    if (!r)
        r = check_options(&options, sizeof(options), from, "heap options");
    if (!r)
        r = heap_check_name(&options, &name);
    if (!r)
        r = check_context(&ctx);
    if (r)
        return r;
    heap = heap_new(ctx);
    r = heap ? geometry_set(&heap->geometry, &options) : -ENOMEM;
    if (!r)
        r = heap_make_control(heap);
    if (!r)
        r = heap_finish(heap);
    /* only a whole heap has a name */
    if (!r && options.name) {
        (void)snprintf(heap->name, sizeof(heap->name), "%s", options.name);
        r = memclient_bind_name(heap->control_buf, heap->name, &name);
    }
    if (r)
        return r;
    heap_register(heap);
    *heapp = steal_ptr(&heap);
    return 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int heap_adopt_control(struct memclient_heap *heap, void *address)
{
    heap->control = address;
    if (__atomic_load_n(&heap->control->version, __ATOMIC_RELAXED) != HEAP_VERSION)
        return fail_with(EPROTONOSUPPORT, "the heap is of another version of this library");
    layout_copy(&heap->geometry, &heap->control->geometry, sizeof(heap->geometry));
    return geometry_check(&heap->geometry) ? fail_with(EBADMSG, "the heap's control buffer is damaged") : 0;
}

static int heap_adopt_queue(struct memclient_heap *heap, void *address)
{
    heap->queue = address;
    if (__atomic_load_n(&heap->queue->version, __ATOMIC_RELAXED) != HEAP_VERSION)
        return fail_with(EPROTONOSUPPORT, "the heap is of another version of this library");
    layout_copy(heap->geometry.id, heap->queue->id, sizeof(heap->geometry.id));
    layout_copy(&heap->geometry.n_classes, &heap->queue->n_classes, sizeof(heap->geometry.n_classes));
    layout_copy(heap->geometry.classes, heap->queue->classes, sizeof(heap->geometry.classes));
    return geometry_check_classes(&heap->geometry) ? fail_with(EBADMSG, "the invitation is damaged") : 0;
}

/* What kind of buffer is it? */
static int heap_adopt(struct memclient_heap *heap)
{
    uint64_t bytes = memclient_buffer_bytes(heap->control_buf);
    uint32_t magic;
    void *address;
    int r;

    if ((memclient_buffer_rights(heap->control_buf) & ALL_WRITING) != ALL_WRITING)
        return fail_with(EACCES, "who opens a heap needs READ and WRITE: readers are invited");
    r = heap_map_control(heap, &address);
    if (r)
        return r;
    magic = __atomic_load_n((uint32_t *)address, __ATOMIC_ACQUIRE);
    if (magic == HEAP_CONTROL && bytes >= sizeof(struct heap_control))
        return heap_adopt_control(heap, address);
    if (magic == HEAP_QUEUE && bytes >= sizeof(struct heap_queue))
        return heap_adopt_queue(heap, address);
    (void)memclient_unmap(heap->ctx, address, bytes);
    return heap_refuse_buffer(heap);
}

/*
 * The slabs of a heap with a name have names, too, whoever adds them. Which name it is, the broker knows; what members
 * write could make this process bind and unbind its user's other names. 1: it is another user's.
 */
static int heap_find_name(const struct memclient_heap *heap, char name[MEMCLIENT_NAME_SIZE])
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    int r = memclient_buffer_query(heap->control_buf, &info);

    if (r)
        return r;
    (void)snprintf(name, MEMCLIENT_NAME_SIZE, "%s", info.name);
    return info.names && (!*info.name || !strncmp(info.name, "uid:", 4));
}

/* Takes the buffer. */
static int heap_open(struct memclient_context *ctx, struct memclient_buffer *buf, struct memclient_heap **heapp)
{
    _cleanup_(heap_freep) struct memclient_heap *heap = heap_new(ctx);
    int r;

    if (!heap) {
        memclient_buffer_unref(buf);
        return -ENOMEM;
    }
    heap->control_buf = buf;
    r = heap_adopt(heap);
    if (!r && heap->control)
        r = heap_find_name(heap, heap->name);
    heap->named_by_other = r > 0;
    if (r >= 0)
        r = heap_finish(heap);
    if (r)
        return r;
    if (heap->control)
        member_sweep_others(heap, 1, FAILED_CALLS_MAX_ALL);
    heap_register(heap);
    *heapp = steal_ptr(&heap);
    return 0;
}

int memclient_heap_open_token(struct memclient_context *ctx, const struct memclient_token *token,
                              struct memclient_heap **heap)
{
    struct memclient_buffer *buf;
    int r = check_pointer(heap, "heap");

    if (!r)
        r = check_pointer(token, "token");
    if (!r)
        r = check_context(&ctx);
    if (!r)
        r = memclient_open_token(ctx, token, 0, &buf);
    return r ? r : heap_open(ctx, buf, heap);
}

int memclient_heap_open_name(struct memclient_context *ctx, const char *name, struct memclient_heap **heap)
{
    struct memclient_buffer *buf;
    int r = check_pointer(heap, "heap");

    if (!r)
        r = check_context(&ctx);
    if (!r)
        r = memclient_open_name(ctx, name, 0, &buf);
    return r ? r : heap_open(ctx, buf, heap);
}

/* ---- leaving ----------------------------------------------------------------------------------------------------- */

void memclient_heap_close(struct memclient_heap *heap)
{
    if (!heap)
        return;
    heap_unregister(heap);
    member_leave(heap);
    heap_free(heap);
}

/* The heap's own name comes after those of its slabs: as long as it has that, somebody can do the rest. */
static int heap_unbind(struct memclient_heap *heap, const char *name)
{
    int r = directory_destroy(heap, name);

    if (!r)
        r = memclient_unbind_name(heap->ctx, name);
    return r == -ENOENT ? 0 : r;
}

struct heap_own_name {
    uint64_t buffer;
    char name[MEMCLIENT_NAME_SIZE]; /* "": none was found */
};

static int heap_look_at_name(const struct memclient_name_info *info, void *data)
{
    struct heap_own_name *own = data;

    if (info->buffer != own->buffer || info->uid != geteuid())
        return 0;
    (void)snprintf(own->name, sizeof(own->name), "%s", info->name);
    return 1;
}

/* A name of this user's that the heap has, though it has another user's, too, which the broker shows first. Only
 * listing them finds it. */
static int heap_find_own_name(const struct memclient_heap *heap, char name[MEMCLIENT_NAME_SIZE])
{
    struct heap_own_name own = {.buffer = memclient_buffer_id(heap->control_buf)};
    int r = memclient_list_names(heap->ctx, heap_look_at_name, &own);

    (void)snprintf(name, MEMCLIENT_NAME_SIZE, "%s", own.name);
    return r < 0 ? r : 0;
}

/* Also those that were bound to it later, and the names of slabs that members who came by those have added. Other
 * users' names stay, and keep the heap from being destroyed, but nothing of this user's stays with them. */
static int heap_unbind_all(struct memclient_heap *heap)
{
    char name[MEMCLIENT_NAME_SIZE];
    int r = *heap->name ? heap_unbind(heap, heap->name) : 0;
    bool others = false;

    for (unsigned i = 0; !r && i < NAMES_MAX; i++) {
        r = heap_find_name(heap, name);
        if (r > 0) {
            others = true;
            r = heap_find_own_name(heap, name);
        }
        if (r || !*name)
            break;
        r = heap_unbind(heap, name);
    }
    if (!r && others)
        r = fail_with(EACCES, "the heap has another user's name as well, which only that user can unbind");
    return r;
}

int memclient_heap_destroy(struct memclient_heap *heap)
{
    int r = check_pointer(heap, "heap");

    if (!r && !heap->control)
        r = fail_with(EPERM, "a reader cannot destroy a heap");
    if (!r && heap->named_by_other)
        r = fail_with(EACCES, "only members of the user whose name the heap has destroy it");
    if (!r) {
        pthread_mutex_lock(&heap->sweep);
        r = heap_unbind_all(heap);
        pthread_mutex_unlock(&heap->sweep);
    }
    if (!r)
        memclient_heap_close(heap);
    return r;
}
