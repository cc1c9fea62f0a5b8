/* SPDX-License-Identifier: Apache-2.0 */
/* See check.h. Nothing here depends on a broker. */
#include "api/check.h"

#include <string.h>

#include "base/printable.h"
#include "core/context.h"

static int refuse_size(int r, const char *what)
{
    if (r == -E2BIG)
        return fail_with(EINVAL, "%s: it sets an option that only a later version of this library has", what);
    return fail_with(EINVAL, "%s: size is not set; initialise it with its _INIT macro", what);
}

int check_options(void *to, size_t size, const void *from, const char *what)
{
    int r = sized_read(to, size, from);

    return r ? refuse_size(r, what) : 0;
}

int check_output(const void *to, const char *what)
{
    int r = to ? sized_check(to) : fail_with(EINVAL, "%s is NULL", what);

    return r && to ? refuse_size(r, what) : r;
}

int write_output(void *to, const void *from, size_t size)
{
    sized_write(to, from, size);
    return 0;
}

int check_context(struct memclient_context **ctx)
{
    return *ctx ? 0 : context_default(ctx);
}

int check_pointer(const void *pointer, const char *what)
{
    return pointer ? 0 : fail_with(EINVAL, "%s is NULL", what);
}

int check_rights(unsigned rights, unsigned allowed, const char *what)
{
    if (rights & ~allowed)
        return fail_with(EINVAL, "%s: 0x%x has bits that are no right, or none that is allowed here", what, rights);
    return 0;
}

int check_access(unsigned access)
{
    switch (access) {
    case 0:
    case MEMCLIENT_READ:
    case MEMCLIENT_WRITE:
    case MEMCLIENT_READ | MEMCLIENT_WRITE:
    case MEMCLIENT_NO_ACCESS:
        return 0;
    }
    return fail_with(EINVAL, "access 0x%x is none of READ, READ|WRITE and NO_ACCESS", access);
}

int check_name(const char *name)
{
    size_t n;

    if (!name)
        return fail_with(EINVAL, "the name is NULL");
    n = strnlen(name, MEMCLIENT_NAME_SIZE);
    if (!n || n >= MEMCLIENT_NAME_SIZE)
        return fail_with(EINVAL, "a name has 1 to %d bytes", MEMCLIENT_NAME_MAX);
    if (!utf8_is_text(name, n))
        return fail_with(EINVAL, "the name is not UTF-8");
    if (!printable_without_controls(name, n))
        return fail_with(EINVAL, "the name has a control character");
    return 0;
}

int check_name_options(const struct memclient_name_options *from, struct memclient_name_options *options)
{
    const unsigned rights = MEMCLIENT_READ | MEMCLIENT_WRITE | MEMCLIENT_SHARE;
    int r;

    r = check_options(options, sizeof(*options), from, "name options");
    if (r)
        return r;
    if (options->policy > MEMCLIENT_NAME_KEEP_FOR)
        return fail_with(EINVAL, "%u is no name policy", options->policy);
    r = check_rights(options->group_rights, rights, "group_rights");
    return r ? r : check_rights(options->other_rights, rights, "other_rights");
}
