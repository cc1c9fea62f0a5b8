/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two configurations: which keys differ, and which of them a reload can change.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/keys.h"

#define SECTION_BYTES (MEMORYD_POOL_NAME_MAX + 16)
#define KEY_BYTES     (SECTION_BYTES + 32)

static bool is_of_named(const struct key *key)
{
    return !strcmp(key->section, "pool") || !strcmp(key->section, "user");
}

static const struct config_pool *pool_named(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_pools; i++)
        if (!strcmp(config->pools[i].name, name))
            return &config->pools[i];
    return NULL;
}

static const struct config_user *user_named(const struct config *config, const struct config_user *like)
{
    for (size_t i = 0; i < config->n_users; i++)
        if (config->users[i].is_group == like->is_group && !strcmp(config->users[i].name, like->name))
            return &config->users[i];
    return NULL;
}

/* Compares two pools or two users, whose keys are below `kind` and whose section is called `section`; or without a kind
 * two configurations, except for those. */
static void compare_keys(const char *kind, const char *section, const void *before, const void *now,
                         config_differs *differs, void *userdata)
{
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct key *key = &config_keys[i];
        char name[KEY_BYTES];

        if ((kind ? strcmp(key->section, kind) != 0 : is_of_named(key)) || key_is_same(key, before, now))
            continue;
        (void)snprintf(name, sizeof(name), "[%s] %s", kind ? section : key->section, key->name);
        differs(userdata, name, key->live);
    }
}

static void compare_pools(const struct config *before, const struct config *now, config_differs *differs,
                          void *userdata)
{
    char name[KEY_BYTES];

    for (size_t i = 0; i < now->n_pools; i++) {
        const struct config_pool *same = pool_named(before, now->pools[i].name);
        char section[SECTION_BYTES];

        (void)snprintf(section, sizeof(section), "pool %s", now->pools[i].name);
        (void)snprintf(name, sizeof(name), "[%s]", section);
        if (same)
            compare_keys("pool", section, same, &now->pools[i], differs, userdata);
        else
            differs(userdata, name, false);
    }
    for (size_t i = 0; i < before->n_pools; i++) {
        (void)snprintf(name, sizeof(name), "[pool %s]", before->pools[i].name);
        if (!pool_named(now, before->pools[i].name))
            differs(userdata, name, false);
    }
}

static const char *section_of(const struct config_user *user, char text[static SECTION_BYTES])
{
    (void)snprintf(text, SECTION_BYTES, "%s %s", user->is_group ? "group" : "user", user->name);
    return text;
}

static void compare_users(const struct config *before, const struct config *now, config_differs *differs,
                          void *userdata)
{
    char section[SECTION_BYTES], name[KEY_BYTES];

    for (size_t i = 0; i < now->n_users; i++) {
        const struct config_user *user = &now->users[i], *same = user_named(before, user);

        (void)snprintf(name, sizeof(name), "[%s]", section_of(user, section));
        if (same)
            compare_keys("user", section, same, user, differs, userdata);
        else
            differs(userdata, name, true);
    }
    for (size_t i = 0; i < before->n_users; i++) {
        (void)snprintf(name, sizeof(name), "[%s]", section_of(&before->users[i], section));
        if (!user_named(now, &before->users[i]))
            differs(userdata, name, true);
    }
}

void config_compare(const struct config *before, const struct config *now, config_differs *differs, void *userdata)
{
    compare_keys(NULL, NULL, before, now, differs, userdata);
    compare_pools(before, now, differs, userdata);
    compare_users(before, now, differs, userdata);
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
            if (config_keys[k].live && !strcmp(config_keys[k].section, "pool"))
                key_copy(&config_keys[k], &pools[i], now);
    }
    free(config->pools);
    config->pools = pools;
    config->n_pools = in_force->n_pools;
    for (size_t i = 0; i < config_n_keys; i++)
        if (!config_keys[i].live && !is_of_named(&config_keys[i]))
            key_copy(&config_keys[i], config, in_force);
    return 0;
}
