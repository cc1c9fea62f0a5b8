/* SPDX-License-Identifier: Apache-2.0 */
/* See opencl.h. */
#include "tests/unit/opencl/opencl.h"

#include <stdlib.h>

#include "tests/support/wait.h"

struct broker_process svm_broker;
struct memclient_context *svm_observer;
const char *svm_config;

static uint64_t asked; /* requests that were our questions */

#if TEST_TSAN
/* Children of threads start one of their own, which the thread sanitizer takes for a mistake. */
__attribute__((__visibility__("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}
#endif

void svm_assert(int got, int wanted, const char *call, const char *file, int line)
{
    if (got == wanted)
        return;
    print_error("%s\n    gave %d \"%s\", wanted %d\n", call, got, got ? memclient_svm_error() : "", wanted);
    _fail(file, line);
}

static struct memclient_broker_info status(void)
{
    struct memclient_broker_info answer = MEMCLIENT_BROKER_INFO_INIT;

    assert_int_equal(memclient_broker_query(svm_observer, &answer), 0);
    asked++;
    return answer;
}

uint64_t svm_buffers(void)
{
    return status().buffers;
}

uint64_t svm_names(void)
{
    return status().names;
}

uint64_t svm_requests(void)
{
    struct memclient_broker_info answer = status();

    return answer.requests - asked;
}

/* What is still to be emptied is charged, and the next test's limit is soon reached with it. */
static uint64_t buffers_and_endings(void)
{
    struct memclient_broker_info answer = status();

    return answer.buffers + answer.buffers_ending;
}

int svm_nothing_left(void **state)
{
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;

    if (!WAIT_UNTIL(buffers_and_endings() == 0))
        fail_msg("%llu buffers are left", (unsigned long long)buffers_and_endings());
    assert_int_equal(svm_names(), 0);
    assert_int_equal(memclient_broker_check(svm_observer, &result), 0);
    asked++;
    if (result.faults)
        fail_msg("%s", result.sentences[0]);
    return 0;
}

int svm_group_setup(void **state)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    char config[4096];

    snprintf(config, sizeof(config), "[topology]\nsimulate_nodes = 2\n%s", svm_config ? svm_config : "");
    broker_start(&svm_broker, config, 0);
    setenv("MEMORYD_SOCKET", svm_broker.socket, 1);
    setenv("MEMORYD_AUTOSTART", "0", 1);
    /* what is freed goes back, unless a test is about that */
    setenv("MEMORYD_CACHE", "0", 0);
    options.socket = svm_broker.socket;
    assert_int_equal(memclient_context_open(&options, &svm_observer), 0);
    return 0;
}

int svm_group_teardown(void **state)
{
    svm_nothing_left(state);
    memclient_context_close(svm_observer);
    broker_stop(&svm_broker);
    return 0;
}

struct memclient_svm *svm_create(unsigned flags, uint64_t quarantine)
{
    struct memclient_svm_options options = MEMCLIENT_SVM_OPTIONS_INIT;
    struct memclient_svm *svm;

    options.flags = flags;
    options.quarantine = quarantine;
    assert_done(memclient_svm_create(&options, &svm));
    return svm;
}

void *svm_allocate(struct memclient_svm *svm, uint64_t size)
{
    void *ptr;

    assert_done(memclient_svm_alloc(svm, MEMCLIENT_SVM_READ_WRITE, size, 0, &ptr));
    return ptr;
}
