/* SPDX-License-Identifier: Apache-2.0 */
/* See sandbox.h. */

#include "sandbox/sandbox.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#if SANDBOX

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "sandbox/filters.h"

/* What may be written is never executed, by the kernel's own rule: 6.3. */
#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

#define PROGRAM(code)                                                              \
    {                                                                              \
        .len = sizeof(code) / sizeof(*(code)), .filter = (void *)(uintptr_t)(code) \
    }

static const struct sock_fprog filters[] = {
#define X(NAME) [SANDBOX_##NAME] = PROGRAM(filter_##NAME),
    SANDBOXES(X)
#undef X
};

static bool is_entered;

bool sandbox_is_wanted(void)
{
    const char *setting = secure_getenv("MEMORYD_SANDBOX");

    return !setting || strcmp(setting, "off") != 0;
}

int sandbox_enter(enum sandbox sandbox)
{
    if (sandbox == SANDBOX_WORKER ? !is_entered : !sandbox_is_wanted())
        return 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    if (sandbox != SANDBOX_WORKER)
        (void)prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filters[sandbox]) < 0)
        return -errno;
    is_entered = true;
    return 0;
}

#else

bool sandbox_is_wanted(void)
{
    return false;
}

int sandbox_enter(enum sandbox sandbox)
{
    return 0;
}

#endif

void sandbox_hide(void)
{
    if (!sandbox_is_wanted())
        return;
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){.rlim_cur = 0});
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
