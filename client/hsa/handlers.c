/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the application that are called when a signal meets a condition. One thread, the monitor's, calls all of
 * them. It starts with the first handler and ends with the last hsa_shut_down(), or when the library is unloaded.
 *
 * All threads may add to the list, under the lock. Only the monitor's thread removes from it, so what that thread
 * checks and sleeps on stays valid while it does not hold the lock. It calls the functions without the lock.
 *
 * A monitor is the thread and its list. Stopping sets `monitor` to NULL, so a handler that is added afterwards starts a
 * new one.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "hsa/runtime.h"
#include "hsa/watch.h"

struct handler {
    struct list link;
    struct watch watch; /* without a signal it is called once, immediately */
    hsa_amd_signal_handler function;
    void (*plain)(void *arg); /* called instead of `function`, once */
    void *arg;
};

struct monitor {
    pthread_t thread;
    bool stopping;
    bool is_detached; /* the thread frees it */
    struct list handlers;
    struct handler *called; /* being called now; still in the list */
};

static pthread_mutex_t handlers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct monitor *monitor; /* NULL: no thread */
static bool exiting;

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Releases the signal, which may call the broker: the lock must not be held. */
static void handler_release(struct handler *handler)
{
    if (!handler->watch.signal)
        return;
    watch_end(&handler->watch);
    signal_unref(steal_ptr(&handler->watch.signal));
}

static void handler_free(struct handler *handler)
{
    handler_release(handler);
    free(handler);
}

/* True if it wants to be called again. The lock must not be held. */
static bool handler_call(struct handler *handler)
{
    if (handler->plain) {
        handler->plain(handler->arg);
        return false;
    }
    return handler->function(handler->watch.value, handler->arg);
}

static bool handler_is_dead(const struct handler *handler)
{
    return handler->watch.signal && atomic_load(&handler->watch.signal->dead);
}

/*
 * The first handler that is due, or whose signal was destroyed. If there is none, all are in the set. Needs the lock.
 */
static struct handler *monitor_find_due(struct monitor *m, struct watch_set *set)
{
    watch_set_begin(set);
    list_for_each_entry(handler, &m->handlers, struct handler, link)
        if (handler_is_dead(handler) || !handler->watch.signal || watch_check(set, &handler->watch))
            return handler;
    return NULL;
}

/* Needs the lock, and releases it during the call. A handler that is to be called again goes to the end of the list. */
static void monitor_attend(struct monitor *m, struct handler *handler)
{
    bool again = false;

    m->called = handler;
    pthread_mutex_unlock(&handlers_lock);
    if (!handler_is_dead(handler))
        again = handler_call(handler);
    pthread_mutex_lock(&handlers_lock);
    m->called = NULL;
    list_remove(&handler->link);
    if (again) {
        list_append(&m->handlers, &handler->link);
        return;
    }
    pthread_mutex_unlock(&handlers_lock);
    handler_free(handler);
    pthread_mutex_lock(&handlers_lock);
}

static void handlers_free(struct list *handlers)
{
    struct list *link;

    while ((link = list_pop(handlers)))
        handler_free(container_of(link, struct handler, link));
}

static void *monitor_run(void *data)
{
    struct monitor *m = data;
    struct watch_set set;
    bool is_detached;

    pthread_mutex_lock(&handlers_lock);
    while (!m->stopping) {
        struct handler *due = monitor_find_due(m, &set);

        if (due) {
            monitor_attend(m, due);
            continue;
        }
        pthread_mutex_unlock(&handlers_lock);
        watch_set_sleep(&set, DEADLINE_NEVER);
        pthread_mutex_lock(&handlers_lock);
    }
    is_detached = m->is_detached;
    pthread_mutex_unlock(&handlers_lock);
    handlers_free(&m->handlers);
    if (is_detached)
        free(m);
    return NULL;
}

/* ---- starting and stopping --------------------------------------------------------------------------------------- */

static void handlers_note_exit(void)
{
    exiting = true;
}

static void handlers_watch_exit(void)
{
    exiting = atexit(handlers_note_exit) != 0;
}

/* The thread blocks the application's signals. Needs the lock. */
static bool monitor_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct monitor *new;
    sigset_t all, before;
    int error;

    if (monitor)
        return true;
    (void)pthread_once(&once, handlers_watch_exit);
    new = calloc(1, sizeof(*new));
    if (!new)
        return false;
    list_init(&new->handlers);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    error = pthread_create(&new->thread, NULL, monitor_run, new);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        free(new);
        return false;
    }
    monitor = new;
    return true;
}

/* Takes ownership of the handler. */
static hsa_status_t handler_add(struct handler *handler)
{
    bool is_there;

    pthread_mutex_lock(&handlers_lock);
    is_there = monitor_start();
    if (is_there)
        list_append(&monitor->handlers, &handler->link);
    pthread_mutex_unlock(&handlers_lock);
    if (!is_there) {
        handler_free(handler);
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    watch_wake();
    return HSA_STATUS_SUCCESS;
}

/* Stops the monitor from its own thread: inside a handler, which must stay until it returns. */
static void monitor_stop_self(struct monitor *m)
{
    struct list others = LIST_INIT(others);

    pthread_mutex_lock(&handlers_lock);
    m->is_detached = true;
    list_remove(&m->called->link);
    list_splice(&others, &m->handlers);
    pthread_mutex_unlock(&handlers_lock);
    (void)pthread_detach(m->thread);
    handler_release(m->called);
    handlers_free(&others);
}

void handlers_stop(void)
{
    struct monitor *m;

    pthread_mutex_lock(&handlers_lock);
    m = steal_ptr(&monitor);
    if (m)
        m->stopping = true;
    pthread_mutex_unlock(&handlers_lock);
    if (!m)
        return;
    if (pthread_equal(m->thread, pthread_self())) {
        monitor_stop_self(m);
        return;
    }
    watch_wake();
    (void)pthread_join(m->thread, NULL);
    free(m);
}

/* The code is about to be unloaded. If the process is exiting instead, the thread may be in a function that never
 * returns. */
__attribute__((__destructor__)) static void handlers_unload(void)
{
    if (!exiting)
        handlers_stop();
}

void handlers_fork_prepare(void)
{
    pthread_mutex_lock(&handlers_lock);
}

void handlers_fork_parent(void)
{
    pthread_mutex_unlock(&handlers_lock);
}

/* The signals are gone already, so none is released. A handler that called fork() continues. */
void handlers_fork_child(void)
{
    struct monitor *m = steal_ptr(&monitor);

    pthread_mutex_unlock(&handlers_lock);
    pthread_mutex_init(&handlers_lock, NULL);
    if (!m)
        return;
    list_for_each_entry(handler, &m->handlers, struct handler, link)
        handler->watch.signal = NULL;
    m->stopping = m->is_detached = true;
    if (pthread_equal(m->thread, pthread_self()))
        return;
    handlers_free(&m->handlers);
    free(m);
}

/* ---- hsa_ext_amd.h ----------------------------------------------------------------------------------------------- */

hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t cond, hsa_signal_value_t value,
                                          hsa_amd_signal_handler handler, void *arg)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct handler *new;

    if (!ctx || !handler || !signal_is_condition(cond))
        return runtime_refusal(ctx);
    new = calloc(1, sizeof(*new));
    if (!new)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    new->watch = (struct watch){signal_find(signal), cond, value, 0};
    new->function = handler;
    new->arg = arg;
    if (!new->watch.signal) {
        free(new);
        return HSA_STATUS_ERROR_INVALID_SIGNAL;
    }
    watch_begin(&new->watch);
    return handler_add(new);
}

hsa_status_t hsa_amd_async_function(void (*callback)(void *arg), void *arg)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct handler *new;

    if (!ctx || !callback)
        return runtime_refusal(ctx);
    new = calloc(1, sizeof(*new));
    if (!new)
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    new->plain = callback;
    new->arg = arg;
    return handler_add(new);
}
