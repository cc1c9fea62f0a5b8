/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of shared memory within one process: their bytes, damaged handles, and what may be opened when. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/umf/umf/pools/pool_proxy.h>

#include "tests/support/child.h"
#include "tests/unit/umf/handles.h"

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* umfMemoryProviderGetIPCHandleSize, hProvider; umfMemoryProviderGetIPCHandle, hProvider, ptr, providerIpcData;
 * umfMemoryProviderPutIPCHandle, hProvider, providerIpcData */
static void test_same_bytes(void **state)
{
    struct note note = produce(), again;
    size_t bytes = 0;
    uint64_t before;

    assert_success(umfMemoryProviderGetIPCHandleSize(provider, &bytes));
    assert_int_equal(bytes, HANDLE);
    before = observer_requests();
    assert_success(umfMemoryProviderGetIPCHandle(provider, note.address, size, again.handle));
    assert_memory_equal(note.handle, again.handle, HANDLE);
    assert_success(umfMemoryProviderGetIPCHandle(provider, note.address + page, page, again.handle));
    assert_memory_not_equal(note.handle, again.handle, HANDLE);
    assert_int_equal(observer_requests(), before);
    assert_success(umfMemoryProviderPutIPCHandle(provider, again.handle));
    assert_success(umfMemoryProviderPutIPCHandle(provider, note.handle));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    /* even after the memory is gone */
    assert_success(umfMemoryProviderPutIPCHandle(provider, note.handle));
}

static void test_whose(void **state)
{
    umf_memory_provider_handle_t other;
    struct note note = produce();
    char *opened, local;

    assert_success(create(UMF_PROTECTION_READ, &other));
    opened = open_it(&note);
    assert_result(umfMemoryProviderGetIPCHandle(other, note.address, size, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, &local, 1, note.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, opened, size, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, note.address, size + page, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, note.address, 0, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderGetIPCHandle(provider, note.address + 1, page, note.handle),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderPutIPCHandle(other, note.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    /* opened memory is closed, not freed; and only by the provider that opened it */
    assert_result(umfMemoryProviderFree(provider, opened, size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(other, opened, size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, opened, size));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    umfMemoryProviderDestroy(other);
}

static void test_damaged(void **state)
{
    struct note note = produce(), damaged;
    uint8_t zeros[HANDLE] = {0};
    void *ptr = &ptr;

    for (unsigned bit = 0; bit < HANDLE * 8; bit++) {
        damaged = note;
        damaged.handle[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_result(umfMemoryProviderOpenIPCHandle(provider, damaged.handle, &ptr),
                      UMF_RESULT_ERROR_INVALID_ARGUMENT);
        assert_result(umfMemoryProviderPutIPCHandle(provider, damaged.handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    assert_result(umfMemoryProviderOpenIPCHandle(provider, zeros, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_ptr_equal(ptr, &ptr);
    assert_success(umfMemoryProviderFree(provider, note.address, size));
}

/* A forger can compute the checksum, and no more. */
static void seal(uint8_t *handle)
{
    uint32_t check = UINT32_C(2166136261);

    for (size_t i = 8; i < HANDLE; i++)
        check = (check ^ handle[i]) * UINT32_C(16777619);
    memcpy(handle + 4, &check, sizeof(check));
}

static void test_forged(void **state)
{
    const struct note note = produce();
    const struct {
        uint64_t offset, length;
    } parts[] = {
        {0, size + 1}, {0, UINT64_MAX}, {page, size},    {size, page}, {UINT64_MAX - page + 1, page},
        {1, page},     {0, 0},          {UINT64_MAX, 2}, {page, 0},
    };
    struct note forged;
    void *ptr;

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        forged = note;
        memcpy(forged.handle + 40, &parts[i].offset, 8);
        memcpy(forged.handle + 48, &parts[i].length, 8);
        seal(forged.handle);
        assert_result(umfMemoryProviderOpenIPCHandle(provider, forged.handle, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    for (unsigned i = 8; i < 40; i++) {
        forged = note;
        forged.handle[i] ^= 1;
        seal(forged.handle);
        assert_result(umfMemoryProviderOpenIPCHandle(provider, forged.handle, &ptr), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    }
    forged = note;
    seal(forged.handle);
    assert_memory_equal(forged.handle, note.handle, HANDLE);
    assert_success(umfMemoryProviderFree(provider, note.address, size));
}

/* ---- in one process ---------------------------------------------------------------------------------------------- */

/* umfMemoryProviderOpenIPCHandle, hProvider, providerIpcData, ptr; umfMemoryProviderCloseIPCHandle, hProvider, ptr */
static void test_here(void **state)
{
    struct note note = produce();
    char *one = open_it(&note), *two = open_it(&note);

    assert_true(one != note.address && two != note.address && one != two);
    assert_string_equal(((struct entry *)(void *)one)->text, "first");
    one[page] = 3;
    assert_true(two[page] == 3 && note.address[page] == 3);
    /* in any order; the size need not be known */
    assert_success(umfMemoryProviderCloseIPCHandle(provider, one, 8));
    assert_int_equal(two[page], 3);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, one, size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_result(umfMemoryProviderCloseIPCHandle(provider, two + page, size), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    assert_int_equal(two[page], 3);
    /* it can be opened as long as somebody has it */
    one = open_it(&note);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, two, size));
    assert_string_equal(((struct entry *)(void *)one)->text, "first");
    assert_success(umfMemoryProviderCloseIPCHandle(provider, one, size));
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
    assert_result(umfMemoryProviderOpenIPCHandle(provider, note.handle, (void **)&one),
                  UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umf_profile(UMF_MEMORYD_PROFILE_UPSTREAM);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, two, size));
}

/* A part has a handle of its own. What was freed of the rest cannot be seen through it. */
static void test_parts(void **state)
{
    struct note note = produce(), part;
    char *opened;

    note.address[2 * page] = 9;
    assert_success(umfMemoryProviderAllocationSplit(provider, note.address, size, 2 * page));
    assert_success(umfMemoryProviderGetIPCHandle(provider, note.address + 2 * page, page + 100, part.handle));
    assert_success(umfMemoryProviderFree(provider, note.address, 2 * page));
    opened = open_it(&part);
    assert_int_equal(opened[0], 9);
    /* a part that was freed while it was open elsewhere does not change there */
    assert_success(umfMemoryProviderFree(provider, note.address + 2 * page, size - 2 * page));
    assert_int_equal(opened[0], 9);
    assert_success(umfMemoryProviderCloseIPCHandle(provider, opened, page + 100));
}

static void test_end_closes(void **state)
{
    umf_memory_provider_handle_t consumer;
    struct note note = produce();
    void *ptr;

    assert_success(create(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, &consumer));
    assert_success(umfMemoryProviderOpenIPCHandle(consumer, note.handle, &ptr));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    assert_true(WAIT_UNTIL(observer_buffers() == 1));
    umfMemoryProviderDestroy(consumer);
    assert_true(WAIT_UNTIL(observer_buffers() == 0));
}

static void do_write(int channel, void *context)
{
    (void)channel;
    *(volatile char *)context = 1;
}

/* Consumers get no more rights than the producer had, nor more than they asked for. */
static void test_rights(void **state)
{
    umf_memory_provider_handle_t reader;
    struct note note = produce();
    void *ptr, *source;

    assert_success(create(UMF_PROTECTION_READ, &reader));
    assert_success(umfMemoryProviderOpenIPCHandle(reader, note.handle, &ptr));
    assert_string_equal(((struct entry *)ptr)->text, "first");
    assert_int_equal(child_signal(do_write, ptr), SIGSEGV);
    assert_success(umfMemoryProviderCloseIPCHandle(reader, ptr, size));
    assert_success(umfMemoryProviderFree(provider, note.address, size));
    assert_success(umfMemoryProviderAlloc(reader, page, 0, &source));
    assert_success(umfMemoryProviderGetIPCHandle(reader, source, page, note.handle));
    umfMemoryProviderDestroy(reader);
}

static void *share_and_open(void *arg)
{
    const char *address = arg;
    uint8_t handle[HANDLE];

    for (int i = 0; i < 50; i++) {
        void *ptr;

        assert_success(umfMemoryProviderGetIPCHandle(provider, address, size, handle));
        assert_success(umfMemoryProviderOpenIPCHandle(provider, handle, &ptr));
        assert_string_equal(((struct entry *)ptr)->text, "first");
        assert_success(umfMemoryProviderCloseIPCHandle(provider, ptr, size));
        assert_success(umfMemoryProviderPutIPCHandle(provider, handle));
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[6];
    void *ptr;

    assert_success(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    fill(ptr);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, share_and_open, ptr), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_success(umfMemoryProviderFree(provider, ptr, size));
}

/* Further memory of a slab that has a handle, and is open, needs no request. */
static void test_pools_ask_once(void **state)
{
    umf_memory_pool_handle_t producer, consumer;
    umf_ipc_handle_t handle, second;
    void *ptr, *a, *b;
    uint64_t before;
    size_t bytes;

    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, 0, &producer));
    assert_success(umfPoolCreate(umfProxyPoolOps(), provider, NULL, 0, &consumer));
    ptr = umfPoolMalloc(producer, size);
    assert_non_null(ptr);
    fill(ptr);
    assert_success(umfGetIPCHandle(ptr, &handle, &bytes));
    assert_success(umfOpenIPCHandle(consumer, handle, &a));
    before = observer_requests();
    assert_success(umfGetIPCHandle((char *)ptr + size - page, &second, &bytes));
    assert_success(umfOpenIPCHandle(consumer, second, &b));
    assert_string_equal(((struct entry *)b)->text, "second");
    assert_ptr_equal(b, (char *)a + size - page);
    assert_ptr_equal(umfPoolByPtr(b), consumer);
    assert_success(umfCloseIPCHandle(a));
    assert_int_equal(observer_requests(), before);
    assert_success(umfCloseIPCHandle(b));
    assert_result(umfCloseIPCHandle(b), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_success(umfPutIPCHandle(handle));
    assert_success(umfPutIPCHandle(second));
    assert_success(umfPoolFree(producer, ptr));
    umfPoolDestroy(consumer);
    umfPoolDestroy(producer);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

/* ---- parts of one buffer ----------------------------------------------------------------------------------------- */

#define OPENINGS 60

/* Overlapping parts, opened by two providers in any order, are all at the buffer's home. Each is closed by the provider
 * that opened it, in any order, and takes only itself away. */
static void test_overlapping_parts(void **state)
{
    struct {
        umf_memory_provider_handle_t by;
        size_t first, n;
        char *at;
    } open[OPENINGS];
    umf_memory_provider_handle_t providers[2] = {provider, NULL};
    struct memclient_buffer *buffer;
    struct memclient_token token;
    unsigned seed = 5;
    uint8_t handle[HANDLE];
    size_t pages;
    char *home;

    assert_success(umfMemoryProviderCreate(umfMemorydMemoryProviderOps(), NULL, &providers[1]));
    assert_int_equal(memclient_alloc(NULL, 16 * page_size(), NULL, &buffer), 0);
    assert_int_equal(memclient_share(buffer, NULL, &token), 0);
    pages = memclient_buffer_bytes(buffer) / memclient_buffer_granule(buffer);
    home = memclient_buffer_home(buffer);
    for (int i = 0; i < OPENINGS; i++) {
        size_t granule = memclient_buffer_granule(buffer);

        open[i].by = providers[rand_r(&seed) % 2];
        open[i].first = (size_t)rand_r(&seed) % pages;
        open[i].n = 1 + (size_t)rand_r(&seed) % (pages - open[i].first);
        assert_success(umfMemorydProviderHandle(&token, open[i].first * granule, open[i].n * granule, handle));
        assert_success(umfMemoryProviderOpenIPCHandle(open[i].by, handle, (void **)&open[i].at));
        assert_ptr_equal(open[i].at, home + open[i].first * granule);
        open[i].at[open[i].n * granule - 1] = (char)i;
    }
    for (int left = OPENINGS; left; left--) {
        int which = (int)((unsigned)rand_r(&seed) % (unsigned)left);
        struct memclient_buffer *found;
        size_t granule = memclient_buffer_granule(buffer);

        for (int i = 0; i < left; i++) {
            open[i].at[0] = (char)i;
            assert_success(umfMemorydGetBuffer(open[i].at + open[i].n * granule - 1, &found));
            assert_int_equal(memclient_buffer_id(found), memclient_buffer_id(buffer));
            memclient_buffer_unref(found);
        }
        assert_success(umfMemoryProviderCloseIPCHandle(open[which].by, open[which].at, open[which].n * granule));
        open[which] = open[left - 1];
    }
    assert_result(umfMemorydGetBuffer(home, &buffer), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    umfMemoryProviderDestroy(providers[1]);
    memclient_buffer_unref(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_same_bytes), TEST(test_whose),   TEST(test_damaged),           TEST(test_forged),
        TEST(test_here),       TEST(test_parts),   TEST(test_overlapping_parts), TEST(test_end_closes),
        TEST(test_rights),     TEST(test_threads), TEST(test_pools_ask_once),
    };

    return test_run(tests, group_setup, umf_group_teardown);
}
