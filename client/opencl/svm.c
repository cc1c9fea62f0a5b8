/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps of shared virtual memory: the functions of <memclient/svm.h>. An allocation goes by rules, heap and table.
 */
#include "opencl/svm.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/sized.h"
#include "opencl/error.h"
#include "opencl/free_queue.h"
#include "opencl/heap.h"
#include "opencl/imports.h"
#include "opencl/table.h"

#define NODES_MAX    64
#define NAME_DEFAULT "svm"

struct memclient_svm {
    struct memclient_svm_options options; /* with copies of what they point to */
    _Atomic(struct svm_heap *) heap;      /* made at the first use, and again in a child of fork() */
    struct quarantine quarantine;
};

/* For making heaps. It is held over calls to the broker, so no fork waits for it. */
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;

static void svm_before_fork(void)
{
    table_before_fork();
    free_queue_before_fork();
}

static void svm_in_parent(void)
{
    free_queue_in_parent();
    table_in_parent();
}

static void svm_in_child(void)
{
    free_queue_in_child();
    table_in_child();
    imports_in_child();
    (void)pthread_mutex_init(&heap_lock, NULL);
}

__attribute__((__constructor__)) static void svm_loaded(void)
{
    (void)pthread_atfork(svm_before_fork, svm_in_parent, svm_in_child);
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static const struct memclient_svm_device any_device = {
    .max_alloc_size = UINT64_MAX,
    .capabilities = MEMCLIENT_SVM_CAN_COARSE_GRAIN_BUFFER | MEMCLIENT_SVM_CAN_FINE_GRAIN_BUFFER |
                    MEMCLIENT_SVM_CAN_FINE_GRAIN_SYSTEM | MEMCLIENT_SVM_CAN_ATOMICS,
    .largest_type = 128,
};

static bool is_valid_device(const struct memclient_svm_device *device)
{
    return is_power_of_two(device->largest_type) && device->largest_type <= page_size();
}

static int read_options(struct memclient_svm_options *options, const struct memclient_svm_options *from)
{
    int r = sized_read(options, sizeof(*options), from);

    if (r == -E2BIG)
        return svm_fail(-EINVAL, "an option of a later version of this library is set");
    if (r)
        return svm_fail(-EINVAL, "the options have no size: initialize them by MEMCLIENT_SVM_OPTIONS_INIT");
    if (options->flags & ~(unsigned)MEMCLIENT_SVM_SEPARATE || options->placement > MEMCLIENT_PLACEMENT_LOCAL)
        return svm_fail(-EINVAL, "a flag or the placement is unknown");
    if (options->n_nodes > NODES_MAX || (options->n_nodes && !options->nodes) ||
        (options->n_devices && !options->devices))
        return svm_fail(-EINVAL, "nodes or devices are missing, or there are too many");
    for (size_t i = 0; i < options->n_devices; i++)
        if (!is_valid_device(&options->devices[i]))
            return svm_fail(-EINVAL, "the largest type of device %zu is no power of two, or more than a page", i);
    return 0;
}

/* Copies what an option points to; NULL if it is empty. */
static void *copy_option(const void *from, size_t size, bool *failed)
{
    void *to = from && size ? malloc(size) : NULL;

    if (to)
        memcpy(to, from, size);
    *failed |= from && size && !to;
    return to;
}

static void free_records(struct memclient_svm *svm)
{
    free((void *)(uintptr_t)svm->options.devices);
    free((void *)(uintptr_t)svm->options.pool);
    free((void *)(uintptr_t)svm->options.nodes);
    free((void *)(uintptr_t)svm->options.name);
    free(svm);
}

int memclient_svm_create(const struct memclient_svm_options *options, struct memclient_svm **ret)
{
    struct memclient_svm_options given;
    struct memclient_svm *svm;
    bool failed = false;
    int r = ret ? read_options(&given, options) : svm_fail(-EINVAL, "svm is NULL");

    if (r)
        return r;
    svm = calloc(1, sizeof(*svm));
    if (!svm)
        return svm_fail(-ENOMEM, "no memory for the records of a heap");
    if (!given.n_devices) {
        given.devices = &any_device;
        given.n_devices = 1;
    }
    if (!given.name)
        given.name = NAME_DEFAULT;
    given.devices = copy_option(given.devices, given.n_devices * sizeof(*given.devices), &failed);
    given.nodes = copy_option(given.nodes, given.n_nodes * sizeof(*given.nodes), &failed);
    given.pool = copy_option(given.pool, given.pool ? strlen(given.pool) + 1 : 0, &failed);
    given.name = copy_option(given.name, strlen(given.name) + 1, &failed);
    svm->options = given;
    list_init(&svm->quarantine.entries);
    svm->quarantine.max_bytes = given.quarantine;
    if (failed) {
        free_records(svm);
        return svm_fail(-ENOMEM, "no memory for the records of a heap");
    }
    *ret = svm;
    return 0;
}

/* The heap of this process: it replaces that of the parent of a fork. */
static int svm_get_heap(struct memclient_svm *svm, struct svm_heap **ret)
{
    struct svm_heap *heap = atomic_load_explicit(&svm->heap, memory_order_acquire);
    int r = 0;

    if (!heap || svm_heap_generation(heap) != table_generation()) {
        pthread_mutex_lock(&heap_lock);
        heap = atomic_load_explicit(&svm->heap, memory_order_relaxed);
        if (!heap || svm_heap_generation(heap) != table_generation())
            r = svm_heap_new(&svm->options, &heap);
        if (!r)
            atomic_store_explicit(&svm->heap, heap, memory_order_release);
        pthread_mutex_unlock(&heap_lock);
    }
    if (!r)
        *ret = heap;
    return r;
}

int svm_connect(struct memclient_svm *svm)
{
    struct svm_heap *heap;

    return svm_get_heap(svm, &heap);
}

/* ---- releasing --------------------------------------------------------------------------------------------------- */

static void release_import(struct queued_free *queued)
{
    struct entry *entry = container_of(queued, struct entry, queued);

    import_put(entry->import);
    free(entry);
}

/* Makes no call to the broker: the free queue does. */
static void entry_release(struct entry *entry)
{
    if (entry->generation == table_generation() && entry->import) {
        entry->queued.release = release_import;
        free_queue_put(&entry->queued);
        return;
    }
    if (entry->generation == table_generation())
        svm_heap_release(entry->heap, (void *)entry->start);
    free(entry);
}

static void release_quarantine(struct memclient_svm *svm, uint64_t max_bytes)
{
    struct entry *entry;

    while ((entry = quarantine_take(&svm->quarantine, max_bytes)))
        entry_release(entry);
}

int svm_free(struct memclient_svm *svm, const void *owner, void *ptr)
{
    struct entry *entry = table_take(ptr, svm, owner);

    if (!entry)
        return -EINVAL;
    if (!entry->heap || entry->generation != table_generation() || entry->size > svm->quarantine.max_bytes) {
        entry_release(entry);
        return 0;
    }
    if (svm_heap_is_separate(entry->heap, entry->size))
        (void)memclient_protect(svm->options.context, ptr, 0, MEMCLIENT_NO_ACCESS);
    quarantine_put(&svm->quarantine, entry);
    release_quarantine(svm, svm->quarantine.max_bytes);
    return 0;
}

int memclient_svm_free(struct memclient_svm *svm, void *ptr)
{
    if (!svm)
        return svm_fail(-EINVAL, "svm is NULL");
    if (ptr && svm_free(svm, NULL, ptr))
        return svm_fail(-EINVAL, "no allocation of this heap starts at %p", ptr);
    return 0;
}

void memclient_svm_destroy(struct memclient_svm *svm)
{
    struct list all = LIST_INIT(all), *link;

    if (!svm)
        return;
    table_take_all(svm, &all);
    while ((link = list_pop(&all)))
        entry_release(container_of(link, struct entry, waiting));
    release_quarantine(svm, 0);
    free_queue_flush();
    svm_heap_free(atomic_load_explicit(&svm->heap, memory_order_acquire));
    free_records(svm);
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

uint32_t svm_largest_type(const struct memclient_svm_device *devices, size_t n)
{
    uint32_t largest = 1;

    for (size_t i = 0; i < n; i++)
        if (devices[i].largest_type > largest)
            largest = devices[i].largest_type;
    return largest;
}

static struct entry *entry_new(struct memclient_svm *svm)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (!entry) {
        (void)svm_fail(-ENOMEM, "no memory for the records of an allocation");
        return NULL;
    }
    list_init(&entry->waiting);
    list_init(&entry->queued.link);
    entry->svm = svm;
    return entry;
}

int svm_alloc(struct memclient_svm *svm, const void *owner, uint64_t flags, uint64_t size, uint32_t alignment,
              void **ret)
{
    struct entry *entry;
    struct svm_heap *heap;
    void *ptr;
    int r;

    if (size > SIZE_MAX)
        return svm_fail(-ENOMEM, "a process has no room for that many bytes");
    r = svm_get_heap(svm, &heap);
    if (r)
        return r;
    entry = entry_new(svm);
    if (!entry)
        return -ENOMEM;
    r = svm_heap_alloc(heap, (size_t)size, alignment, &ptr);
    if (r) {
        /* memory that is being released may be enough, even if it was released meanwhile */
        release_quarantine(svm, 0);
        free_queue_flush();
        r = svm_heap_alloc(heap, (size_t)size, alignment, &ptr);
    }
    if (r) {
        free(entry);
        return r;
    }
    entry->heap = heap;
    entry->start = (uintptr_t)ptr;
    entry->size = (size_t)size;
    entry->flags = flags;
    table_add(entry, owner);
    *ret = ptr;
    return 0;
}

int memclient_svm_alloc(struct memclient_svm *svm, uint64_t flags, uint64_t size, uint32_t alignment, void **ptr)
{
    int r;

    if (!svm || !ptr)
        return svm_fail(-EINVAL, "svm or ptr is NULL");
    r = memclient_svm_check(svm->options.n_devices, svm->options.devices, flags, size, alignment, NULL);
    if (r)
        return r;
    if (!alignment)
        alignment = svm_largest_type(svm->options.devices, svm->options.n_devices);
    return svm_alloc(svm, NULL, flags, size, alignment, ptr);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

int memclient_svm_query(const void *ptr, struct memclient_svm_info *info)
{
    struct memclient_svm_info filled;
    struct entry entry;

    if (!info || sized_check(info))
        return svm_fail(-EINVAL, "the info has no size: initialize it by MEMCLIENT_SVM_INFO_INIT");
    if (!table_find(ptr, NULL, &entry))
        return svm_fail(-EFAULT, "no allocation has %p in it", ptr);
    filled = (struct memclient_svm_info){
        .svm = entry.svm,
        .address = (void *)entry.start,
        .length = entry.size,
        .flags = entry.flags,
        .ordinal = entry.range.serial,
        .imported = !entry.heap,
    };
    sized_write(info, &filled, sizeof(filled));
    return 0;
}

/* ---- importing --------------------------------------------------------------------------------------------------- */

static int check_part(const struct memclient_buffer *buf, uint64_t offset, uint64_t *length)
{
    uint64_t size = memclient_buffer_size(buf);

    if (offset >= size || *length > size - offset)
        return svm_fail(-EOVERFLOW, "offset and length go beyond the buffer's end, at %" PRIu64, size);
    if (!*length)
        *length = size - offset;
    return 0;
}

int svm_import(struct memclient_svm *svm, const void *owner, struct memclient_buffer *taken, uint64_t offset,
               uint64_t length, void **ret)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = taken;
    struct entry *entry;
    void *base;
    int r = check_part(buf, offset, &length);

    if (r)
        return r;
    entry = entry_new(svm);
    if (!entry)
        return -ENOMEM;
    r = import_get(buf, &entry->import, &base);
    if (r) {
        free(entry);
        return r;
    }
    entry->start = (uintptr_t)base + (size_t)offset;
    entry->size = (size_t)length;
    entry->flags = memclient_buffer_rights(buf) & MEMCLIENT_WRITE ? MEMCLIENT_SVM_READ_WRITE : MEMCLIENT_SVM_READ_ONLY;
    /* another thread may free it once it has the address */
    *ret = (char *)base + offset;
    table_add(entry, owner);
    return 0;
}

int memclient_svm_import(struct memclient_svm *svm, struct memclient_buffer *buf, uint64_t offset, uint64_t length,
                         void **ptr)
{
    if (!svm || !buf || !ptr)
        return svm_fail(-EINVAL, "svm, buf or ptr is NULL");
    return svm_import(svm, NULL, memclient_buffer_ref(buf), offset, length, ptr);
}

int memclient_svm_import_fd(struct memclient_svm *svm, int fd, uint64_t offset, uint64_t length, void **ptr)
{
    struct memclient_buffer *buf;
    int r;

    if (!svm || !ptr)
        return svm_fail(-EINVAL, "svm or ptr is NULL");
    r = svm_native(memclient_import_fd(svm->options.context, fd, &buf));
    return r ? r : svm_import(svm, NULL, buf, offset, length, ptr);
}

int memclient_svm_open_token(struct memclient_svm *svm, const struct memclient_token *token, uint64_t offset,
                             uint64_t length, void **ptr)
{
    struct memclient_buffer *buf;
    int r;

    if (!svm || !token || !ptr)
        return svm_fail(-EINVAL, "svm, token or ptr is NULL");
    r = svm_native(memclient_open_token(svm->options.context, token, 0, &buf));
    return r ? r : svm_import(svm, NULL, buf, offset, length, ptr);
}
