/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two configurations: which keys differ, and which of them a reload can change.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/keys.h"

#define KEY_BYTES (MEMORYD_POOL_NAME_MAX + 32)

static bool is_of_pool(const struct key *key)
{
    return !strcmp(key->section, "pool");
}

static const struct config_pool *pool_named(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_pools; i++)
        if (!strcmp(config->pools[i].name, name))
            return &config->pools[i];
    return NULL;
}

/* Compares two pools of that name or, without a name, two configurations except for their pools. */
static void compare_keys(const char *pool, const void *before, const void *now, config_differs *differs, void *userdata)
{
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct key *key = &config_keys[i];
        char name[KEY_BYTES];

        if (is_of_pool(key) != (pool != NULL) || key_is_same(key, before, now))
            continue;
        (void)snprintf(name, sizeof(name), "[%s%s%s] %s", key->section, pool ? " " : "", pool ? pool : "", key->name);
        differs(userdata, name, key->live);
    }
}

static void compare_pools(const struct config *before, const struct config *now, config_differs *differs,
                          void *userdata)
{
    char name[KEY_BYTES];

    for (size_t i = 0; i < now->n_pools; i++) {
        const struct config_pool *same = pool_named(before, now->pools[i].name);

        (void)snprintf(name, sizeof(name), "[pool %s]", now->pools[i].name);
        if (same)
            compare_keys(same->name, same, &now->pools[i], differs, userdata);
        else
            differs(userdata, name, false);
    }
    for (size_t i = 0; i < before->n_pools; i++) {
        (void)snprintf(name, sizeof(name), "[pool %s]", before->pools[i].name);
        if (!pool_named(now, before->pools[i].name))
            differs(userdata, name, false);
    }
}

void config_compare(const struct config *before, const struct config *now, config_differs *differs, void *userdata)
{
    compare_keys(NULL, before, now, differs, userdata);
    compare_pools(before, now, differs, userdata);
}

int config_keep_started(struct config *config, const struct config *in_force)
{
    size_t size = in_force->n_pools * sizeof(*in_force->pools);
    struct config_pool *pools = malloc(size ? size : 1);

    if (!pools)
        return -ENOMEM;
    if (size)
        memcpy(pools, in_force->pools, size);
    for (size_t i = 0; i < in_force->n_pools; i++) {
        const struct config_pool *now = pool_named(config, pools[i].name);

        for (size_t k = 0; now && k < config_n_keys; k++)
            if (config_keys[k].live && is_of_pool(&config_keys[k]))
                key_copy(&config_keys[k], &pools[i], now);
    }
    free(config->pools);
    config->pools = pools;
    config->n_pools = in_force->n_pools;
    for (size_t i = 0; i < config_n_keys; i++)
        if (!config_keys[i].live && !is_of_pool(&config_keys[i]))
            key_copy(&config_keys[i], config, in_force);
    return 0;
}
