/* SPDX-License-Identifier: Apache-2.0 */
/* See umf.h. */
#include "tests/unit/umf/umf.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"

const char *umf_config;

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

int umf_nothing_left(void **state)
{
    umf_profile(UMF_MEMORYD_PROFILE_DOCUMENT);
    observer_expect_nothing();
    return 0;
}

void umf_profile(enum umf_memoryd_profile_t profile)
{
    assert_success(umfMemorydSetProfile(profile));
}

int umf_group_setup(void **state)
{
    umf_profile(UMF_MEMORYD_PROFILE_DOCUMENT);
    /* closed memory is unmapped, unless a test is about that */
    setenv("MEMORYD_CACHE", "0", 0);
    /* a virtual machine has nodes of its own */
    observer_start(getenv("MEMORYD_VM") ? 0 : 2, umf_config);
    return 0;
}

int umf_group_teardown(void **state)
{
    umf_nothing_left(state);
    observer_stop();
    return 0;
}

static void do_read(int channel, void *context)
{
    (void)*(volatile char *)context;
}

static void do_write(int channel, void *context)
{
    *(volatile char *)context = 1;
}

/* What /proc/self/maps says of the page, such as "rwxp". */
static void access_of(const void *ptr, char access[5])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long from, to;
    char line[512];

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %4s", &from, &to, access) == 3 && (uintptr_t)ptr >= from && (uintptr_t)ptr < to)
            break;
    (void)fclose(maps);
}

void umf_check_protections(umf_memory_provider_handle_t (*make)(unsigned protection))
{
    const struct {
        unsigned protection;
        bool read, write;
    } cases[] = {
        {UMF_PROTECTION_NONE, false, false},
        {0, false, false},
        {UMF_PROTECTION_READ, true, false},
        {UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, true, true},
        {UMF_PROTECTION_READ | UMF_PROTECTION_EXEC, true, false},
        {UMF_PROTECTION_READ | UMF_PROTECTION_WRITE | UMF_PROTECTION_EXEC, true, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        umf_memory_provider_handle_t protected = make(cases[i].protection);
        char access[5] = "";
        void *ptr;

        assert_success(umfMemoryProviderAlloc(protected, page_size(), 0, &ptr));
        assert_int_equal(child_signal(do_read, ptr), cases[i].read ? 0 : SIGSEGV);
        assert_int_equal(child_signal(do_write, ptr), cases[i].write ? 0 : SIGSEGV);
        access_of(ptr, access);
        assert_int_equal(access[2] == 'x', cases[i].protection & UMF_PROTECTION_EXEC ? 1 : 0);
        assert_success(umfMemoryProviderFree(protected, ptr, page_size()));
        umfMemoryProviderDestroy(protected);
    }
}
