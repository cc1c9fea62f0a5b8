/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index from ranges of addresses, which do not overlap, to values. Lookups take no lock and never wait; changes are
 * made one at a time, under a lock of the caller's.
 *
 *     static struct range_index index;                                 all zeros: nothing is in it
 *
 *     range_index_insert(&index, start, size, value)                   with the lock
 *     if (range_index_find(&index, address, &entry)) ... entry.value   without
 *
 * A range of size 0 takes the place of one byte.
 *
 * It is a radix tree of the ranges' starts, of 4 bits a level, without levels that have only one branch: a node knows
 * what the starts below it have in common (its prefix) and which 4 bits come next (its shift), and has at least two
 * children. The word for a child tells its kind: 0 is none, an odd word is a leaf, and the word of a node has the
 * node's shift in its low 6 bits. So a search goes down from word to word, with one cache line for each node, and
 * compares at the leaf only. If that leaf does not hold the address, the range that does, if any, is the last to start
 * before it, which a second search finds by prefixes.
 *
 * What readers rely on:
 *
 * - A leaf never changes: a range gets another size by another leaf. Nor do a node's prefix and shift. A child is
 *   entered when everything below it is complete. So readers see a whole tree at any time, and copy an entry from one
 *   leaf.
 * - Memory of leaves and nodes is never used for anything else, so a late reader finds leaves and nodes, if not those
 *   that it looked for. There are never more of them than were needed at once.
 * - A leaf or node that is taken out keeps its contents until RANGE_INDEX_REST others were taken out after it.
 * `retired`
 *   counts them. A reader that sees it grow by less than that has met nothing that was reused; else it begins again. So
 *   it repeats only if writers have made much progress, and a writer that stands still does not delay it.
 * - While a range is in the index, the last start at or before any of its addresses is its own, so a reader does not
 *   miss it whatever changes elsewhere. Only if ranges are split or merged might the reader see one of the two before
 *   and the other after the change. `reshaped` counts these between their two steps, after either of which all
 *   addresses are found; a reader that has found nothing checks whether it has changed.
 *
 * Stores that a reader may see are releases, its loads acquires: a reader that sees a reused leaf or node also sees the
 * value of `retired` at that time. No fence is needed, which thread sanitizers do not support.
 *
 * The caller's lock must be held at a fork, so that the child finds a whole tree. Readers in other threads leave
 * nothing behind in the child.
 */
#pragma once

#include "base/range_tree.h"

/* ---- looking up, without a lock ---------------------------------------------------------------------------------- */

static inline bool range_leaf_holds(uintptr_t word, uint64_t address, struct range_entry *copy)
{
    const struct range_entry *entry;

    if (!word)
        return false;
    entry = &range_word_leaf(word)->entry;
    copy->start = __atomic_load_n(&entry->start, __ATOMIC_ACQUIRE);
    copy->size = __atomic_load_n(&entry->size, __ATOMIC_ACQUIRE);
    copy->value = __atomic_load_n(&entry->value, __ATOMIC_ACQUIRE);
    return range_entry_holds(copy, address);
}

/* The highest of a node's children below the slot `end`; 0 if there is none. */
static inline uintptr_t range_node_last(const struct range_node *node, unsigned end)
{
    uintptr_t word = 0;

    while (!word && end--)
        word = range_word_load(&node->child[end]);
    return word;
}

/* The word of the last leaf that starts at or before the address, or of one that starts after it. */
RANGE_INDEX_UNUSED uintptr_t range_index_look_before(const struct range_index *index, uint64_t address)
{
    uintptr_t word = range_word_load(&index->root), before = 0, lower;

    while (range_word_is_node(word)) {
        const struct range_node *node = range_word_node(word);
        unsigned slot = range_slot(address, range_word_shift(word));
        uint64_t prefix = __atomic_load_n(&node->prefix, __ATOMIC_ACQUIRE);

        if (!range_is_below(address, prefix, range_word_shift(word))) {
            if (prefix < address)
                before = word;
            word = 0;
            break;
        }
        lower = range_node_last(node, slot);
        if (lower)
            before = lower;
        word = range_word_load(&node->child[slot]);
    }
    if (word && __atomic_load_n(&range_word_leaf(word)->entry.start, __ATOMIC_ACQUIRE) <= address)
        return word;
    while (range_word_is_node(before))
        before = range_node_last(range_word_node(before), 16);
    return before;
}

/* Copies the range that holds the address; false, and nothing is copied, if there is none. */
static inline bool range_index_find(const struct range_index *index, uint64_t address, struct range_entry *ret)
{
    uint64_t retired, reshaped;
    struct range_entry entry;
    uintptr_t word;
    bool found;

    do {
        retired = __atomic_load_n(&index->retired, __ATOMIC_ACQUIRE);
        reshaped = __atomic_load_n(&index->reshaped, __ATOMIC_ACQUIRE);
        word = range_word_load(&index->root);
        if (!word)
            return false;
        while (range_word_is_node(word))
            word = range_word_load(&range_word_node(word)->child[range_slot(address, range_word_shift(word))]);
        found = range_leaf_holds(word, address, &entry) ||
                range_leaf_holds(range_index_look_before(index, address), address, &entry);
    } while (__atomic_load_n(&index->retired, __ATOMIC_ACQUIRE) - retired >= RANGE_INDEX_REST ||
             (!found && __atomic_load_n(&index->reshaped, __ATOMIC_ACQUIRE) != reshaped));
    if (found)
        *ret = entry;
    return found;
}

static inline bool range_index_is_empty(const struct range_index *index)
{
    return !range_word_load(&index->root);
}

/* ---- changing, with the lock ------------------------------------------------------------------------------------- */

/* Finds the neighbours of a range to be entered. False if one of them overlaps it. */
static inline bool range_index_fits(struct range_index *index, uint64_t start, uint64_t size, struct range_path *path,
                                    struct range_leaf **before, struct range_leaf **after)
{
    range_path_go(index, start, path);
    *before = range_path_before(path, start);
    *after = range_path_after(path, start);
    return !(*before && range_entry_holds(&(*before)->entry, start)) &&
           !(*after && ((*after)->entry.start - start < size || (*after)->entry.start == start));
}

/* 0, -EEXIST if a range overlaps it, or -ENOMEM. The last byte's address must be UINT64_MAX at most. */
RANGE_INDEX_UNUSED int range_index_insert(struct range_index *index, uint64_t start, uint64_t size, void *value)
{
    struct range_leaf *before, *after, *leaf;
    struct range_path path;

    if (!range_index_fits(index, start, size, &path, &before, &after))
        return -EEXIST;
    leaf = range_leaf_new(index, start, size, value);
    return leaf ? range_path_enter(index, &path, leaf) : -ENOMEM;
}

/*
 * Takes out the range of this start, and copies it. NULL for `value` and 0 for `size` mean any. False if there is none.
 */
RANGE_INDEX_UNUSED bool range_index_take(struct range_index *index, uint64_t start, uint64_t size, const void *value,
                                         struct range_entry *ret)
{
    uintptr_t *place = &index->root, *above = NULL, word = *place;
    struct range_node *node = NULL;
    const struct range_entry *entry;
    unsigned slot = 0;

    while (range_word_is_node(word)) {
        above = place;
        node = range_word_node(word);
        slot = range_slot(start, range_word_shift(word));
        place = &node->child[slot];
        word = *place;
    }
    if (!word)
        return false;
    entry = &range_word_leaf(word)->entry;
    if (entry->start != start || (size && entry->size != size) || (value && entry->value != value))
        return false;
    *ret = *entry;
    range_word_store(place, 0);
    if (node) {
        node->present &= ~(UINT32_C(1) << slot);
        if (!(node->present & (node->present - 1))) {
            uintptr_t itself = *above;

            range_word_store(above, node->child[__builtin_ctz(node->present)]);
            range_index_retire(index, itself);
        }
    }
    range_index_retire(index, word);
    return true;
}

static inline bool range_index_remove(struct range_index *index, uint64_t start)
{
    struct range_entry entry;

    return range_index_take(index, start, 0, NULL, &entry);
}

/* Splits the range that holds the address in two, the second of which starts there. 0, or -ENOMEM. */
RANGE_INDEX_UNUSED int range_index_split(struct range_index *index, uint64_t address)
{
    struct range_leaf *low, *high;
    struct range_entry whole;
    struct range_path path;
    int r;

    if (!range_index_find(index, address, &whole) || whole.start == address)
        return 0;
    low = range_leaf_new(index, whole.start, address - whole.start, whole.value);
    if (!low)
        return -ENOMEM;
    high = range_leaf_new(index, address, whole.size - (address - whole.start), whole.value);
    range_path_go(index, address, &path);
    r = high ? range_path_enter(index, &path, high) : -ENOMEM;
    if (r) {
        range_leaf_free(index, low);
        return r;
    }
    range_index_reshape(index);
    range_index_replace(index, range_index_place(index, whole.start), low);
    return 0;
}

/*
 * Merges two adjacent ranges, given by their starts, into one with the value of the first. -ENOENT: there are none
 * such.
 */
RANGE_INDEX_UNUSED int range_index_merge(struct range_index *index, uint64_t low, uint64_t high)
{
    uintptr_t *place = range_index_place(index, low), *second = range_index_place(index, high);
    const struct range_entry *entry;
    struct range_leaf *both;

    if (!place || !second || high - low != range_word_leaf(*place)->entry.size)
        return -ENOENT;
    entry = &range_word_leaf(*second)->entry;
    both = range_leaf_new(index, low, high - low + entry->size, range_word_leaf(*place)->entry.value);
    if (!both)
        return -ENOMEM;
    range_index_replace(index, place, both);
    range_index_reshape(index);
    (void)range_index_remove(index, high);
    return 0;
}

/*
 * range_index_insert() for callers that do not care where one range of a value ends and the next begins: the new range
 * becomes one with adjacent ranges of the same value, so that many ranges side by side are few.
 */
RANGE_INDEX_UNUSED int range_index_join(struct range_index *index, uint64_t start, uint64_t size, void *value)
{
    struct range_leaf *before, *after, *leaf;
    struct range_path path;
    uint64_t high = 0;
    int r = 0;

    if (!range_index_fits(index, start, size, &path, &before, &after))
        return -EEXIST;
    if (after && after->entry.start - start == size && after->entry.value == value) {
        high = after->entry.start;
        size += after->entry.size;
    }
    if (before && start - before->entry.start == before->entry.size && before->entry.value == value) {
        leaf = range_leaf_new(index, before->entry.start, before->entry.size + size, value);
        if (!leaf)
            return -ENOMEM;
        range_index_replace(index, range_index_place(index, before->entry.start), leaf);
    } else {
        leaf = range_leaf_new(index, start, size, value);
        r = leaf ? range_path_enter(index, &path, leaf) : -ENOMEM;
    }
    if (!r && high) {
        range_index_reshape(index);
        (void)range_index_remove(index, high);
    }
    return r;
}

/* For the same callers: takes these addresses out of the range that has all of them, if its value is this. 1, 0 or
 * -ENOMEM. */
RANGE_INDEX_UNUSED int range_index_cut(struct range_index *index, uint64_t start, uint64_t size, const void *value)
{
    struct range_leaf *low = NULL, *high = NULL;
    uint64_t before, after;
    struct range_entry whole;
    struct range_path path;

    if (!range_index_find(index, start, &whole) || whole.value != value)
        return 0;
    before = start - whole.start;
    if (size > whole.size - before)
        return 0;
    after = whole.size - before - size;
    if (before && !(low = range_leaf_new(index, whole.start, before, whole.value)))
        return -ENOMEM;
    if (after) {
        high = range_leaf_new(index, start + size, after, whole.value);
        range_path_go(index, start + size, &path);
        if (!high || range_path_enter(index, &path, high)) {
            if (low)
                range_leaf_free(index, low);
            return -ENOMEM;
        }
        range_index_reshape(index);
    }
    if (low)
        range_index_replace(index, range_index_place(index, whole.start), low);
    else
        (void)range_index_remove(index, whole.start);
    return 1;
}

/* The range that holds the address, or else the first after it; false if there is none. */
RANGE_INDEX_UNUSED bool range_index_next(struct range_index *index, uint64_t address, struct range_entry *ret)
{
    const struct range_leaf *leaf;
    struct range_path path;

    if (range_index_find(index, address, ret))
        return true;
    range_path_go(index, address, &path);
    leaf = range_path_after(&path, address);
    if (leaf)
        *ret = leaf->entry;
    return leaf;
}

/* Gives all memory back. There must be no readers any more. */
RANGE_INDEX_UNUSED void range_index_deinit(struct range_index *index)
{
    struct range_chunk *chunk, *next;

    for (chunk = index->chunks; chunk; chunk = next) {
        next = chunk->next;
        if (__lsan_unregister_root_region)
            __lsan_unregister_root_region(chunk, RANGE_INDEX_CHUNK);
        (void)munmap(chunk, RANGE_INDEX_CHUNK);
    }
    *index = (struct range_index){.root = 0};
}
