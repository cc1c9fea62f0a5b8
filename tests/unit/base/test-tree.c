/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: what is inserted beside something else is where it would have been, and the tree stays as low. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/tree.h"

enum { N = 1000 };

struct node {
    RB_ENTRY(node) link;
    int key;
};

RB_HEAD(node_tree, node);

static int compare(const struct node *a, const struct node *b)
{
    return a->key < b->key ? -1 : a->key > b->key;
}

TREE_GENERATE(node_tree, node, link, compare)

static struct node_tree tree;
static struct node nodes[N];

static int empty_tree(void **state)
{
    RB_INIT(&tree);
    for (int i = 0; i < N; i++)
        nodes[i] = (struct node){.key = i};
    srandom(1);
    return 0;
}

/* Returns the black nodes on each way down. */
static unsigned check_below(const struct node *node, unsigned *ret_n)
{
    unsigned left_n = 0, right_n = 0, left, right;

    if (!node)
        return 1;
    left = check_below(RB_LEFT(node, link), &left_n);
    right = check_below(RB_RIGHT(node, link), &right_n);
    assert_int_equal(left, right);
    if (RB_COLOR(node, link) == RB_RED) {
        assert_true(!RB_LEFT(node, link) || RB_COLOR(RB_LEFT(node, link), link) == RB_BLACK);
        assert_true(!RB_RIGHT(node, link) || RB_COLOR(RB_RIGHT(node, link), link) == RB_BLACK);
    }
    *ret_n = left_n + 1 + right_n;
    return left + (RB_COLOR(node, link) == RB_BLACK);
}

static void check_tree(unsigned expected)
{
    struct node *node, *before = NULL;
    unsigned n = 0;

    RB_FOREACH(node, node_tree, &tree) {
        assert_true(!before || before->key < node->key);
        before = node;
    }
    (void)check_below(RB_ROOT(&tree), &n);
    assert_int_equal(n, expected);
}

static void test_ascending(void **state)
{
    for (int i = 0; i < N; i++)
        assert_null(node_tree_insert_near(&tree, &nodes[i], i ? &nodes[i - 1] : NULL));
    check_tree(N);
}

static void test_descending(void **state)
{
    for (int i = N; i-- > 0;)
        assert_null(node_tree_insert_near(&tree, &nodes[i], i < N - 1 ? &nodes[i + 1] : NULL));
    check_tree(N);
}

/* Whatever it is near to. */
static void test_anywhere(void **state)
{
    struct node *near = NULL;

    for (int i = 0; i < N; i++) {
        struct node *node = &nodes[i * 379 % N];

        assert_null(node_tree_insert_near(&tree, node, near));
        near = &nodes[random() % (i + 1) * 379 % N];
        check_tree((unsigned)i + 1);
    }
}

static void test_twice(void **state)
{
    for (int i = 0; i < N; i += 2)
        assert_null(node_tree_insert_near(&tree, &nodes[i], NULL));
    for (int i = 0; i < N; i += 2)
        for (int near = 0; near < N; near += 38) {
            struct node same = {.key = i};

            assert_ptr_equal(node_tree_insert_near(&tree, &same, &nodes[near]), &nodes[i]);
        }
    check_tree(N / 2);
}

static void test_before(void **state)
{
    assert_null(RB_INSERT(node_tree, &tree, &nodes[N - 1]));
    for (int i = 0; i < N - 1; i++)
        node_tree_insert_before(&tree, &nodes[i], &nodes[N - 1]);
    check_tree(N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ascending, empty_tree), cmocka_unit_test_setup(test_descending, empty_tree),
        cmocka_unit_test_setup(test_anywhere, empty_tree),  cmocka_unit_test_setup(test_twice, empty_tree),
        cmocka_unit_test_setup(test_before, empty_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
