/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes, from sysfs: see memspace.h. The folder accessN/initiators of a node has its speed, and links to the nodes
 * whose processors see that speed. access0 may be about devices other than processors. Kernels that distinguish them
 * have access1 for processors.
 */
#include "umf/memspace.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/textfile.h"

#define LIST_MAX 4096 /* characters in a list of nodes */

DEFINE_CLEANUP(DIR *, closedir);

static void set_add(struct node_set *set, unsigned number)
{
    set->words[number / 64] |= UINT64_C(1) << number % 64;
}

/* ---- which ones -------------------------------------------------------------------------------------------------- */

/* Parses the list behind `key`. False: the text begins otherwise, or the list is empty. */
static bool parse_set(const char *text, const char *key, struct node_set *set)
{
    unsigned first, last;
    bool any = false;

    if (strncmp(text, key, strlen(key)) != 0)
        return false;
    text += strlen(key);
    text += strspn(text, " \t");
    *set = (struct node_set){0};
    while (textfile_range(&text, &first, &last))
        for (unsigned i = first; i <= last && i < NODE_NUMBERS; i++, any = true)
            set_add(set, i);
    return any;
}

static bool nodes_with_memory(const char *root, struct node_set *set)
{
    char list[LIST_MAX];

    return (textfile_line(list, sizeof(list), "%s/sys/devices/system/node/has_memory", root) ||
            textfile_line(list, sizeof(list), "%s/sys/devices/system/node/online", root)) &&
           parse_set(list, "", set);
}

/* The nodes that the process's control group allows. */
static bool nodes_allowed(const char *root, struct node_set *set)
{
    _cleanup_fclose_ FILE *file = NULL;
    _cleanup_free_ char *line = NULL;
    char path[PATH_MAX];
    size_t size = 0;

    (void)snprintf(path, sizeof(path), "%s/proc/self/status", root);
    file = fopen(path, "re");
    while (file && getline(&line, &size, file) > 0)
        if (parse_set(line, "Mems_allowed_list:", set))
            return true;
    return false;
}

/* ---- what they are good at --------------------------------------------------------------------------------------- */

static uint64_t read_size(const char *root, unsigned number)
{
    char line[200];
    const char *key;

    if (!textfile_line(line, sizeof(line), "%s/sys/devices/system/node/node%u/meminfo", root, number))
        return 0;
    key = strstr(line, "MemTotal:");
    return key ? strtoull(key + strlen("MemTotal:"), NULL, 10) * 1024 : 0;
}

/* Adds the values for reading and writing. If one is unknown, it counts as equal to the other. */
static uint64_t read_both(const char *dir, const char *quantity)
{
    uint64_t sum = 0;
    unsigned n = 0;

    for (unsigned i = 0; i < 2; i++) {
        char number[32];
        uint64_t value = 0;

        if (textfile_line(number, sizeof(number), "%s/%s_%s", dir, i ? "write" : "read", quantity))
            value = strtoull(number, NULL, 10);
        sum += value;
        n += value != 0;
    }
    return n == 1 ? 2 * sum : sum;
}

static bool read_speeds(struct node *node, const char *root, unsigned class)
{
    _cleanup_(closedirp) DIR *dir = NULL;
    const struct dirent *entry;
    char path[PATH_MAX];
    bool any = false;

    if (snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%u/access%u/initiators", root, node->number,
                 class) >= (int)sizeof(path))
        return false;
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        struct node_set one;

        if (parse_set(entry->d_name, "node", &one)) {
            for (unsigned i = 0; i < NODE_NUMBERS / 64; i++)
                node->nearest.words[i] |= one.words[i];
            any = true;
        }
    }
    if (!any)
        return false;
    node->bandwidth = read_both(path, "bandwidth");
    node->latency = read_both(path, "latency") / 2;
    return true;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

struct nodes *nodes_load(const char *root)
{
    struct node_set here, mine;
    struct nodes *nodes;
    size_t n = 0;

    /* a kernel without NUMA, or a container without sysfs, appears to have one node */
    if (!nodes_with_memory(root, &here))
        (void)parse_set("0", "", &here);
    if (!nodes_allowed(root, &mine))
        mine = here;
    for (unsigned i = 0; i < NODE_NUMBERS / 64; i++) {
        here.words[i] &= mine.words[i];
        n += (size_t)__builtin_popcountll(here.words[i]);
    }
    if (!n) {
        here.words[0] = 1;
        n = 1;
    }
    nodes = calloc(1, sizeof(*nodes) + n * sizeof(nodes->nodes[0]));
    if (!nodes)
        return NULL;
    for (unsigned i = 0; i < NODE_NUMBERS; i++) {
        struct node *node = &nodes->nodes[nodes->n];

        if (!node_set_has(&here, i))
            continue;
        node->number = i;
        node->bytes = read_size(root, i);
        if (!read_speeds(node, root, 1))
            (void)read_speeds(node, root, 0);
        nodes->n++;
    }
    return nodes;
}
