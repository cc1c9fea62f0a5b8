/* SPDX-License-Identifier: Apache-2.0 */
/* See handles.h. */
#include "tests/unit/umf/handles.h"

umf_memory_provider_handle_t provider;
size_t page, size;

umf_result_t create(unsigned protection, umf_memory_provider_handle_t *made)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();

    params.visibility = UMF_MEM_MAP_SHARED;
    params.protection = protection;
    return umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, made);
}

int setup(void **state)
{
    assert_success(create(UMF_PROTECTION_READ | UMF_PROTECTION_WRITE, &provider));
    return 0;
}

int teardown(void **state)
{
    umfMemoryProviderDestroy(provider);
    return umf_nothing_left(state);
}

void fill(char *ptr)
{
    struct entry *first = (struct entry *)(void *)ptr, *second = (struct entry *)(void *)(ptr + size - page);

    *first = (struct entry){second, "first"};
    *second = (struct entry){NULL, "second"};
}

struct note produce(void)
{
    struct note note;
    void *ptr;

    assert_success(umfMemoryProviderAlloc(provider, size, 0, &ptr));
    fill(ptr);
    assert_success(umfMemoryProviderGetIPCHandle(provider, ptr, size, note.handle));
    note.address = ptr;
    return note;
}

char *open_it(const struct note *note)
{
    void *ptr;

    assert_success(umfMemoryProviderOpenIPCHandle(provider, (void *)(uintptr_t)note->handle, &ptr));
    return ptr;
}

int group_setup(void **state)
{
    page = (size_t)page_size();
    size = 8 * page;
    return umf_group_setup(state);
}
