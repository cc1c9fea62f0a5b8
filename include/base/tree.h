/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered trees: libbsd's, with the one thing that it lacks on Linux.
 *
 * Its RB_GENERATE_STATIC needs a macro that Linux headers do not leave free. TREE_GENERATE() stands in for it:
 * the functions of a tree for one source file. All the rest (RB_HEAD, RB_ENTRY, RB_INSERT, ...) is as libbsd
 * has it; a tree whose nodes sum up what is below them defines RB_AUGMENT before it includes this.
 */
#pragma once

#include <bsd/sys/tree.h>

#define TREE_GENERATE(name, type, field, compare) \
    RB_GENERATE_INTERNAL(name, type, field, compare, __attribute__((__unused__)) static)
