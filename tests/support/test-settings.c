/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test that changes the machine must not be trusted to put it back itself: it may be killed. So the
 * guardian of settings.h is tested like any other promise.
 */
#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/support/settings.h"
#include "tests/support/wait.h"

#define PAGES 3

static long total(void)
{
    return meminfo_kib("HugePages_Total");
}

static void change_and_wait(int channel, void *context)
{
    settings_huge_pages(huge_page_size(), PAGES);
    tell(channel);
    hear(channel);
}

static void settings_are_put_back_by_release(void **state)
{
    long before;

    settings_hold();
    before = total();
    settings_huge_pages(huge_page_size(), PAGES);
    assert_int_equal(meminfo_kib("HugePages_Free") - meminfo_kib("HugePages_Rsvd"), PAGES);
    settings_huge_pages(huge_page_size(), PAGES + 1); /* the first value is what counts */
    settings_release(NULL);
    settings_hold();
    assert_int_equal(total(), before);
}

static void settings_are_put_back_after_a_kill(void **state)
{
    struct child child;
    long before;

    settings_huge_pages(huge_page_size(), PAGES); /* or skip here: a child cannot */
    settings_release(NULL);
    settings_hold();
    before = total();
    settings_release(NULL);

    child_start(&child, change_and_wait, NULL);
    child_hear(&child);
    child_kill(&child);
    settings_hold(); /* waits for the guardian, who has the lock until it is done */
    assert_int_equal(total(), before);
}

/* What the administrator has set; the total counts pages that are only there until somebody lets go of them. */
static long set_aside(void)
{
    FILE *file = fopen("/proc/sys/vm/nr_hugepages", "re");
    long pages = -1;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages;
}

static void keep_pages(int channel, void *context)
{
    size_t size = PAGES * huge_page_size();
    int fd = memfd_create("kept", MFD_CLOEXEC | MFD_HUGETLB);

    CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0 && fallocate(fd, 0, 0, (off_t)size) == 0);
    tell(channel);
    hear(channel);
}

static void pages_that_outlive_their_setting_do_not_become_one(void **state)
{
    struct child child;
    long before;

    settings_hold();
    before = set_aside();
    settings_huge_pages(huge_page_size(), PAGES);
    child_start(&child, keep_pages, NULL);
    child_hear(&child);
    settings_release(NULL);

    settings_huge_pages(huge_page_size(), PAGES + 1);
    child_kill(&child);
    settings_release(NULL);
    settings_hold();
    assert_int_equal(set_aside(), before);
    assert_int_equal(total(), before);
}

static void set_aside_for_good(long pages)
{
    FILE *file = fopen("/proc/sys/vm/nr_hugepages", "we");

    assert_non_null(file);
    fprintf(file, "%ld", pages);
    fclose(file);
}

static void what_was_put_back_once_is_left_alone_later(void **state)
{
    long before, after;

    settings_hold();
    before = set_aside();
    settings_huge_pages(huge_page_size(), PAGES);
    settings_release(NULL);

    settings_hold();
    set_aside_for_good(before + 1);
    settings_release(NULL);
    settings_hold();
    after = set_aside();
    set_aside_for_good(before);
    assert_int_equal(after, before + 1);
}

static void take_the_lock(int channel, void *context)
{
    hear(channel);
    settings_hold();
    tell(channel);
    settings_release(NULL);
}

static void only_one_program_holds_them(void **state)
{
    struct child child;

    child_start(&child, take_the_lock, NULL); /* before, so that it inherits nothing */
    settings_hold();
    child_tell(&child);
    assert_true(stays_quiet(child.channel));
    settings_release(NULL);
    child_hear(&child);
    child_finish(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_settings(settings_are_put_back_by_release),
        test_with_settings(settings_are_put_back_after_a_kill),
        test_with_settings(pages_that_outlive_their_setting_do_not_become_one),
        test_with_settings(what_was_put_back_once_is_left_alone_later),
        test_with_settings(only_one_program_holds_them),
    };

    return test_run(tests, NULL, NULL);
}
