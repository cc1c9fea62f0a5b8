/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What users share of the broker, and which of them are configured to have more or less of it than others.
 *
 * A private broker serves its own user, who may have all of it. The system's broker is for everybody: there, a user may
 * have a half of what the others leave, unless the configuration says otherwise.
 *
 * Names of users and groups are looked up when the configuration is put in force, not with every client, since the
 * answer may come from the network. One that does not exist is no mistake: users may be added later than they are
 * configured.
 */

#include "app/app.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "config/value.h"
#include "log/log.h"
#include "sys/text.h"

#define DEFAULT_SHARE 50
/* What the broker's own records may take of the machine's memory: one part in so many, but not less than that. */
#define METADATA_PART 32
#define METADATA_MIN  (UINT64_C(64) << 20)
/* The entry of a user or group; a group may have very many members. */
#define ENTRY_MAX (1u << 20)

/* ---- totals ------------------------------------------------------------------------------------------------------ */

/* Each buffer that leaves the broker is watched. No limit if it cannot be read. */
static uint64_t users_watches(void)
{
    uint64_t n;

    return text_read_number(&n, "/proc/sys/fs/inotify/max_user_watches") && n ? n : UINT64_MAX;
}

static uint64_t users_metadata(const struct app *app)
{
    const struct config_size *size = &app->config->metadata;
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    if (size->percent)
        return memory / 100 * size->percent;
    if (size->bytes != CONFIG_NONE)
        return size->bytes;
    return memory / METADATA_PART > METADATA_MIN ? memory / METADATA_PART : METADATA_MIN;
}

static void users_set_totals(const struct app *app, uint64_t buffers, struct account_limits *ret)
{
    uint64_t base, watches = users_watches();

    ret->total[ACCOUNT_BUFFERS] = buffers < watches ? buffers : watches;
    ret->total[ACCOUNT_SESSIONS] = app->config->connections;
    ret->total[ACCOUNT_METADATA] = users_metadata(app);
    settings_arena(app, &base, &ret->total[ACCOUNT_ADDRESSES]);
}

/* ---- users and groups with a section of their own ---------------------------------------------------------------- */

int users_look_up(const char *name, bool is_group, uint32_t *ret)
{
    _cleanup_free_ char *text = malloc(ENTRY_MAX);
    struct passwd passwd, *found_user = NULL;
    struct group group, *found_group = NULL;
    int r;

    if (!text)
        return ENOMEM;
    if (is_group)
        r = getgrnam_r(name, &group, text, ENTRY_MAX, &found_group);
    else
        r = getpwnam_r(name, &passwd, text, ENTRY_MAX, &found_user);
    if (found_user)
        *ret = passwd.pw_uid;
    if (found_group)
        *ret = group.gr_gid;
    return found_user || found_group ? 0 : r ? r : ENOENT;
}

static int users_find(const struct config_user *user, uint32_t *ret)
{
    uint64_t number;

    if (!value_number(user->name, &number) || number >= UINT32_MAX)
        return users_look_up(user->name, user->is_group, ret);
    *ret = (uint32_t)number;
    return 0;
}

static bool users_set_policy(const struct app *app, const struct config_user *user, struct account_policy *ret)
{
    const char *kind = user->is_group ? "group" : "user";
    int r = users_find(user, &ret->id);

    if (r) {
        log_warning("%s:%u: [%s %s] has no effect: %s", app->config->path, user->line, kind, user->name,
                    r == ENOENT ? "there is none of that name; create it and have the configuration read again "
                                  "(memctl reload)"
                                : strerrordesc_np(r));
        return false;
    }
    ret->is_group = user->is_group;
    ret->share = user->share;
    for (unsigned i = 0; i < ACCOUNT_SLOTS; i++)
        ret->user[i] = user->limits[i] == CONFIG_UNSET ? ACCOUNT_DEFAULT : user->limits[i];
    return true;
}

_Static_assert(CONFIG_NONE == ACCOUNT_NO_LIMIT, "no limit");

static void users_set_policies(struct app *app, struct account_limits *ret)
{
    const struct config *config = app->config;
    struct account_policy *policies = config->n_users ? calloc(config->n_users, sizeof(*policies)) : NULL;

    for (size_t i = 0; policies && i < config->n_users; i++)
        ret->n_policies += users_set_policy(app, &config->users[i], &policies[ret->n_policies]);
    if (config->n_users && !policies)
        log_error("no memory for the users and groups of the configuration: all are like everybody");
    ret->policies = policies;
}

void users_set_limits(struct app *app, uint64_t buffers, struct account_limits *ret)
{
    const struct config *config = app->config;

    ret->administrator = geteuid();
    ret->share = config->uid_share ? config->uid_share : app->private ? SHARE_ALL : DEFAULT_SHARE;
    users_set_policies(app, ret);
    if (!app->private || ret->share != SHARE_ALL)
        users_set_totals(app, buffers, ret);
}
