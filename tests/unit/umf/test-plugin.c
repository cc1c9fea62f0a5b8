/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider for UMF's own library, called through its table as that library calls it. The layout is that of the
 * header umf/memory_provider_ops.h of its releases, where 1.1 has added what follows ext_ctl.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/memclient.h>
#include <memclient/umf_provider.h>

#include "tests/integration/broker.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "umf/plugin.h"

#define AT(member, offset) _Static_assert(offsetof(struct umf1_ops, member) == (offset), #member)

AT(version, 0);
AT(initialize, 8);
AT(finalize, 16);
AT(alloc, 24);
AT(free, 32);
AT(get_last_native_error, 40);
AT(get_recommended_page_size, 48);
AT(get_min_page_size, 56);
AT(get_name, 64);
AT(ext_purge_lazy, 72);
AT(ext_purge_force, 80);
AT(ext_allocation_merge, 88);
AT(ext_allocation_split, 96);
AT(ext_get_ipc_handle_size, 104);
AT(ext_get_ipc_handle, 112);
AT(ext_put_ipc_handle, 120);
AT(ext_open_ipc_handle, 128);
AT(ext_close_ipc_handle, 136);
AT(ext_ctl, 144);
AT(added_in_1_1, 152);
_Static_assert(sizeof(struct umf1_ops) == 168, "two more in 1.1");
_Static_assert(UMF1_OPS_VERSION == 0x10000, "1.0");

static struct broker_process broker;
static const struct umf1_ops *ops;
static size_t page;

static int setup(void **state)
{
    page = (size_t)page_size();
    broker_start(&broker, NULL, 0);
    setenv("MEMORYD_SOCKET", broker.socket, 1);
    setenv("MEMORYD_AUTOSTART", "0", 1);
    ops = (const void *)memclient_umf_provider_ops();
    return 0;
}

static int teardown(void **state)
{
    broker_stop(&broker);
    return 0;
}

/* memclient_umf_provider_ops: a static table of version 1.0. */
static void test_table(void **state)
{
    const char *name = NULL;

    assert_non_null(ops);
    assert_int_equal(ops->version, UMF1_OPS_VERSION);
    assert_true(ops->initialize && ops->finalize && ops->alloc && ops->free && ops->get_last_native_error &&
                ops->get_recommended_page_size && ops->get_min_page_size && ops->get_name);
    assert_true(ops->ext_purge_lazy && ops->ext_purge_force && ops->ext_allocation_merge && ops->ext_allocation_split);
    assert_true(ops->ext_get_ipc_handle_size && ops->ext_get_ipc_handle && ops->ext_put_ipc_handle &&
                ops->ext_open_ipc_handle && ops->ext_close_ipc_handle);
    assert_true(!ops->ext_ctl && !ops->added_in_1_1[0] && !ops->added_in_1_1[1]);
    assert_int_equal(ops->get_name(NULL, &name), UMF_RESULT_SUCCESS);
    assert_string_equal(name, "memoryd");
    assert_int_equal(ops->get_name(NULL, NULL), UMF_RESULT_ERROR_INVALID_ARGUMENT);
}

/* memclient_umf_provider_ops: native errors are 3000 + errno; handles have 64 bytes. */
static void test_use(void **state)
{
    struct memclient_umf_params params = MEMCLIENT_UMF_PARAMS_INIT;
    uint8_t handle[64];
    size_t size = 0;
    void *provider, *ptr, *opened;
    const char *text;
    int32_t number;
    char *bytes;

    assert_int_equal(ops->initialize(&params, &provider), UMF_RESULT_SUCCESS);
    assert_int_equal(ops->get_min_page_size(provider, NULL, &size), UMF_RESULT_SUCCESS);
    assert_int_equal(size, page);
    assert_int_equal(ops->get_recommended_page_size(provider, page, &size), UMF_RESULT_SUCCESS);
    assert_int_equal(size, page);
    assert_int_equal(ops->alloc(provider, 4 * page, 0, &ptr), UMF_RESULT_SUCCESS);
    bytes = ptr;
    memset(bytes, 1, 4 * page);
    assert_int_equal(ops->ext_purge_force(provider, ptr, page), UMF_RESULT_SUCCESS);
    assert_true(bytes[0] == 0 && bytes[page] == 1);
    assert_int_equal(ops->ext_purge_lazy(provider, ptr, page), UMF_RESULT_SUCCESS);
    assert_int_equal(ops->ext_allocation_split(provider, ptr, 4 * page, page), UMF_RESULT_SUCCESS);
    assert_int_equal(ops->ext_allocation_merge(provider, ptr, bytes + page, 4 * page), UMF_RESULT_SUCCESS);
    assert_int_equal(ops->ext_get_ipc_handle_size(provider, &size), UMF_RESULT_SUCCESS);
    assert_int_equal(size, sizeof(handle));
    assert_int_equal(ops->ext_get_ipc_handle(provider, ptr, 4 * page, handle), UMF_RESULT_SUCCESS);
    assert_int_equal(ops->ext_open_ipc_handle(provider, handle, &opened), UMF_RESULT_SUCCESS);
    assert_int_equal(((char *)opened)[page], 1);
    assert_int_equal(ops->ext_close_ipc_handle(provider, opened, 4 * page), UMF_RESULT_SUCCESS);
    assert_int_equal(ops->ext_put_ipc_handle(provider, handle), UMF_RESULT_SUCCESS);
    assert_int_equal(ops->free(provider, ptr, 4 * page), UMF_RESULT_SUCCESS);
    assert_int_equal(ops->alloc(provider, 0, 0, &ptr), UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
    assert_int_equal(ops->get_last_native_error(provider, &text, &number), UMF_RESULT_SUCCESS);
    assert_int_equal(number, 3000 + EINVAL);
    assert_true(*text);
    assert_int_equal(ops->finalize(provider), UMF_RESULT_SUCCESS);
}

/* memclient_umf_provider_ops: UMF_RESULT_ERROR_INVALID_ARGUMENT; NULL: the default parameters. The size of the
 * struct, and what is in it, are looked at. */
static void test_parameters(void **state)
{
    struct memclient_umf_params params = MEMCLIENT_UMF_PARAMS_INIT;
    void *provider = NULL;

    assert_int_equal(params.size, sizeof(params));
    params.placement = 99;
    assert_int_equal(ops->initialize(&params, &provider), UMF_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(provider);
    assert_int_equal(ops->initialize(NULL, &provider), UMF_RESULT_SUCCESS);
    assert_int_equal(ops->finalize(provider), UMF_RESULT_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_use),
        cmocka_unit_test(test_parameters),
    };

    return test_run(tests, setup, teardown);
}
