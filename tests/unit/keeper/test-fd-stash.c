/* SPDX-License-Identifier: Apache-2.0 */
/* The fd stash: however many descriptors are put in come out, each once and under its key, and nothing stays behind. */

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/fd_stash.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"

/* Descriptors wait in it without a place in anybody's table, so a few files stand for many. */
#define FILES 7
/* More than twenty bundles' worth, and what fits into the limit of a user without privileges. */
#define MANY   150000
#define MODEST 900

struct arrived {
    ino_t inodes[FILES];
    uint8_t seen[MANY];
    unsigned n;
    unsigned wrong;
};

static int files[FILES];
static int ends[2];
static struct arrived arrived;

static int set_up(void **state)
{
    arrived = (struct arrived){0};
    assert_int_equal(fd_stash_new(ends), 0);
    for (unsigned i = 0; i < FILES; i++) {
        struct stat st;

        files[i] = memfd_create("file", MFD_CLOEXEC);
        assert_ok(files[i]);
        assert_ok(fstat(files[i], &st));
        arrived.inodes[i] = st.st_ino;
    }
    return 0;
}

static int tear_down(void **state)
{
    for (unsigned i = 0; i < FILES; i++)
        close(files[i]);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static int arrive(void *userdata, enum keeper_kind kind, uint64_t id, int fd)
{
    struct arrived *a = userdata;
    struct stat st;

    if (kind != KEEPER_BUFFER || id >= MANY || a->seen[id]++ || fstat(fd, &st) < 0 ||
        st.st_ino != a->inodes[id % FILES])
        a->wrong++;
    a->n++;
    close(fd);
    return 0;
}

struct range {
    unsigned from, to;
};

static int enumerate(void *userdata, keeper_take_fn *give, void *to)
{
    const struct range *range = userdata;
    int r = 0;

    for (unsigned i = range->from; i < range->to && !r; i++)
        r = give(to, KEEPER_BUFFER, i, files[i % FILES]);
    return r;
}

static int put(unsigned from, unsigned to)
{
    return fd_stash_fill(ends[0], enumerate, &(struct range){from, to});
}

static void test_few(void **state)
{
    unsigned before = fd_count();

    assert_int_equal(fd_stash_drain(ends[1], arrive, &arrived), 0);
    assert_int_equal(arrived.n, 0);
    assert_int_equal(put(0, 0), 0);
    assert_int_equal(put(0, 1), 0);
    assert_int_equal(put(1, MODEST), 0);
    assert_int_equal(fd_stash_drain(ends[1], arrive, &arrived), 0);
    assert_int_equal(arrived.n, MODEST);
    assert_int_equal(arrived.wrong, 0);
    /* it is empty, and can be used again, the other way, too */
    assert_int_equal(fd_stash_drain(ends[1], arrive, &arrived), 0);
    assert_int_equal(arrived.n, MODEST);
    assert_int_equal(put(MODEST, MODEST + 1), 0);
    assert_int_equal(fd_stash_drain(ends[0], arrive, &arrived), 0);
    assert_int_equal(arrived.n, MODEST);
    assert_int_equal(fd_stash_drain(ends[1], arrive, &arrived), 0);
    assert_int_equal(arrived.n, MODEST + 1);
    assert_int_equal(arrived.wrong, 0);
    assert_int_equal(fd_count(), before);
}

static void test_many(void **state)
{
    int r = put(0, MANY);

    if (r == -ENOBUFS)
        test_skip("this user may not have %d descriptors in flight", MANY);
    assert_int_equal(r, 0);
    assert_int_equal(fd_stash_drain(ends[1], arrive, &arrived), 0);
    assert_int_equal(arrived.n, MANY);
    assert_int_equal(arrived.wrong, 0);
}

/* Who takes may refuse; nothing leaks then. */
static int refuse_all(void *userdata, enum keeper_kind kind, uint64_t id, int fd)
{
    (void)userdata;
    (void)kind;
    (void)id;
    close(fd);
    return -EIO;
}

static void test_refused(void **state)
{
    unsigned before = fd_count();

    assert_int_equal(put(0, MODEST), 0);
    assert_int_equal(fd_stash_drain(ends[1], refuse_all, NULL), -EIO);
    assert_int_equal(fd_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_few, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
    };

    return test_run(tests, NULL, NULL);
}
