/* SPDX-License-Identifier: Apache-2.0 */
/* The intrusive list: order, leaving, and loops that remove. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

struct item {
    int value;
    struct list link;
};

static void items_init(struct item *items, int n)
{
    for (int i = 0; i < n; i++) {
        items[i].value = i;
        list_init(&items[i].link);
    }
}

/* The values in order as one decimal number; walks backwards too and wants the same. */
static int values(const struct list *head)
{
    int forward = 0, backward = 0, factor = 1;

    list_for_each_entry(item, (struct list *)head, struct item, link)
        forward = forward * 10 + item->value;
    for (const struct list *l = head->prev; l != head; l = l->prev) {
        backward += factor * container_of((struct list *)l, struct item, link)->value;
        factor *= 10;
    }
    assert_int_equal(forward, backward);
    return forward;
}

static void test_empty(void **state)
{
    struct list head = LIST_INIT(head);
    int rounds = 0;

    assert_true(list_is_empty(&head));
    assert_null(list_first(&head));
    assert_null(list_pop(&head));
    list_for_each(l, &head)
        rounds++;
    list_for_each_entry(item, &head, struct item, link)
        rounds++;
    list_for_each_entry_safe(item, &head, struct item, link)
        rounds++;
    assert_int_equal(rounds, 0);
}

static void test_order(void **state)
{
    struct list head = LIST_INIT(head);
    struct item items[6];

    items_init(items, 6);
    list_append(&head, &items[3].link);
    assert_ptr_equal(list_first(&head), head.prev);
    list_append(&head, &items[4].link);
    list_prepend(&head, &items[2].link);
    list_append(&head, &items[5].link);
    list_prepend(&head, &items[1].link);
    assert_int_equal(values(&head), 12345);
    assert_ptr_equal(list_first(&head), &items[1].link);
    assert_ptr_equal(head.prev, &items[5].link);
}

static void test_leaving(void **state)
{
    struct list head = LIST_INIT(head);
    struct item items[4];

    items_init(items, 4);
    assert_false(list_is_linked(&items[1].link));
    /* not in a list: nothing happens */
    list_remove(&items[1].link);

    for (int i = 1; i < 4; i++)
        list_append(&head, &items[i].link);
    assert_true(list_is_linked(&items[2].link));
    list_remove(&items[2].link);
    assert_false(list_is_linked(&items[2].link));
    assert_int_equal(values(&head), 13);
    list_remove(&items[2].link);
    assert_int_equal(values(&head), 13);
    list_remove(&items[1].link);
    list_remove(&items[3].link);
    assert_true(list_is_empty(&head));
    /* and in again */
    list_append(&head, &items[2].link);
    assert_int_equal(values(&head), 2);
}

static void test_loops_that_remove(void **state)
{
    struct list head = LIST_INIT(head);
    struct item items[8];
    struct list *link;

    items_init(items, 8);
    for (int i = 1; i < 8; i++)
        list_append(&head, &items[i].link);
    list_for_each_entry_safe(item, &head, struct item, link) {
        if (item->value % 2)
            list_remove(&item->link);
    }
    assert_int_equal(values(&head), 246);
    list_remove(&items[4].link);
    assert_int_equal(values(&head), 26);

    link = list_pop(&head);
    assert_ptr_equal(link, &items[2].link);
    assert_false(list_is_linked(link));
    assert_ptr_equal(list_pop(&head), &items[6].link);
    assert_null(list_pop(&head));
}

static void test_splice(void **state)
{
    struct list a = LIST_INIT(a), b = LIST_INIT(b);
    struct item items[5];

    items_init(items, 5);
    list_splice(&a, &b);
    assert_true(list_is_empty(&a));
    list_append(&b, &items[1].link);
    list_append(&b, &items[2].link);
    list_splice(&a, &b);
    assert_true(list_is_empty(&b));
    assert_int_equal(values(&a), 12);
    list_append(&b, &items[3].link);
    list_append(&b, &items[4].link);
    list_splice(&a, &b);
    assert_int_equal(values(&a), 1234);
    list_splice(&a, &b);
    assert_int_equal(values(&a), 1234);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_leaving), cmocka_unit_test(test_loops_that_remove),
        cmocka_unit_test(test_splice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
