/* SPDX-License-Identifier: Apache-2.0 */
/* See log.h. The settings are read when the library is loaded, and never change. */
#include "umf/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <memclient/memclient.h>
#include <memclient/umf/umf.h>

#include "base/cleanup.h"

#define LINE_SIZE 1024

static struct {
    int level, flush;   /* enum log_level */
    int timestamp, pid; /* 1: yes */
    FILE *output;
} settings = {.level = LOG_OFF, .flush = LOG_ERROR};

static __thread struct log_reason reason;

/* ---- UMF_LOG ----------------------------------------------------------------------------------------------------- */

static const char *const levels[] = {"debug", "info", "warning", "error", "fatal", NULL};
static const char *const yes_no[] = {"no", "yes", NULL};

static void log_complain(const char *item, const char *what)
{
    (void)fprintf(stderr, "memclient-umf: UMF_LOG: \"%s\": %s\n", item, what);
}

static void set_output(const char *item, const char *value)
{
    static const char file[] = "file,";
    char what[256];

    if (!strcmp(value, "stdout")) {
        settings.output = stdout;
    } else if (!strcmp(value, "stderr")) {
        settings.output = stderr;
    } else if (!strncmp(value, file, sizeof(file) - 1) && value[sizeof(file) - 1]) {
        settings.output = fopen(value + sizeof(file) - 1, "ae");
        if (!settings.output) {
            (void)snprintf(what, sizeof(what), "cannot open it: %s", strerror(errno));
            log_complain(item, what);
        }
    } else {
        log_complain(item, "the output must be stdout, stderr or file,PATH");
    }
}

/* An item whose value is one of several words. */
static const struct log_item {
    const char *name;
    const char *const *words;
    int *value; /* gets the word's index */
    const char *complaint;
} log_items[] = {
    {"level:", levels, &settings.level, "the level must be debug, info, warning, error or fatal"},
    {"flush:", levels, &settings.flush, "the level must be debug, info, warning, error or fatal"},
    {"timestamp:", yes_no, &settings.timestamp, "must be yes or no"},
    {"pid:", yes_no, &settings.pid, "must be yes or no"},
};

static void set_word(const struct log_item *kind, const char *item, const char *value)
{
    for (int i = 0; kind->words[i]; i++)
        if (!strcmp(value, kind->words[i])) {
            *kind->value = i;
            return;
        }
    log_complain(item, kind->complaint);
}

static void read_item(const char *item)
{
    static const char output[] = "output:";

    if (!strncmp(item, output, strlen(output))) {
        set_output(item, item + strlen(output));
        return;
    }
    for (size_t i = 0; i < sizeof(log_items) / sizeof(log_items[0]); i++)
        if (!strncmp(item, log_items[i].name, strlen(log_items[i].name))) {
            set_word(&log_items[i], item, item + strlen(log_items[i].name));
            return;
        }
    log_complain(item, "unknown, must be level:, flush:, output:, timestamp: or pid:");
}

void log_init(void)
{
    const char *value = secure_getenv("UMF_LOG");
    _cleanup_free_ char *items = value ? strdup(value) : NULL;
    char *rest = NULL;

    if (!items || !*items)
        return;
    settings.level = LOG_ERROR;
    for (char *item = strtok_r(items, ";", &rest); item; item = strtok_r(NULL, ";", &rest))
        read_item(item);
    if (!settings.output) {
        log_complain(value, "nothing is logged without output:stdout, output:stderr or output:file,PATH");
        settings.level = LOG_OFF;
        return;
    }
    log_write(LOG_INFO, __func__, "memclient-umf %s, UMF %d.%d, level: %s, flush: %s", memclient_version(),
              UMF_MAJOR_VERSION(UMF_VERSION_CURRENT), UMF_MINOR_VERSION(UMF_VERSION_CURRENT), levels[settings.level],
              levels[settings.flush]);
}

void log_deinit(void)
{
    FILE *output = settings.output;

    settings.level = LOG_OFF;
    settings.output = NULL;
    if (output && output != stdout && output != stderr)
        (void)fclose(output);
}

void log_flush(void)
{
    if (settings.level != LOG_OFF)
        (void)fflush(settings.output);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

bool log_wants(enum log_level level)
{
    return (int)level >= settings.level;
}

static void write_line(enum log_level level, const char *function, const char *text)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
    char when[32] = "", who[64] = "";
    time_t now = time(NULL);
    struct tm local;

    if (settings.timestamp && localtime_r(&now, &local))
        (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S ", &local);
    if (settings.pid)
        (void)snprintf(who, sizeof(who), "PID:%-6ld TID:%-6ld ", (long)getpid(), syscall(SYS_gettid));
    (void)fprintf(settings.output, "[%s%s%-5s UMF] %s: %s\n", when, who, names[level], function, text);
    if ((int)level >= settings.flush)
        (void)fflush(settings.output);
}

void log_write(enum log_level level, const char *function, const char *format, ...)
{
    int number = errno;
    char text[LINE_SIZE];
    va_list arguments;

    if (!log_wants(level))
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    write_line(level, function, text);
    errno = number;
}

/* ---- why --------------------------------------------------------------------------------------------------------- */

void log_because(const char *sentence)
{
    if (log_wants(LOG_ERROR))
        (void)snprintf(reason.text, sizeof(reason.text), "%s", sentence);
}

void log_because_of(int r)
{
    if (r == -EBADMSG)
        log_because("the handle is damaged, or of another kind of provider");
    else if (r == -EFAULT)
        log_because("the provider has no such memory");
    else if (r)
        log_because(memclient_error());
}

struct log_reason log_reason(void)
{
    struct log_reason said = reason;

    reason.text[0] = '\0';
    return said;
}

const char *log_name_of(umf_result_t result)
{
    switch (result) {
    case UMF_RESULT_SUCCESS:
        return "SUCCESS";
    case UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY:
        return "OUT_OF_HOST_MEMORY";
    case UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC:
        return "MEMORY_PROVIDER_SPECIFIC";
    case UMF_RESULT_ERROR_INVALID_ARGUMENT:
        return "INVALID_ARGUMENT";
    case UMF_RESULT_ERROR_INVALID_ALIGNMENT:
        return "INVALID_ALIGNMENT";
    case UMF_RESULT_ERROR_NOT_SUPPORTED:
        return "NOT_SUPPORTED";
    case UMF_RESULT_ERROR_UNKNOWN:
        return "UNKNOWN";
    }
    return "unknown result";
}
