/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive, circular, doubly linked list.
 *
 * The link is a member of the object, so that entering and leaving a list allocates nothing and cannot fail, and an
 * object is removed without knowing which list it is in. A head and a link are the same struct. An unlinked one points
 * at itself, which list_is_linked() sees; removing it does nothing.
 *
 *     struct session { struct list in_table; ... };
 *
 *     struct list table = LIST_INIT(table);
 *     list_append(&table, &session->in_table);
 *     list_for_each_entry(s, &table, struct session, in_table) ...
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev;
    struct list *next;
};

#define LIST_INIT(name)                  \
    {                                    \
        .prev = &(name), .next = &(name) \
    }

/* The object of type `type` whose member `member` is *ptr. */
#define container_of(ptr, type, member)                             \
    ({                                                              \
        __typeof__(((type *)0)->member) *_member = (ptr);           \
                                                                    \
        (type *)(void *)((char *)_member - offsetof(type, member)); \
    })

static inline void list_init(struct list *list)
{
    list->prev = list;
    list->next = list;
}

/* For a link: is it in a list? */
static inline bool list_is_linked(const struct list *link)
{
    return link->next != link;
}

/* For a head: is nothing in it? */
static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_insert_between(struct list *prev, struct list *link, struct list *next)
{
    link->prev = prev;
    link->next = next;
    prev->next = link;
    next->prev = link;
}

/* `link` must not be in a list. It becomes the first. */
static inline void list_prepend(struct list *head, struct list *link)
{
    list_insert_between(head, link, head->next);
}

/* `link` must not be in a list. It becomes the last. */
static inline void list_append(struct list *head, struct list *link)
{
    list_insert_between(head->prev, link, head);
}

/* Removes it from its list, if it is in one. */
static inline void list_remove(struct list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}

/* NULL if empty. */
static inline struct list *list_first(const struct list *head)
{
    return list_is_empty(head) ? NULL : head->next;
}

/* Removes and returns the first; NULL if empty. In `while ((l = list_pop(&head)))` the body may change the list. */
static inline struct list *list_pop(struct list *head)
{
    struct list *link = list_first(head);

    if (link)
        list_remove(link);
    return link;
}

/* Moves all of `from` to the end of `to`, in order; `from` is empty then. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/* The body must not remove the entry it is at. */
#define list_for_each(link, head) for (struct list *link = (head)->next; link != (head); link = link->next)

/* As list_for_each(), over the objects of type `type` by their member `member`. */
#define list_for_each_entry(entry, head, type, member)                                     \
    for (type *entry = container_of((head)->next, type, member); &entry->member != (head); \
         entry = container_of(entry->member.next, type, member))

/* The same, and the body may remove the entry it is at, but no other. */
#define list_for_each_entry_safe(entry, head, type, member)                    \
    for (type *entry = container_of((head)->next, type, member),               \
              *_next_##entry = container_of(entry->member.next, type, member); \
         &entry->member != (head);                                             \
         entry = _next_##entry, _next_##entry = container_of(entry->member.next, type, member))
