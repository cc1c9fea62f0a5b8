/* SPDX-License-Identifier: Apache-2.0 */
/* See observer.h. */
#include "tests/integration/observer.h"

#include <stdlib.h>

#include "tests/support/test.h"
#include "tests/support/wait.h"

struct broker_process observed;

static struct memclient_context *observer;
static uint64_t asked; /* requests that were ours */

static struct memclient_broker_info status(void)
{
    struct memclient_broker_info answer = MEMCLIENT_BROKER_INFO_INIT;

    assert_int_equal(memclient_broker_query(observer, &answer), 0);
    asked++;
    return answer;
}

uint64_t observer_requests(void)
{
    struct memclient_broker_info answer = status();

    return answer.requests - asked;
}

void observer_settle(void)
{
    assert_int_equal(memclient_broker_ping(NULL), 0);
}

uint64_t observer_settled_requests(struct memclient_context *ctx)
{
    assert_int_equal(memclient_broker_ping(ctx), 0);
    asked++;
    return observer_requests();
}

uint64_t observer_buffers(void)
{
    return status().buffers;
}

static uint64_t all_buffers(void)
{
    struct memclient_broker_info answer = status();

    return answer.buffers + answer.buffers_detached + answer.buffers_ending;
}

void observer_expect_nothing(void)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;

    if (!WAIT_UNTIL(all_buffers() == 0))
        fail_msg("%llu buffers are left", (unsigned long long)all_buffers());
    assert_int_equal(memclient_broker_check(observer, &result), 0);
    asked++;
    if (result.faults)
        fail_msg("%s", result.sentences[0]);
}

void observer_start(unsigned nodes, const char *config)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    char whole[4096];

    snprintf(whole, sizeof(whole), "[topology]\nsimulate_nodes = %u\n%s", nodes, config ? config : "");
    broker_start(&observed, whole, 0);
    setenv("MEMORYD_SOCKET", observed.socket, 1);
    setenv("MEMORYD_AUTOSTART", "0", 1);
    options.socket = observed.socket;
    assert_int_equal(memclient_context_open(&options, &observer), 0);
}

void observer_upgrade(void)
{
    assert_int_equal(memclient_broker_upgrade(observer), 0);
    asked++;
}

void observer_stop(void)
{
    memclient_context_close(observer);
    broker_stop(&observed);
}

int observer_group_setup(void **state)
{
    observer_start(2, NULL);
    return 0;
}

int observer_group_teardown(void **state)
{
    observer_stop();
    return 0;
}
