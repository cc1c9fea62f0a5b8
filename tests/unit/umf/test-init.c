/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library as a whole: balanced and unbalanced umfInit() and umfTearDown(), loading and unloading, the version, the
 * profile, and forks, also during calls of other threads.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memclient/umf/umf.h>
#include <memclient/umf/umf/ipc.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>

#include "tests/support/child.h"
#include "tests/unit/umf/mock.h"

#define SIZE ((size_t)8192)

static void use_everything(void)
{
    umf_memory_provider_handle_t provider = mock_of(MOCK_MALLOC);
    umf_memory_pool_handle_t pool = proxy_of(provider);
    void *ptr = umfPoolMalloc(pool, 10);

    assert_ptr_equal(umfPoolByPtr(ptr), pool);
    assert_success(umfFree(ptr));
    umfPoolDestroy(pool);
    umfMemoryProviderDestroy(provider);
}

static void begins_and_ends(void **state)
{
    assert_int_equal(umfGetCurrentVersion(), UMF_VERSION_CURRENT);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(umfInit(), 0);
    use_everything();
    for (unsigned i = 0; i < 5; i++)
        umfTearDown();
    use_everything();
    assert_int_equal(umfInit(), 0);
    use_everything();
}

/* UMF_MAKE_VERSION(_major, _minor): generates a version; UMF_MAJOR_VERSION(_ver), UMF_MINOR_VERSION(_ver): extract
 * its parts; UMF_VERSION_CURRENT: that of the headers; umfGetCurrentVersion(): of the library, which umfInit() and
 * umfTearDown() begin and end. */
static void versions(void **state)
{
    assert_int_equal(UMF_MAJOR_VERSION(UMF_MAKE_VERSION(3, 14)), 3);
    assert_int_equal(UMF_MINOR_VERSION(UMF_MAKE_VERSION(3, 14)), 14);
    assert_int_equal(UMF_VERSION_CURRENT, UMF_MAKE_VERSION(0, 9));
    assert_int_equal(umfInit(), 0);
    assert_int_equal(umfGetCurrentVersion(), UMF_VERSION_CURRENT);
    umfTearDown();
}

/* In a process that has not loaded it yet, and ends it once too often each time. */
static void child_loads(int channel, void *context)
{
    (void)channel;
    (void)context;
    for (unsigned i = 0; i < 4; i++) {
        void *library = dlopen("libmemclient-umf.so.0", RTLD_NOW);
        void (*tear_down)(void);
        umf_memory_pool_handle_t (*by_ptr)(const void *);

        CHECK(library);
        *(void **)&tear_down = dlsym(library, "umfTearDown");
        *(void **)&by_ptr = dlsym(library, "umfPoolByPtr");
        CHECK(tear_down && by_ptr);
        tear_down();
        CHECK(!by_ptr(&library));
        CHECK(!dlclose(library));
    }
}

static void loads_and_unloads(void **state)
{
    child_run(child_loads, NULL);
}

/* umfMemorydSetProfile, profile */
static void profiles(void **state)
{
    assert_success(umfMemorydSetProfile(UMF_MEMORYD_PROFILE_UPSTREAM));
    assert_result(umfMemorydSetProfile((enum umf_memoryd_profile_t)2), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemorydSetProfile(UMF_MEMORYD_PROFILE_DOCUMENT));
}

/* ---- forks ------------------------------------------------------------------------------------------------------- */

struct family {
    umf_memory_pool_handle_t pool, other;
    char *ptr;
    char *opened;
    umf_ipc_handle_t handle;
};

/* The child has the parent's pools, their memory, and what is open in them, as its own. */
static void child_uses_it(int channel, void *context)
{
    struct family *family = context;
    char *again;
    void *ptr;

    (void)channel;
    CHECK(umfPoolByPtr(family->ptr) == family->pool);
    CHECK(umfPoolByPtr(family->opened) == family->other);
    CHECK(umfOpenIPCHandle(family->other, family->handle, (void **)&again) == UMF_RESULT_SUCCESS);
    CHECK(again == family->opened);
    CHECK(umfCloseIPCHandle(again) == UMF_RESULT_SUCCESS);
    CHECK(umfCloseIPCHandle(again) == UMF_RESULT_SUCCESS);
    CHECK(!umfPoolByPtr(again));
    CHECK(umfFree(family->ptr) == UMF_RESULT_SUCCESS);
    CHECK(!umfPoolByPtr(family->ptr));
    ptr = umfPoolMalloc(family->pool, SIZE);
    CHECK(umfPoolByPtr(ptr) == family->pool);
    umfPoolDestroy(family->other);
    umfPoolDestroy(family->pool);
}

static struct family begin(umf_memory_provider_handle_t provider)
{
    struct family family = {.pool = proxy_of(provider), .other = proxy_of(provider)};
    size_t size;

    family.ptr = umfPoolMalloc(family.pool, SIZE);
    assert_success(umfGetIPCHandle(family.ptr, &family.handle, &size));
    return family;
}

static void end(struct family *family)
{
    assert_success(umfPutIPCHandle(family->handle));
    assert_success(umfFree(family->ptr));
    umfPoolDestroy(family->other);
    umfPoolDestroy(family->pool);
}

static void forks(void **state)
{
    struct mock mock = {.calls = {0}};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    struct family family = begin(provider);

    assert_success(umfOpenIPCHandle(family.other, family.handle, (void **)&family.opened));
    child_run(child_uses_it, &family);
    assert_ptr_equal(umfPoolByPtr(family.ptr), family.pool);
    assert_success(umfCloseIPCHandle(family.opened));
    end(&family);
    umfMemoryProviderDestroy(provider);
}

static atomic_bool stop;

static void *work(void *argument)
{
    struct family *family = argument;
    void *opened;

    while (!stop) {
        (void)umfFree(umfPoolMalloc(family->pool, 100));
        if (umfOpenIPCHandle(family->other, family->handle, &opened) == UMF_RESULT_SUCCESS)
            (void)umfCloseIPCHandle(opened);
    }
    return NULL;
}

static void child_works(int channel, void *context)
{
    struct family *family = context;
    void *opened;

    (void)channel;
    CHECK(umfPoolByPtr(family->ptr) == family->pool);
    CHECK(umfFree(umfPoolMalloc(family->pool, 100)) == UMF_RESULT_SUCCESS);
    CHECK(umfOpenIPCHandle(family->other, family->handle, &opened) == UMF_RESULT_SUCCESS);
    CHECK(umfCloseIPCHandle(opened) == UMF_RESULT_SUCCESS);
    umfPoolDestroy(family->other);
    /* no leak check: the threads that vanished held something */
    raise(SIGKILL);
}

/* Wherever the other threads were when they vanished, nobody waits for them. */
static void forks_amid_threads(void **state)
{
    struct mock mock = {.opens_in_place = false};
    umf_memory_provider_handle_t provider;
    struct family family;
    pthread_t threads[4];

    child_need_malloc();
    provider = mock_new(&mock);
    family = begin(provider);
    stop = false;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &family), 0);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(child_signal(child_works, &family), SIGKILL);
    stop = true;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    end(&family);
    umfMemoryProviderDestroy(provider);
}

/* One thread is certain to be opening, and the next time closing, while the parent forks. */
static pthread_barrier_t at_provider, go_on;
static pid_t parent;

static void block(void)
{
    if (getpid() != parent)
        return;
    pthread_barrier_wait(&at_provider);
    pthread_barrier_wait(&go_on);
}

static void *open_and_close(void *argument)
{
    struct family *family = argument;
    void *opened;

    if (umfOpenIPCHandle(family->other, family->handle, &opened) != UMF_RESULT_SUCCESS)
        return family;
    return umfCloseIPCHandle(opened) == UMF_RESULT_SUCCESS ? NULL : family;
}

static void forks_amid_opening_and_closing(void **state)
{
    struct mock mock = {.on_open = block, .on_close = block};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    struct family family = begin(provider);
    pthread_t thread;
    void *wrong;

    parent = getpid();
    pthread_barrier_init(&at_provider, NULL, 2);
    pthread_barrier_init(&go_on, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, open_and_close, &family), 0);
    for (unsigned i = 0; i < 2; i++) {
        pthread_barrier_wait(&at_provider);
        assert_int_equal(child_signal(child_works, &family), SIGKILL);
        pthread_barrier_wait(&go_on);
    }
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    pthread_barrier_destroy(&at_provider);
    pthread_barrier_destroy(&go_on);
    end(&family);
    umfMemoryProviderDestroy(provider);
}

/* A provider that forks while it opens: its own thread is in the child, and finishes there. */
static pid_t forked;

static void fork_within(void)
{
    forked = fork();
}

static void forks_within(void **state)
{
    struct mock mock = {.on_open = fork_within};
    umf_memory_provider_handle_t provider = mock_new(&mock);
    struct family family = begin(provider);
    void *opened = NULL;
    bool fine;
    int status;

    fine = umfOpenIPCHandle(family.other, family.handle, &opened) == UMF_RESULT_SUCCESS &&
           umfPoolByPtr(opened) == family.other && umfCloseIPCHandle(opened) == UMF_RESULT_SUCCESS;
    if (!forked)
        _exit(fine ? 0 : 1);
    assert_true(fine);
    assert_ok(forked);
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_int_equal(status, 0);
    end(&family);
    umfMemoryProviderDestroy(provider);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions),
        cmocka_unit_test(begins_and_ends),
        cmocka_unit_test(loads_and_unloads),
        cmocka_unit_test(profiles),
        cmocka_unit_test(forks),
        cmocka_unit_test(forks_amid_threads),
        cmocka_unit_test(forks_amid_opening_and_closing),
        cmocka_unit_test(forks_within),
    };

    return test_run(tests, NULL, NULL);
}
