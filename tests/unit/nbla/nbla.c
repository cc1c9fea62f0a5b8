/* SPDX-License-Identifier: Apache-2.0 */
/* See nbla.h. */
#include "tests/unit/nbla/nbla.h"

#include <stdlib.h>

const char *nbla_config;

void nbla_assert_gives(int got, int wanted, const char *call, const char *file, int line)
{
    if (got == wanted && (got >= 0 || (nbla_error_code() == got && *nbla_error())))
        return;
    print_error("%s\n    gave   %d %s (%s)\n    wanted %d\n", call, got, got < 0 ? nbla_strerror(got) : "",
                nbla_error(), wanted);
    _fail(file, line);
}

void nbla_assert_fails(bool worked, int wanted, const char *call, const char *file, int line)
{
    if (!worked && nbla_error_code() == wanted && *nbla_error())
        return;
    print_error("%s\n    %s: %d %s (%s)\n    wanted %d\n", call, worked ? "worked" : "failed", nbla_error_code(),
                nbla_strerror(nbla_error_code()), nbla_error(), wanted);
    _fail(file, line);
}

int nbla_group_setup(void **state)
{
    /* what is kept is asked for where it is meant: test-spare.c */
    setenv("MEMORYD_CACHE", "0", 0);
    observer_start(2, nbla_config);
    return 0;
}

int nbla_nothing_left(void **state)
{
    observer_expect_nothing();
    return 0;
}

int nbla_group_teardown(void **state)
{
    (void)nbla_nothing_left(state);
    observer_stop();
    return 0;
}

nbla_memory *nbla_allocated(size_t bytes)
{
    nbla_memory *memory = nbla_memory_new(NULL, bytes, "");

    assert_non_null(memory);
    assert_gives(nbla_memory_alloc(memory), 0);
    return memory;
}

nbla_physical_memory *nbla_chunk(size_t bytes)
{
    nbla_physical_memory *p = nbla_physical_memory_new(NULL, bytes, "");

    assert_non_null(p);
    assert_true(nbla_physical_memory_alloc(p) >= bytes);
    return p;
}

nbla_memory *nbla_bound(size_t n, nbla_physical_memory *const *chunks)
{
    nbla_memory *memory;
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += nbla_physical_memory_bytes(chunks[i]);
    memory = nbla_memory_new_virtual(NULL, bytes, "", chunks, n);
    assert_non_null(memory);
    assert_gives(nbla_memory_bind(memory), 0);
    return memory;
}
