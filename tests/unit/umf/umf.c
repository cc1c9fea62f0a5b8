/* SPDX-License-Identifier: Apache-2.0 */
/* See umf.h. */
#include "tests/unit/umf/umf.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/wait.h"

struct broker_process umf_broker;
const char *umf_config;

static struct memclient *observer; /* a session of our own beside UMF's */
static uint64_t asked;             /* requests that were our questions */

void umf_assert_native(umf_memory_provider_handle_t provider, int32_t number, const char *beginning, const char *call,
                       const char *file, int line)
{
    const char *text = NULL;
    int32_t got = 0;

    umfMemoryProviderGetLastNativeError(provider, &text, &got);
    if (got == number && text && !strncmp(text, beginning, strlen(beginning)))
        return;
    print_error("%s\n    gave   %d \"%s\"\n    wanted %d \"%s\"\n", call, (int)got, text ? text : "NULL", (int)number,
                beginning);
    _fail(file, line);
}

static struct memclient_broker_status status(void)
{
    struct memclient_broker_status answer = MEMCLIENT_BROKER_STATUS_INIT;

    assert_int_equal(memclient_status(observer, &answer), 0);
    asked++;
    return answer;
}

uint64_t umf_requests(void)
{
    struct memclient_broker_status answer = status();

    return answer.requests - asked;
}

uint64_t umf_buffers(void)
{
    return status().buffers;
}

int umf_nothing_left(void **state)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;

    (void)state;
    umf_profile(UMF_MEMORYD_PROFILE_DOCUMENT);
    if (!WAIT_UNTIL(umf_buffers() == 0))
        fail_msg("%llu buffers are left", (unsigned long long)umf_buffers());
    assert_int_equal(memclient_check(observer, &result), 0);
    asked++;
    if (result.faults)
        fail_msg("%s", result.sentences[0]);
    return 0;
}

void umf_profile(enum umf_memoryd_profile_t profile)
{
    assert_success(umfMemorydSetProfile(profile));
}

int umf_group_setup(void **state)
{
    struct memclient_options options = MEMCLIENT_OPTIONS_INIT;
    char config[4096];

    (void)state;
    snprintf(config, sizeof(config), "[topology]\nsimulate_nodes = 2\n%s", umf_config ? umf_config : "");
    broker_start(&umf_broker, config, 0);
    setenv("MEMORYD_SOCKET", umf_broker.socket, 1);
    setenv("MEMORYD_AUTOSTART", "0", 1);
    options.socket = umf_broker.socket;
    assert_int_equal(memclient_open(&options, &observer), 0);
    return 0;
}

int umf_group_teardown(void **state)
{
    umf_nothing_left(state);
    memclient_close(observer);
    broker_stop(&umf_broker);
    return 0;
}
