/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered trees: libbsd's, with additions.
 *
 * RB_GENERATE_STATIC of libbsd needs a macro that Linux headers do not leave free. TREE_GENERATE() replaces it: the
 * functions of a tree for one source file. The rest (RB_HEAD, RB_ENTRY, RB_INSERT, ...) is libbsd's. A tree whose nodes
 * sum up what is below them defines RB_AUGMENT before it includes this.
 *
 * Elements that come in order need no search from the root:
 *
 *     void NAME_insert_before(head, element, next);        the caller knows that it belongs right before `next`
 *     struct TYPE *NAME_insert_near(head, element, near);  as RB_INSERT, and faster if it is a neighbour of `near`,
 *                                                          which is in the tree, or NULL
 *
 * RB_AUGMENT sums up one node. Rotations keep the sums right if those below are; the sums above a change are corrected
 * by these:
 *
 *     void NAME_refresh(element);              sums up from there to the root; NULL = nothing
 *     void NAME_remove_summed(head, element);  as RB_REMOVE, and sums up above it
 */
#pragma once

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>

#define TREE_UNUSED __attribute__((__unused__)) static

#define TREE_GENERATE(name, type, field, compare)                                                           \
    RB_GENERATE_INTERNAL(name, type, field, compare, TREE_UNUSED)                                           \
    TREE_UNUSED void name##_insert_before(struct name *head, struct type *element, struct type *next)       \
    {                                                                                                       \
        struct type *parent = RB_LEFT(next, field);                                                         \
                                                                                                            \
        while (parent && RB_RIGHT(parent, field))                                                           \
            parent = RB_RIGHT(parent, field);                                                               \
        if (parent) {                                                                                       \
            RB_SET(element, parent, field);                                                                 \
            RB_RIGHT(parent, field) = element;                                                              \
        } else {                                                                                            \
            RB_SET(element, next, field);                                                                   \
            RB_LEFT(next, field) = element;                                                                 \
        }                                                                                                   \
        RB_AUGMENT(RB_PARENT(element, field));                                                              \
        name##_RB_INSERT_COLOR(head, element);                                                              \
    }                                                                                                       \
    TREE_UNUSED struct type *name##_insert_near(struct name *head, struct type *element, struct type *near) \
    {                                                                                                       \
        bool is_after = near && compare(element, near) > 0;                                                 \
        struct type *before = is_after ? near : near ? RB_PREV(name, head, near) : NULL;                    \
        struct type *next = is_after ? RB_NEXT(name, head, near) : near;                                    \
                                                                                                            \
        if (!next || compare(element, next) >= 0 || (before && compare(element, before) <= 0))              \
            return RB_INSERT(name, head, element);                                                          \
        name##_insert_before(head, element, next);                                                          \
        return NULL;                                                                                        \
    }                                                                                                       \
    TREE_UNUSED void name##_refresh(struct type *element)                                                   \
    {                                                                                                       \
        for (; element; element = RB_PARENT(element, field))                                                \
            RB_AUGMENT(element);                                                                            \
    }                                                                                                       \
    TREE_UNUSED void name##_remove_summed(struct name *head, struct type *element)                          \
    {                                                                                                       \
        /* the lowest node whose children change: where the one that is really unhooked hangs */            \
        struct type *changed = RB_PARENT(element, field);                                                   \
                                                                                                            \
        if (RB_LEFT(element, field) && RB_RIGHT(element, field)) {                                          \
            struct type *next = RB_NEXT(name, head, element);                                               \
                                                                                                            \
            changed = RB_PARENT(next, field) == element ? next : RB_PARENT(next, field);                    \
        }                                                                                                   \
        RB_REMOVE(name, head, element);                                                                     \
        name##_refresh(changed);                                                                            \
    }
