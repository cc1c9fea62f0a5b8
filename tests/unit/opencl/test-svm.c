/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps of shared virtual memory, without OpenCL: allocating and freeing, where the memory comes from, how it is seen,
 * and what is refused.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"
#include "tests/unit/opencl/opencl.h"

#define RW MEMCLIENT_SVM_READ_WRITE

static struct memclient_svm *svm;

static int set_up(void **state)
{
    assert_done(memclient_svm_create(NULL, &svm));
    return 0;
}

static int clean_up(void **state)
{
    memclient_svm_destroy(svm);
    return svm_nothing_left(state);
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* memclient_svm_alloc(): flags, size, alignment, from svm to ptr. */
static void allocates_every_size_and_alignment(void **state)
{
    static const uint64_t sizes[] = {1,    63,   64,    65,     100,    128,    129,     1000,          1024,   4095,
                                     4096, 4097, 65536, 100000, 262144, 262145, 1 << 20, (1 << 20) + 1, 5 << 20};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t alignment = 0; alignment <= 128; alignment = alignment ? alignment * 2 : 1) {
            char *ptr;

            assert_done(memclient_svm_alloc(svm, RW, sizes[i], alignment, (void **)&ptr));
            assert_int_equal((uintptr_t)ptr % (alignment ? alignment : 128), 0);
            memset(ptr, (int)alignment, sizes[i]);
            assert_done(memclient_svm_free(svm, ptr));
        }
}

static void keeps_allocations_apart(void **state)
{
    enum { N = 1000 };
    char *ptrs[N];
    size_t size = 0;

    for (unsigned i = 0; i < N; i++) {
        size = size % 5000 + 37;
        ptrs[i] = svm_allocate(svm, size);
        memset(ptrs[i], (int)i, size);
    }
    size = 0;
    for (unsigned i = 0; i < N; i++) {
        size = size % 5000 + 37;
        for (size_t at = 0; at < size; at++)
            assert_int_equal(ptrs[i][at], (char)i);
        assert_done(memclient_svm_free(svm, ptrs[i]));
    }
}

static void refuses_by_the_rules(void **state)
{
    const struct memclient_svm_device device = {4096, MEMCLIENT_SVM_CAN_COARSE_GRAIN_BUFFER, 64, false};
    struct memclient_svm_options options = MEMCLIENT_SVM_OPTIONS_INIT;
    struct memclient_svm *small;
    void *ptr = &ptr;

    options.devices = &device;
    options.n_devices = 1;
    assert_done(memclient_svm_create(&options, &small));
    assert_refused(memclient_svm_alloc(small, MEMCLIENT_SVM_FINE_GRAIN_BUFFER, 1, 0, &ptr), -EINVAL);
    assert_refused(memclient_svm_alloc(small, RW, 4097, 0, &ptr), -EINVAL);
    assert_refused(memclient_svm_alloc(small, RW, 1, 128, &ptr), -EINVAL);
    assert_refused(memclient_svm_alloc(small, 1 << 5, 1, 0, &ptr), -EINVAL);
    assert_ptr_equal(ptr, &ptr);
    assert_done(memclient_svm_alloc(small, 0, 4096, 64, &ptr));
    assert_done(memclient_svm_free(small, ptr));
    memclient_svm_destroy(small);
}

/* memclient_svm_create(): options, to svm. */
static void refuses_options_out_of_range(void **state)
{
    const struct memclient_svm_device odd = {4096, 1, 96, false};
    struct memclient_svm_options options = MEMCLIENT_SVM_OPTIONS_INIT;
    struct memclient_svm *made = NULL;

    options.flags = 2;
    assert_refused(memclient_svm_create(&options, &made), -EINVAL);
    options.flags = 0;
    options.n_nodes = 1;
    assert_refused(memclient_svm_create(&options, &made), -EINVAL);
    options.n_nodes = 0;
    options.devices = &odd;
    options.n_devices = 1;
    assert_refused(memclient_svm_create(&options, &made), -EINVAL);
    options.size = 0;
    assert_refused(memclient_svm_create(&options, &made), -EINVAL);
    assert_refused(memclient_svm_create(NULL, NULL), -EINVAL);
    assert_null(made);
    memclient_svm_destroy(NULL);
}

/* An old program has shorter structs, a new one longer ones: memclient_svm_options, memclient_svm_info. */
static void structs_of_other_versions_have_other_sizes(void **state)
{
    struct {
        struct memclient_svm_options options;
        uint64_t later;
    } larger = {.options = MEMCLIENT_SVM_OPTIONS_INIT};
    struct memclient_svm_options smaller = {.size = offsetof(struct memclient_svm_options, flags), .flags = ~0U};
    struct {
        struct memclient_svm_info info;
        uint64_t later;
    } info = {.later = 9};
    struct memclient_svm *made;
    void *ptr = svm_allocate(svm, 100);

    assert_done(memclient_svm_create(&smaller, &made)); /* the flags are beyond its size */
    memclient_svm_destroy(made);
    larger.options.size = sizeof(larger);
    assert_done(memclient_svm_create(&larger.options, &made));
    memclient_svm_destroy(made);
    larger.later = 1;
    assert_refused(memclient_svm_create(&larger.options, &made), -EINVAL);

    info.info = (struct memclient_svm_info){.size = offsetof(struct memclient_svm_info, length), .length = 9};
    assert_done(memclient_svm_query(ptr, &info.info));
    assert_true(info.info.address == ptr && info.info.length == 9);
    info.info.size = sizeof(info);
    assert_done(memclient_svm_query(ptr, &info.info));
    assert_true(info.info.size == sizeof(info) && info.info.length == 100 && info.later == 9);
    assert_done(memclient_svm_free(svm, ptr));
}

static void takes_memory_of_the_nodes_it_is_told(void **state)
{
    struct memclient_svm_options options = MEMCLIENT_SVM_OPTIONS_INIT;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    const uint32_t nodes[] = {1}, no_node[] = {63};
    struct memclient_buffer *buf;
    struct memclient_svm *on_node;
    uint64_t offset, length;
    void *ptr;

    options.nodes = nodes;
    options.n_nodes = 1;
    options.placement = MEMCLIENT_PLACEMENT_BIND;
    assert_done(memclient_svm_create(&options, &on_node));
    ptr = svm_allocate(on_node, 1000);
    assert_done(memclient_svm_buffer(ptr, &buf, &offset, &length));
    assert_int_equal(memclient_buffer_query(buf, &info), 0);
    assert_int_equal(info.n_nodes, 1);
    assert_int_equal(info.nodes[0], 1);
    (void)memclient_buffer_unref(buf);
    memclient_svm_destroy(on_node);

    options.nodes = no_node;
    assert_done(memclient_svm_create(&options, &on_node));
    assert_refused(memclient_svm_alloc(on_node, RW, 1, 0, &ptr), -ENXIO);
    memclient_svm_destroy(on_node);
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

static void frees_only_what_starts_there(void **state)
{
    struct memclient_svm *other = svm_create(0, 0);
    char *ptr = svm_allocate(svm, 1000);
    int variable;

    assert_done(memclient_svm_free(svm, NULL));
    assert_refused(memclient_svm_free(svm, ptr + 1), -EINVAL);
    assert_refused(memclient_svm_free(svm, &variable), -EINVAL);
    assert_refused(memclient_svm_free(other, ptr), -EINVAL);
    assert_refused(memclient_svm_free(NULL, ptr), -EINVAL);
    assert_done(memclient_svm_free(svm, ptr));
    assert_refused(memclient_svm_free(svm, ptr), -EINVAL);
    memclient_svm_destroy(other);
}

/* memclient_svm_destroy() of svm. */
static void gives_back_what_was_not_freed(void **state)
{
    struct memclient_svm *other = svm_create(0, 1 << 20);

    for (unsigned i = 0; i < 100; i++)
        (void)svm_allocate(other, 1000 * i + 1);
    (void)memclient_svm_free(other, svm_allocate(other, 5000));
    assert_true(svm_buffers() > 0);
    memclient_svm_destroy(other);
}

static void asks_nothing_of_the_broker_before_memory_is_needed(void **state)
{
    struct memclient_svm *other;
    uint64_t before;

    /* a call, which is answered after what was given back before */
    assert_int_equal(memclient_broker_ping(NULL), 0);
    before = svm_requests();
    other = svm_create(0, 0);
    memclient_svm_destroy(other);
    assert_int_equal(svm_requests(), before);
}

static void small_ones_make_no_calls(void **state)
{
    void *first = svm_allocate(svm, 1000);
    uint64_t before = svm_requests();

    for (unsigned i = 0; i < 500; i++)
        assert_done(memclient_svm_free(svm, svm_allocate(svm, 1000)));
    assert_int_equal(svm_requests(), before);
    assert_done(memclient_svm_free(svm, first));
}

/* A worker of an OpenCL driver must not be kept waiting by a broker that stands still. */
static void frees_while_the_broker_stands_still(void **state)
{
    struct memclient_svm *separate = svm_create(MEMCLIENT_SVM_SEPARATE, 0);
    pid_t broker = broker_child(&svm_broker);
    void *ptrs[10];

    for (unsigned i = 0; i < 10; i++)
        ptrs[i] = svm_allocate(separate, 100000);
    assert_int_equal(svm_buffers(), 10);
    assert_int_equal(kill(broker, SIGSTOP), 0);
    for (unsigned i = 0; i < 10; i++)
        assert_done(memclient_svm_free(separate, ptrs[i]));
    assert_int_equal(kill(broker, SIGCONT), 0);
    assert_true(WAIT_UNTIL(svm_buffers() == 0));
    memclient_svm_destroy(separate);
}

enum { MUCH = 2048 }; /* kilobytes are more than a slab holds */
static unsigned allocated;

static void *allocate_much(void *arg)
{
    void **ptrs = arg;

    for (unsigned i = 0; i < MUCH && !memclient_svm_alloc(svm, RW, 1024, 0, &ptrs[i]); i++)
        __atomic_store_n(&allocated, i + 1, __ATOMIC_RELAXED);
    return NULL;
}

/* It gets no further. */
static bool is_stuck(void)
{
    unsigned before = __atomic_load_n(&allocated, __ATOMIC_RELAXED);

    (void)poll(NULL, 0, QUIET_MS);
    return __atomic_load_n(&allocated, __ATOMIC_RELAXED) == before;
}

/* Nor by a thread that waits for that broker amid an allocation of the same size. */
static void frees_while_another_thread_waits_for_the_broker(void **state)
{
    pid_t broker = broker_child(&svm_broker);
    static void *theirs[MUCH], *ours[100];
    pthread_t thread;

    for (unsigned i = 0; i < 100; i++)
        ours[i] = svm_allocate(svm, 1024);
    assert_int_equal(kill(broker, SIGSTOP), 0);
    assert_int_equal(pthread_create(&thread, NULL, allocate_much, theirs), 0);
    assert_true(WAIT_UNTIL(is_stuck()));
    for (unsigned i = 0; i < 100; i++)
        assert_done(memclient_svm_free(svm, ours[i]));
    assert_int_equal(kill(broker, SIGCONT), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(allocated, MUCH);
    for (unsigned i = 0; i < MUCH; i++)
        assert_done(memclient_svm_free(svm, theirs[i]));
}

static void hundred_thousand_kilobytes_need_few_mappings(void **state)
{
    enum { N = 100000 };
    void **ptrs = calloc(N, sizeof(*ptrs));

    assert_non_null(ptrs);
    for (unsigned i = 0; i < N; i++) {
        ptrs[i] = svm_allocate(svm, 1024);
        *(unsigned *)ptrs[i] = i;
    }
    assert_true(svm_buffers() < 200);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(*(unsigned *)ptrs[i], i);
        assert_done(memclient_svm_free(svm, ptrs[i]));
    }
    free(ptrs);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    void *given[200]; /* to be freed by it */
    bool ok;
};

static void *work(void *arg)
{
    struct worker *worker = arg;

    worker->ok = true;
    for (unsigned i = 0; i < 200; i++) {
        void *ptr;

        worker->ok &= !memclient_svm_free(svm, worker->given[i]);
        worker->ok &= !memclient_svm_alloc(svm, RW, i * 997 + 1, 0, &ptr);
        memset(ptr, 1, i * 997 + 1);
        worker->ok &= !memclient_svm_free(svm, ptr);
    }
    return NULL;
}

static void frees_from_other_threads(void **state)
{
    struct worker workers[4];

    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 200; j++)
            workers[i].given[j] = svm_allocate(svm, j * 1999 + 1);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].ok);
    }
}

/* ---- quarantine -------------------------------------------------------------------------------------------------- */

static void write_there(int channel, void *context)
{
    (void)channel;
    *(volatile char *)context = 1;
}

static void does_not_use_again_what_is_in_quarantine(void **state)
{
    struct memclient_svm *careful = svm_create(0, 100 * 1024);
    char *first = svm_allocate(careful, 1024);

    memset(first, 7, 1024);
    assert_done(memclient_svm_free(careful, first));
    for (unsigned i = 0; i < 99; i++) {
        char *ptr = svm_allocate(careful, 1024);

        assert_ptr_not_equal(ptr, first);
        memset(ptr, 1, 1024);
        assert_done(memclient_svm_free(careful, ptr));
    }
    /* small ones stay as they were */
    assert_int_equal(first[500], 7);
    memclient_svm_destroy(careful);
}

static void large_ones_in_quarantine_are_inaccessible(void **state)
{
    struct memclient_svm *careful = svm_create(0, 1 << 20);
    char *large = svm_allocate(careful, 400000);

    *large = 1;
    assert_done(memclient_svm_free(careful, large));
    assert_int_equal(child_signal(write_there, large), SIGSEGV);
    assert_int_equal(svm_buffers(), 1);
    /* more than that is in no quarantine at all */
    assert_done(memclient_svm_free(careful, svm_allocate(careful, 2 << 20)));
    assert_true(WAIT_UNTIL(svm_buffers() == 1));
    /* the third time the first one has to go */
    assert_done(memclient_svm_free(careful, svm_allocate(careful, 400000)));
    assert_done(memclient_svm_free(careful, svm_allocate(careful, 400000)));
    assert_true(WAIT_UNTIL(svm_buffers() == 2));
    memclient_svm_destroy(careful);
}

/* struct memclient_svm_options: quarantine; with a limit that has no room for both. */
static void room_is_made_of_quarantine_and_what_is_on_its_way(void **state)
{
    struct memclient_svm *careful = svm_create(0, (uint64_t)1 << 30), *plain = svm_create(0, 0);
    const uint64_t most_of_it = 150 << 20;
    void *ptr, *other = NULL;

    ptr = svm_allocate(careful, most_of_it);
    assert_refused(memclient_svm_alloc(careful, RW, most_of_it, 0, &other), -EDQUOT);
    assert_null(other);
    for (unsigned i = 0; i < 3; i++) {
        assert_done(memclient_svm_free(careful, ptr));
        ptr = svm_allocate(careful, most_of_it);
    }
    memclient_svm_destroy(careful);
    /* often, as it may arrive at any time */
    for (unsigned i = 0; i < 100; i++)
        assert_done(memclient_svm_free(plain, svm_allocate(plain, most_of_it)));
    memclient_svm_destroy(plain);
}

/* ---- being seen -------------------------------------------------------------------------------------------------- */

/* MEMCLIENT_SVM_INFO_INIT: size; of ptr: svm, address, length, flags, ordinal, imported. */
static void tells_what_an_address_is(void **state)
{
    struct memclient_svm_info info = MEMCLIENT_SVM_INFO_INIT;
    uint64_t ordinal;
    char *ptr;

    assert_done(memclient_svm_alloc(svm, MEMCLIENT_SVM_READ_ONLY, 1000, 0, (void **)&ptr));
    assert_done(memclient_svm_query(ptr, &info));
    assert_ptr_equal(info.address, ptr);
    assert_int_equal(info.length, 1000);
    assert_int_equal(info.flags, MEMCLIENT_SVM_READ_ONLY);
    assert_ptr_equal(info.svm, svm);
    assert_false(info.imported);
    ordinal = info.ordinal;
    assert_done(memclient_svm_query(ptr + 999, &info));
    assert_ptr_equal(info.address, ptr);
    assert_refused(memclient_svm_query(ptr + 1000, &info), -EFAULT);
    assert_refused(memclient_svm_query(&info, &info), -EFAULT);
    assert_refused(memclient_svm_query(NULL, &info), -EFAULT);
    assert_refused(memclient_svm_query((void *)UINTPTR_MAX, &info), -EFAULT);
    assert_done(memclient_svm_free(svm, ptr));
    assert_refused(memclient_svm_query(ptr, &info), -EFAULT);
    ptr = svm_allocate(svm, 1);
    assert_done(memclient_svm_query(ptr, &info));
    assert_int_equal(info.ordinal, ordinal + 1);
    info.size = 0;
    assert_refused(memclient_svm_query(ptr, &info), -EINVAL);
}

struct seen {
    unsigned n;
    char names[8][MEMCLIENT_NAME_SIZE];
    int32_t pid;
};

static int see(const struct memclient_buffer_info *info, void *data)
{
    struct seen *seen = data;

    if (info->state != MEMCLIENT_BUFFER_STATE_LIVE)
        return 0;
    (void)snprintf(seen->names[seen->n++ % 8], MEMCLIENT_NAME_SIZE, "%s", info->name);
    seen->pid = info->pid;
    return 0;
}

/* enum memclient_svm_option */
static void buffers_have_names_with_process_and_ordinal(void **state)
{
    struct memclient_svm *separate = svm_create(MEMCLIENT_SVM_SEPARATE, 0);
    unsigned long ordinals = 0;
    struct seen seen = {0};
    char begin[32];

    (void)svm_allocate(separate, 1);
    (void)svm_allocate(separate, 1);
    assert_int_equal(memclient_list_buffers(svm_observer, see, &seen), 0);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.pid, getpid());
    (void)snprintf(begin, sizeof(begin), "svm/%d-", (int)getpid());
    for (unsigned i = 0; i < 2; i++) {
        assert_memory_equal(seen.names[i], begin, strlen(begin));
        ordinals += strtoul(strrchr(seen.names[i], '/') + 1, NULL, 10);
    }
    assert_int_equal(ordinals, 1 + 2);
    memclient_svm_destroy(separate);
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static void use_and_free_in_child(int channel, void *context)
{
    struct memclient_svm_info info = MEMCLIENT_SVM_INFO_INIT;
    char *from_parent = context, *own;

    CHECK(!memclient_svm_query(from_parent, &info) && info.length == 1000);
    CHECK(from_parent[0] == 'p');
    from_parent[1] = 'c';
    CHECK(!memclient_svm_alloc(svm, RW, 1000, 0, (void **)&own));
    CHECK(own != from_parent);
    memset(own, 'x', 1000);
    CHECK(!memclient_svm_free(svm, from_parent));
    CHECK(memclient_svm_free(svm, from_parent) == -EINVAL);
    tell(channel);
    hear(channel);
    CHECK(own[999] == 'x');
    memclient_svm_destroy(svm);
}

static void children_share_and_have_their_own(void **state)
{
    char *ptr = svm_allocate(svm, 1000), *next;
    struct child child;

    ptr[0] = 'p';
    child_start(&child, use_and_free_in_child, ptr);
    child_hear(&child);
    assert_int_equal(ptr[1], 'c');
    next = svm_allocate(svm, 1000);
    assert_ptr_not_equal(next, ptr);
    memset(next, 'y', 1000);
    tell(child.channel);
    child_finish(&child);
    assert_int_equal(ptr[0], 'p');
    assert_done(memclient_svm_free(svm, ptr));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, clean_up)
    const struct CMUnitTest tests[] = {
        TEST(allocates_every_size_and_alignment),
        TEST(keeps_allocations_apart),
        TEST(refuses_by_the_rules),
        TEST(refuses_options_out_of_range),
        TEST(structs_of_other_versions_have_other_sizes),
        TEST(takes_memory_of_the_nodes_it_is_told),
        TEST(frees_only_what_starts_there),
        TEST(gives_back_what_was_not_freed),
        TEST(asks_nothing_of_the_broker_before_memory_is_needed),
        TEST(small_ones_make_no_calls),
        TEST(frees_while_the_broker_stands_still),
        TEST(frees_while_another_thread_waits_for_the_broker),
        TEST(hundred_thousand_kilobytes_need_few_mappings),
        TEST(frees_from_other_threads),
        TEST(does_not_use_again_what_is_in_quarantine),
        TEST(large_ones_in_quarantine_are_inaccessible),
        TEST(room_is_made_of_quarantine_and_what_is_on_its_way),
        TEST(tells_what_an_address_is),
        TEST(buffers_have_names_with_process_and_ordinal),
        TEST(children_share_and_have_their_own),
    };

    svm_config = "[limits]\nsession_bytes = 256M\n";
    return test_run(tests, svm_group_setup, svm_group_teardown);
}
