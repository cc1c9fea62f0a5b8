/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program gives memory back around the end of a broker, and then does nothing any more: no call of the library, no
 * thread. The memory is given back all the same, whichever interface it came from (I4).
 */
#include <poll.h>
#include <signal.h>

#include "tests/integration/handles/facade.h"
#include "tests/integration/observer.h"
#include "tests/support/test.h"

static const struct facade *const facades[] = {
    &native_facade,       &hsa_vmem_facade, &hsa_region_facade,    &umf_pool_facade,
    &umf_provider_facade, &nbla_facade,     &nbla_physical_facade, &svm_facade,
};

/* Makes memory, and gives it back when told; then it only lives. */
static void make_and_give_back(int channel, void *context)
{
    const struct facade *facade = context;
    struct memory memory = {0};

    facade->make(&memory);
    memory.at[0] = 1;
    tell(channel);
    hear(channel);
    facade->give_back(&memory);
    tell(channel);
    hear(channel);
}

/* Nobody is left to ask but the broker itself. */
static void expect_nothing_while_it_lives(struct child *child)
{
    observer_expect_nothing();
    assert_int_equal(kill(child->pid, 0), 0);
    child_tell(child);
    child_finish(child);
}

/* It frees when the next broker serves, and has looked for what was freed before. */
static void free_when_the_next_broker_serves(void (*replace)(void))
{
    for (size_t i = 0; i < sizeof(facades) / sizeof(*facades); i++) {
        struct child child;

        print_message("%s\n", facades[i]->name);
        child_start(&child, make_and_give_back, (void *)facades[i]);
        child_hear(&child);
        replace();
        assert_true(observer_buffers() > 0);
        child_tell(&child);
        child_hear(&child);
        expect_nothing_while_it_lives(&child);
    }
}

static void kill_broker(void)
{
    broker_kill_child(&observed);
}

static void I4_what_is_freed_after_a_brokers_death_is_given_back(void **state)
{
    free_when_the_next_broker_serves(kill_broker);
}

static void upgrade_broker(void)
{
    pid_t before = broker_child(&observed);

    observer_upgrade();
    assert_true(WAIT_UNTIL(broker_child(&observed) != before));
}

static void I4_what_is_freed_after_an_upgrade_is_given_back(void **state)
{
    free_when_the_next_broker_serves(upgrade_broker);
}

/* The request lies in the socket of a broker that will never read it. */
static void I4_what_a_broker_died_before_reading_is_given_back(void **state)
{
    for (size_t i = 0; i < sizeof(facades) / sizeof(*facades); i++) {
        struct child child;
        pid_t broker = broker_child(&observed);

        print_message("%s\n", facades[i]->name);
        child_start(&child, make_and_give_back, (void *)facades[i]);
        child_hear(&child);
        assert_ok(kill(broker, SIGSTOP));
        child_tell(&child);
        /* it is done by then, unless it waits: heaps of SVM unbind names, and hear what comes of that */
        (void)wait_for_events(child.channel, POLLIN, QUIET_MS);
        assert_ok(kill(broker, SIGKILL));
        child_hear(&child);
        expect_nothing_while_it_lives(&child);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(I4_what_is_freed_after_a_brokers_death_is_given_back),
        cmocka_unit_test(I4_what_is_freed_after_an_upgrade_is_given_back),
        cmocka_unit_test(I4_what_a_broker_died_before_reading_is_given_back),
    };

    return test_run(tests, observer_group_setup, observer_group_teardown);
}
