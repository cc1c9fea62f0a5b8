/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whom the pools are for: from the names of the configuration to the numbers of this machine. Names are looked up when
 * a configuration is read, since that may take the machine a while, and not again. Whom the machine does not have is
 * nobody, with a warning: a user who was deleted is no reason not to start.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/app.h"
#include "log/log.h"

/* A number is taken as such, as no user or group may be called that. */
static bool look_up_id(const char *name, bool group, uint32_t *ret)
{
    unsigned long long number;
    char *end;

    errno = 0;
    number = strtoull(name, &end, 10);
    if (*name >= '0' && *name <= '9' && !*end) {
        *ret = (uint32_t)number;
        return !errno && number < UINT32_MAX;
    }
    return !users_look_up(name, group, ret);
}

static enum allow_kind look_up(const struct config_pool *pool, enum config_allow kind, const char *name, uint32_t *ret)
{
    switch (kind) {
    case CONFIG_ALLOW_CGROUP:
        return ALLOW_CGROUP;
    case CONFIG_ALLOW_UNIT:
        return ALLOW_UNIT;
    case CONFIG_ALLOW_USER:
    case CONFIG_ALLOW_GROUP:
        break;
    }
    if (look_up_id(name, kind == CONFIG_ALLOW_GROUP, ret))
        return kind == CONFIG_ALLOW_GROUP ? ALLOW_GROUP : ALLOW_USER;
    log_warning("[pool %s] allow: this machine has no %s \"%s\"; the pool is for the others", pool->name,
                kind == CONFIG_ALLOW_GROUP ? "group" : "user", name);
    return ALLOW_NONE;
}

void settings_pool_allow(const struct config_pool *pool, struct allow *ret)
{
    const char *at, *name;
    enum config_allow kind;
    size_t length;

    allow_init(ret, pool->allow);
    at = ret->text;
    while (config_allow_next(&at, &kind, &name, &length)) {
        char text[sizeof(pool->allow)];
        enum allow_kind found;
        uint32_t id = 0;

        (void)snprintf(text, sizeof(text), "%.*s", (int)length, name);
        found = look_up(pool, kind, text, &id);
        allow_add(ret, found, id, name, length);
    }
}

void settings_allow(const struct config *config, struct pools *pools)
{
    for (size_t i = 0; i < config->n_pools; i++) {
        struct pool *pool = pools_by_name(pools, config->pools[i].name);

        if (pool && pool->declared)
            settings_pool_allow(&config->pools[i], &pool->allow);
    }
}
