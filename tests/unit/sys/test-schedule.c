/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread asks for it gets, and it alone; what somebody else has decided stays. */
#include "tests/support/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/schedule.h"

struct asked {
    struct sys_schedule schedule;
    int before; /* a policy to run under already, or -1 */
    int r;
    int policy;
    int nice;
};

static void *ask(void *argument)
{
    struct asked *asked = argument;

    if (asked->before >= 0 && sched_setscheduler(0, asked->before, &(struct sched_param){.sched_priority = 0}) < 0)
        return NULL;
    asked->r = sys_schedule_self(&asked->schedule);
    asked->policy = sched_getscheduler(0);
    asked->nice = getpriority(PRIO_PROCESS, 0);
    return asked;
}

static struct asked asking(int before, struct sys_schedule schedule)
{
    struct asked asked = {.schedule = schedule, .before = before};
    pthread_t thread;
    void *end;

    if (before < 0 && sched_getscheduler(0) != SCHED_OTHER)
        test_skip("this test runs under a policy that somebody has decided");
    assert_int_equal(pthread_create(&thread, NULL, ask, &asked), 0);
    assert_int_equal(pthread_join(thread, &end), 0);
    assert_non_null(end);
    if (asked.r == -EPERM || asked.r == -ENOSYS)
        test_skip("the kernel lets nobody say how it is scheduled here");
    return asked;
}

static void policy_and_niceness_are_the_threads_own(void **state)
{
    int nice = getpriority(PRIO_PROCESS, 0);
    struct asked asked = asking(-1, (struct sys_schedule){SCHED_BATCH, 5, 20000000});

    assert_int_equal(asked.r, 0);
    assert_int_equal(asked.policy, SCHED_BATCH);
    assert_int_equal(asked.nice, nice + 5 < 19 ? nice + 5 : 19);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
}

static void nothing_is_nicer_than_the_nicest(void **state)
{
    struct asked asked = asking(-1, (struct sys_schedule){SCHED_OTHER, 100, 0});

    assert_int_equal(asked.r, 0);
    assert_int_equal(asked.nice, 19);
}

static void a_policy_set_by_others_stays(void **state)
{
    struct asked asked = asking(SCHED_IDLE, (struct sys_schedule){SCHED_OTHER, 0, 100000});

    assert_int_equal(asked.r, 0);
    assert_int_equal(asked.policy, SCHED_IDLE);
}

/* As the kernel tells it; 0 where it has no slices, before 6.12. */
static uint64_t own_slice(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = sizeof(attributes)};

    return syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) < 0 ? 0 : attributes.runtime;
}

struct changed {
    uint64_t slice;
    int r;
    int policy;
    int nice;
};

static void *change(void *argument)
{
    const struct sys_schedule schedule = {SCHED_BATCH, 3, 20000000};
    struct changed *changed = argument;

    changed->r = sys_schedule_self(&schedule);
    if (!changed->r)
        changed->r = sys_schedule_slice(1000000);
    changed->policy = sched_getscheduler(0);
    changed->nice = getpriority(PRIO_PROCESS, 0);
    changed->slice = own_slice();
    return NULL;
}

static void another_slice_changes_nothing_else(void **state)
{
    int nice = getpriority(PRIO_PROCESS, 0);
    struct changed changed;
    pthread_t thread;

    if (sched_getscheduler(0) != SCHED_OTHER)
        test_skip("this test runs under a policy that somebody has decided");
    assert_int_equal(pthread_create(&thread, NULL, change, &changed), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (changed.r == -EPERM || changed.r == -ENOSYS)
        test_skip("the kernel lets nobody say how it is scheduled here");
    assert_int_equal(changed.r, 0);
    assert_int_equal(changed.policy, SCHED_BATCH);
    assert_int_equal(changed.nice, nice + 3 < 19 ? nice + 3 : 19);
    if (changed.slice)
        assert_int_equal(changed.slice, 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_and_niceness_are_the_threads_own),
        cmocka_unit_test(nothing_is_nicer_than_the_nicest),
        cmocka_unit_test(a_policy_set_by_others_stays),
        cmocka_unit_test(another_slice_changes_nothing_else),
    };

    return test_run(tests, NULL, NULL);
}
