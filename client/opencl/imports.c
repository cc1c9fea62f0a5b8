/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See imports.h. The lock is held over calls to the broker, so that no thread finds a mapping that another one is
 * unmapping. So no fork waits for the lock, and a child starts with a new one.
 */
#include "opencl/imports.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/list.h"
#include "opencl/error.h"

struct import {
    struct list link;
    unsigned refs;
    struct memclient_buffer *buffer;
    void *base;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list all = LIST_INIT(all);

static struct import *import_find(const struct memclient_buffer *buf)
{
    list_for_each_entry(import, &all, struct import, link)
        if (import->buffer == buf)
            return import;
    return NULL;
}

/* Shares the pages with any other mapping of the buffer in this process. */
static int import_make(struct memclient_buffer *buf, struct import **ret)
{
    struct import *import;
    int r;

    if (!memclient_buffer_home(buf))
        return svm_fail(-EADDRNOTAVAIL, "the buffer has no home, so it cannot have one address in all processes");
    import = calloc(1, sizeof(*import));
    if (!import)
        return svm_fail(-ENOMEM, "no memory for the records of an import");
    r = svm_native(memclient_map(buf, NULL, &import->base));
    if (r) {
        free(import);
        return r;
    }
    import->buffer = memclient_buffer_ref(buf);
    list_append(&all, &import->link);
    *ret = import;
    return 0;
}

int import_get(struct memclient_buffer *buf, struct import **ret, void **base)
{
    struct import *import;
    int r = 0;

    pthread_mutex_lock(&lock);
    import = import_find(buf);
    if (!import)
        r = import_make(buf, &import);
    if (!r) {
        import->refs++;
        *ret = import;
        *base = import->base;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

void import_put(struct import *import)
{
    pthread_mutex_lock(&lock);
    if (!--import->refs) {
        list_remove(&import->link);
        (void)memclient_unmap(memclient_buffer_context(import->buffer), import->base,
                              memclient_buffer_bytes(import->buffer));
        (void)memclient_buffer_unref(import->buffer);
        free(import);
    }
    pthread_mutex_unlock(&lock);
}

void imports_in_child(void)
{
    (void)pthread_mutex_init(&lock, NULL);
    list_init(&all);
}
