/* SPDX-License-Identifier: Apache-2.0 */
/* The one heap of all contexts, its options from the environment, and the fallback without a broker. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/layer.h"
#include "opencl/svm.h"

enum { UNKNOWN, BROKER, DRIVER };

static struct memclient_svm *heap;
static atomic_int served_by; /* does not change once known */

static const char *layer_setting(const char *name)
{
    const char *value = secure_getenv(name);

    return value ? value : "";
}

static uint64_t layer_quarantine_setting(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const char *text = layer_setting("MEMORYD_OPENCL_QUARANTINE");
    unsigned long long bytes;
    char *end;

    if (!*text)
        return 0;
    errno = 0;
    bytes = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno)
        return bytes;
    layer_say(&said, "there is no quarantine: MEMORYD_OPENCL_QUARANTINE is \"%s\" and not a number of bytes", text);
    return 0;
}

static void layer_make_heap(void)
{
    struct memclient_svm_options options = MEMCLIENT_SVM_OPTIONS_INIT;

    options.quarantine = layer_quarantine_setting();
    options.flags = !strcmp(layer_setting("MEMORYD_OPENCL_SEPARATE"), "1") ? MEMCLIENT_SVM_SEPARATE : 0;
    (void)memclient_svm_create(&options, &heap);
}

struct memclient_svm *layer_heap(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, layer_make_heap);
    return heap;
}

void layer_say(atomic_flag *said, const char *format, ...)
{
    va_list arguments;
    char text[768];

    if (atomic_flag_test_and_set(said))
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "memclient-opencl: %s\n", text);
}

void layer_explain(const char *function)
{
    if (!strcmp(layer_setting("MEMORYD_OPENCL_EXPLAIN"), "1"))
        (void)fprintf(stderr, "memclient-opencl: %s() fails: %s\n", function, memclient_svm_error());
}

bool layer_has_broker(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    int now = atomic_load(&served_by);

    if (now != UNKNOWN)
        return now == BROKER;
    if (!svm_connect(layer_heap())) {
        atomic_store(&served_by, BROKER);
        return true;
    }
    if (!strcmp(layer_setting("MEMORYD_OPENCL_FALLBACK"), "fail")) {
        layer_say(&said, "clSVMAlloc() fails without a broker: %s", memclient_svm_error());
        return true;
    }
    layer_say(&said, "the driver allocates shared virtual memory itself, without a broker: %s", memclient_svm_error());
    atomic_store(&served_by, DRIVER);
    return false;
}
