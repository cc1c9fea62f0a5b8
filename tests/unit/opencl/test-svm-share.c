/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing heaps' memory between processes without OpenCL, and what heaps are made with. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/wait.h"
#include "tests/unit/opencl/opencl.h"

#define SIZE 5000

struct note {
    struct memclient_token token;
    uint64_t offset, length;
    char *address;
};

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

static void consume(int channel, void *unused)
{
    struct memclient_svm_info info = MEMCLIENT_SVM_INFO_INIT;
    struct memclient_buffer *buf;
    char *by_token, *by_fd, *by_buffer;
    struct note note;
    void *ptr;
    int fd;

    (void)unused;
    CHECK(wait_readable(channel) && recv(channel, &note, sizeof(note), 0) == sizeof(note));
    fd = fd_receive_one(channel);
    CHECK(memclient_svm_open_token(svm, &note.token, (uint64_t)1 << 40, 0, &ptr) == -EOVERFLOW);
    CHECK(memclient_svm_open_token(svm, &note.token, note.offset, UINT64_MAX, &ptr) == -EOVERFLOW);
    CHECK(!memclient_svm_open_token(svm, &note.token, note.offset, note.length, (void **)&by_token));
    CHECK(!memclient_svm_import_fd(svm, fd, note.offset, note.length, (void **)&by_fd));
    CHECK(!memclient_import_fd(NULL, fd, &buf));
    CHECK(!memclient_svm_import(svm, buf, note.offset, 0, (void **)&by_buffer));
    (void)memclient_buffer_unref(buf);
    close(fd);
    CHECK(by_token == note.address && by_fd == by_token && by_buffer == by_token);
    CHECK(!memclient_svm_query(by_token + 1, &info) && info.imported && info.address == by_token);
    CHECK(!strcmp(by_token, "shared"));
    /* each is freed once, and the last one unmaps */
    CHECK(!memclient_svm_free(svm, by_token) && !memclient_svm_free(svm, by_token));
    (void)snprintf(by_token, SIZE, "answered");
    CHECK(!memclient_svm_free(svm, by_token));
    CHECK(memclient_svm_free(svm, by_token) == -EINVAL);
    memclient_svm_destroy(svm);
}

/*
 * memclient_svm_share() fills token, offset and length of ptr by options, memclient_svm_export_fd() fd with rights.
 * There memclient_svm_open_token(), memclient_svm_import_fd() and memclient_svm_import() of a buf put it into svm at
 * ptr.
 */
static void gives_and_takes_by_every_way(void **state)
{
    uint64_t offset, length;
    struct child consumer;
    struct note note;
    int fd;

    child_start(&consumer, consume, NULL);
    assert_done(memclient_svm_alloc(svm, 0, 100, 0, (void **)&note.address));
    assert_done(memclient_svm_alloc(svm, 0, SIZE, 0, (void **)&note.address));
    (void)snprintf(note.address, SIZE, "shared");
    assert_done(memclient_svm_share(note.address, NULL, &note.token, &note.offset, &note.length));
    assert_int_equal(note.length, SIZE);
    /* any address in it means the whole */
    assert_done(memclient_svm_export_fd(note.address + 10, 0, &fd, &offset, &length));
    assert_int_equal(offset, note.offset);
    assert_int_equal(length, note.length);
    assert_int_equal(send(consumer.channel, &note, sizeof(note), MSG_NOSIGNAL), sizeof(note));
    assert_int_equal(fd_send_one(consumer.channel, fd), 1);
    close(fd);
    child_finish(&consumer);
    assert_string_equal(note.address, "answered");
}

/* memclient_svm_buffer() fills buf, offset and length of what ptr is in. */
static void tells_the_buffer(void **state)
{
    struct memclient_buffer *buf;
    uint64_t offset, length;
    char *ptr, *again;

    assert_done(memclient_svm_alloc(svm, 0, SIZE, 0, (void **)&ptr));
    assert_done(memclient_svm_buffer(ptr, &buf, &offset, &length));
    assert_ptr_equal((char *)memclient_buffer_home(buf) + offset, ptr);
    assert_int_equal(length, SIZE);
    /* in the process that has it, it is what is there already */
    assert_done(memclient_svm_import(svm, buf, offset, length, (void **)&again));
    assert_ptr_equal(again, ptr);
    assert_done(memclient_svm_free(svm, again));
    assert_done(memclient_svm_free(svm, ptr));
    (void)memclient_buffer_unref(buf);
}

/* Where another interface of the process has mapped a part of it, whatever goes first. */
static void shares_pages_that_are_there(void **state)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_buffer *buf;
    char *home, *part, *ptr;

    assert_done(memclient_alloc(NULL, SIZE, NULL, &buf));
    home = memclient_buffer_home(buf);
    options.length = memclient_buffer_granule(buf);
    for (int first = 0; first < 2; first++) {
        assert_done(memclient_map(buf, &options, (void **)&part));
        assert_done(memclient_svm_import(svm, buf, 0, 0, (void **)&ptr));
        assert_ptr_equal(ptr, home);
        ptr[0] = ptr[SIZE - 1] = 's';
        if (first)
            assert_done(memclient_svm_free(svm, ptr));
        else
            assert_done(memclient_unmap(NULL, part, options.length));
        assert_int_equal(ptr[0], 's');
        if (first)
            assert_done(memclient_unmap(NULL, part, options.length));
        else
            assert_done(memclient_svm_free(svm, ptr));
    }
    (void)memclient_buffer_unref(buf);
}

static void keep(int channel, void *unused)
{
    struct note note;
    void *ptr;

    (void)unused;
    CHECK(wait_readable(channel) && recv(channel, &note, sizeof(note), 0) == sizeof(note));
    CHECK(!memclient_svm_open_token(svm, &note.token, note.offset, note.length, &ptr));
    tell(channel);
    hear(channel);
    CHECK(!strcmp(ptr, "shared"));
    memclient_svm_destroy(svm);
}

/* Of buffers of their own: nothing else comes to where an import is, though it was freed where it was made. */
static void separate_ones_are_kept_by_imports(void **state)
{
    struct memclient_svm_options options = MEMCLIENT_SVM_OPTIONS_INIT;
    struct memclient_svm *separate;
    struct child consumer;
    struct note note;
    void *others[10];

    options.flags = MEMCLIENT_SVM_SEPARATE;
    assert_done(memclient_svm_create(&options, &separate));
    child_start(&consumer, keep, NULL);
    assert_done(memclient_svm_alloc(separate, 0, SIZE, 0, (void **)&note.address));
    (void)snprintf(note.address, SIZE, "shared");
    assert_done(memclient_svm_share(note.address, NULL, &note.token, &note.offset, &note.length));
    assert_int_equal(send(consumer.channel, &note, sizeof(note), MSG_NOSIGNAL), sizeof(note));
    child_hear(&consumer);
    assert_done(memclient_svm_free(separate, note.address));
    for (unsigned i = 0; i < 10; i++) {
        assert_done(memclient_svm_alloc(separate, 0, SIZE, 0, &others[i]));
        assert_ptr_not_equal(others[i], note.address);
        memset(others[i], 1, SIZE);
    }
    tell(consumer.channel);
    child_finish(&consumer);
    memclient_svm_destroy(separate);
}

/* What was imported last is freed first, so that the memory stays the allocation's until it is freed itself. */
static void an_import_is_freed_before_the_allocation(void **state)
{
    struct memclient_svm_info info = MEMCLIENT_SVM_INFO_INIT;
    struct memclient_buffer *buf;
    uint64_t offset, length;
    char *ptr, *other;
    void *again;

    assert_done(memclient_svm_alloc(svm, 0, SIZE, 0, (void **)&ptr));
    assert_done(memclient_svm_buffer(ptr, &buf, &offset, &length));
    assert_done(memclient_svm_import(svm, buf, offset, 64, &again));
    (void)memclient_buffer_unref(buf);
    assert_done(memclient_svm_free(svm, again));
    assert_done(memclient_svm_query(ptr + SIZE - 1, &info));
    assert_false(info.imported);
    assert_done(memclient_svm_alloc(svm, 0, SIZE, 0, (void **)&other));
    assert_ptr_not_equal(other, ptr);
    assert_done(memclient_svm_free(svm, other));
    assert_done(memclient_svm_free(svm, ptr));
}

/* Imports may overlap: an address is in what starts last of those that it is in. */
static void finds_among_overlapping_imports(void **state)
{
    struct memclient_svm_info info = MEMCLIENT_SVM_INFO_INIT;
    struct memclient_buffer *buf;
    void *whole, *part, *inner;
    char *home;

    assert_int_equal(memclient_alloc(NULL, 65536, NULL, &buf), 0);
    assert_done(memclient_svm_import(svm, buf, 0, 0, &whole));
    assert_done(memclient_svm_import(svm, buf, 4096, 8192, &part));
    assert_done(memclient_svm_import(svm, buf, 8192, 100, &inner));
    home = whole;
    for (unsigned i = 0; i < 65536; i += 50) {
        void *wanted = i < 4096 || i >= 12288 ? whole : i < 8192 || i >= 8292 ? part : inner;

        assert_done(memclient_svm_query(home + i, &info));
        assert_ptr_equal(info.address, wanted);
    }
    assert_refused(memclient_svm_query(home + 65536, &info), -EFAULT);
    assert_done(memclient_svm_free(svm, part));
    assert_done(memclient_svm_query(home + 4096, &info));
    assert_ptr_equal(info.address, whole);
    assert_done(memclient_svm_free(svm, inner));
    assert_done(memclient_svm_free(svm, whole));
    (void)memclient_buffer_unref(buf);
}

static void refuses_what_is_not_there(void **state)
{
    struct memclient_token token = {{0}};
    struct memclient_buffer *buf;
    uint64_t offset, length;
    int variable = 0, fd;
    void *ptr;

    assert_refused(memclient_svm_buffer(&variable, &buf, &offset, &length), -EFAULT);
    assert_refused(memclient_svm_buffer(&variable, NULL, &offset, &length), -EINVAL);
    assert_refused(memclient_svm_export_fd(&variable, 0, &fd, &offset, &length), -EFAULT);
    assert_refused(memclient_svm_export_fd(&variable, 0, NULL, &offset, &length), -EINVAL);
    assert_refused(memclient_svm_share(&variable, NULL, &token, &offset, &length), -EFAULT);
    assert_refused(memclient_svm_share(&variable, NULL, NULL, &offset, &length), -EINVAL);
    assert_refused(memclient_svm_open_token(svm, &token, 0, 0, &ptr), -EBADMSG);
    assert_refused(memclient_svm_open_token(svm, NULL, 0, 0, &ptr), -EINVAL);
    assert_refused(memclient_svm_import_fd(svm, -1, 0, 0, &ptr), -EBADF);
    assert_refused(memclient_svm_import_fd(NULL, 0, 0, 0, &ptr), -EINVAL);
    assert_refused(memclient_svm_import(svm, NULL, 0, 0, &ptr), -EINVAL);
    assert_string_not_equal(memclient_svm_error(), "");
}

/* A buffer without a home could not be at one address everywhere. */
static void imports_need_a_home(void **state)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *buf;
    void *ptr;

    options.flags = MEMCLIENT_ALLOC_NO_HOME;
    assert_int_equal(memclient_alloc(NULL, 4096, &options, &buf), 0);
    assert_refused(memclient_svm_import(svm, buf, 0, 0, &ptr), -EADDRNOTAVAIL);
    (void)memclient_buffer_unref(buf);
}

/*
 * struct memclient_svm_options, MEMCLIENT_SVM_OPTIONS_INIT: size, context, pool, name; the others where they are asked
 * about: devices, n_devices, nodes, n_nodes, placement, flags, quarantine.
 */
static void options_say_whose_and_which(void **state)
{
    struct memclient_svm_options options = MEMCLIENT_SVM_OPTIONS_INIT;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_svm *made;
    struct memclient_buffer *buf;
    uint64_t offset, length;
    void *ptr;

    options.context = svm_observer;
    options.pool = "node1-4k";
    options.name = "mine";
    assert_done(memclient_svm_create(&options, &made));
    assert_done(memclient_svm_alloc(made, 0, SIZE, 0, &ptr));
    assert_done(memclient_svm_buffer(ptr, &buf, &offset, &length));
    assert_ptr_equal(memclient_buffer_context(buf), svm_observer);
    assert_int_equal(memclient_buffer_query(buf, &info), 0);
    assert_string_equal(info.pool, "node1-4k");
    assert_memory_equal(info.name, "mine/", 5);
    (void)memclient_buffer_unref(buf);
    memclient_svm_destroy(made);

    options.pool = "no such pool";
    assert_done(memclient_svm_create(&options, &made));
    assert_refused(memclient_svm_alloc(made, 0, SIZE, 0, &ptr), -ENODEV);
    memclient_svm_destroy(made);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, clean_up)
    const struct CMUnitTest tests[] = {
        TEST(gives_and_takes_by_every_way),
        TEST(tells_the_buffer),
        TEST(shares_pages_that_are_there),
        TEST(separate_ones_are_kept_by_imports),
        TEST(an_import_is_freed_before_the_allocation),
        TEST(finds_among_overlapping_imports),
        TEST(refuses_what_is_not_there),
        TEST(imports_need_a_home),
        TEST(options_say_whose_and_which),
    };

    return test_run(tests, svm_group_setup, svm_group_teardown);
}
