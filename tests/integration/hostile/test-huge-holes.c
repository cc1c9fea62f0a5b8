/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a member of a heap can do to the others with reserved huge pages, of which the kernel has only so many: it
 * punches a page out, and whoever touches it next needs a new one. While the kernel has one, that reads zeros. If
 * somebody has taken the last one, it is a SIGBUS. No seal forbids that to those who may write, since each of those
 * that do forbids that others map the memory to write, as well. So here are the bounds of it: of ordinary pages it
 * reads zeros and never is a signal; who may only read can do nothing of the kind; the broker, and heaps in other
 * memory, go on; and when all are gone, every page is where it was.
 */
#include "tests/integration/heaps.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

/* The slab of a block, which is one huge page, or as much of ordinary ones. */
static void *slab_of(void *block, uint64_t *size)
{
    struct memclient_address_info where = MEMCLIENT_ADDRESS_INFO_INIT;

    CHECK_DONE(memclient_address_query(block, &where));
    *size = where.length;
    return where.address;
}

static bool punch(void *block)
{
    uint64_t size;
    void *slab = slab_of(block, &size);

    return madvise(slab, size, MADV_REMOVE) == 0;
}

/* All that the kernel has left, for as long as this process lives: nobody needs a right for that. */
static void take_all_huge_pages(size_t huge)
{
    while (mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0) !=
           MAP_FAILED)
        ;
}

/* Another user, who is a member: punches the slab out when it is told to, and then takes what is free. */
static void punch_and_take(int channel, void *context)
{
    struct memclient_heap *heap;
    void *p;

    hear(channel);
    heap = heap_open_in_child(context);
    CHECK_DONE(memclient_heap_alloc(heap, SMALL, &p));
    tell(channel);
    hear(channel);
    CHECK(punch(p));
    tell(channel);
    hear(channel);
    CHECK(punch(p));
    take_all_huge_pages(huge_page_size());
    tell(channel);
    hear(channel);
}

static void touch(int channel, void *context)
{
    *(volatile char *)context = 1;
}

struct target {
    struct heap_test test;
    struct child child;
    uint64_t reader; /* the child's number */
    char *block;
};

/* One slab for all, of 16 blocks and of less than a huge page in all. The child, which inherits no mapping of it,
 * begins once there is a block. */
static struct target target_begin(unsigned pages, bool is_reader, child_body *attack)
{
    struct memclient_alloc_options memory = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
    struct target target = {.test.broker = broker_for_test(NULL)};
    const uint64_t size = SMALL;
    void *p;

    memory.pages = pages;
    options.block_sizes = &size;
    options.n_block_sizes = 1;
    options.slab_size = 16 * SMALL;
    options.slabs_max = 1;
    options.memory = &memory;
    target.test.ctx = broker_connect(target.test.broker);
    assert_done(memclient_heap_create(target.test.ctx, &options, &target.test.heap));
    (void)snprintf(target.test.start.socket, sizeof(target.test.start.socket), "%s", target.test.broker->socket);
    target.test.start.uid = UID_STRANGER;
    if (is_reader)
        assert_done(memclient_heap_invite(target.test.heap, &target.test.start.token, &target.reader));
    else
        assert_done(memclient_heap_share(target.test.heap, NULL, &target.test.start.token));
    child_start(&target.child, attack, &target.test.start);
    assert_done(memclient_heap_alloc(target.test.heap, SMALL, &p));
    target.block = p;
    pattern_write(p, SMALL, 1);
    child_tell(&target.child);
    child_hear(&target.child);
    return target;
}

/* What others have is as it was. */
static void others_go_on(struct target *target)
{
    struct memclient_heap *other = heap_of(target->test.ctx, NULL, 0);
    void *p;

    assert_done(memclient_heap_alloc(other, BLOCK, &p));
    pattern_write(p, BLOCK, 3);
    assert_true(pattern_holds(p, BLOCK, 3));
    memclient_heap_close(other);
    broker_check(target->test.broker);
}

static void huge_pages_that_a_member_punches_out_may_be_gone(void **state)
{
    size_t huge = huge_page_size();
    struct target target;

    test_needs_root();
    settings_huge_pages(huge, 1);
    target = target_begin(MEMCLIENT_PAGES_HUGETLB, false, punch_and_take);
    child_tell(&target.child);
    child_hear(&target.child);
    /* the kernel has one */
    assert_int_equal(child_signal(touch, target.block), 0);
    assert_true(all_zero(target.block + 64, SMALL - 64));
    child_tell(&target.child);
    child_hear(&target.child);
    /* the attacker has it */
    assert_int_equal(child_signal(touch, target.block), SIGBUS);
    others_go_on(&target);
    child_kill(&target.child);
    /* and it is back */
    assert_int_equal(WAIT_UNTIL(child_signal(touch, target.block) == 0), true);
    heap_end(&target.test);
}

static void ordinary_pages_that_a_member_punches_out_are_zeros(void **state)
{
    struct target target;

    test_needs_root();
    target = target_begin(MEMCLIENT_PAGES_BASE, false, punch_and_take);
    for (unsigned i = 0; i < 2; i++) {
        child_tell(&target.child);
        child_hear(&target.child);
        assert_int_equal(child_signal(touch, target.block), 0);
        assert_true(all_zero(target.block + 64, SMALL - 64));
    }
    others_go_on(&target);
    child_kill(&target.child);
    heap_end(&target.test);
}

/* By its mapping, by a descriptor of its own, and by one that it opens anew. */
static void try_as_a_reader(int channel, void *context)
{
    struct memclient_address_info where = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_block_token token;
    struct memclient_heap *heap;
    char path[64];
    uint64_t size;
    void *p, *slab;
    int fd;

    hear(channel);
    heap = heap_open_in_child(context);
    tell(channel);
    CHECK(take_bytes(channel, &token, sizeof(token)));
    CHECK_DONE(memclient_block_open(heap, &token, &p));
    slab = slab_of(p, &size);
    CHECK_ERRNO(madvise(slab, size, MADV_REMOVE), EACCES);
    CHECK(mprotect(slab, size, PROT_READ | PROT_WRITE) < 0);
    CHECK_DONE(memclient_address_query(p, &where));
    CHECK_DONE(memclient_export_fd(where.buffer, MEMCLIENT_READ, &fd));
    CHECK_ERRNO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size), EBADF);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    CHECK_ERRNO(open(path, O_RDWR | O_CLOEXEC), EACCES);
    CHECK(pattern_holds(p, SMALL, 2));
    tell(channel);
    hear(channel);
}

static void a_reader_punches_nothing_out(void **state)
{
    struct memclient_block_token token;
    struct target target;
    void *p;

    test_needs_root();
    settings_huge_pages(huge_page_size(), 1);
    target = target_begin(MEMCLIENT_PAGES_HUGETLB, true, try_as_a_reader);
    assert_done(memclient_heap_alloc(target.test.heap, SMALL, &p));
    pattern_write(p, SMALL, 2);
    assert_done(memclient_block_share(target.test.heap, p, target.reader, &token));
    assert_true(pass_bytes(target.child.channel, &token, sizeof(token)));
    child_hear(&target.child);
    assert_true(pattern_holds(target.block, SMALL, 1));
    child_tell(&target.child);
    child_finish(&target.child);
    heap_end(&target.test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker_with_settings(huge_pages_that_a_member_punches_out_may_be_gone),
        at_broker(ordinary_pages_that_a_member_punches_out_are_zeros),
        at_broker_with_settings(a_reader_punches_nothing_out),
    };
    return test_run(tests, NULL, NULL);
}
