/* SPDX-License-Identifier: Apache-2.0 */
/* See library.h. */
#include "memctl/library.h"

#include <dlfcn.h>
#include <string.h>

bool library_find(void *library, const char *const *names, size_t n, void *functions)
{
    for (size_t i = 0; i < n; i++) {
        void *address = dlsym(library, names[i]);

        if (!address)
            return false;
        /* POSIX: the address of a function is as large as one of data */
        memcpy((char *)functions + i * sizeof(address), &address, sizeof(address));
    }
    return true;
}
