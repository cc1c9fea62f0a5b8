/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a driver's library, which may not be there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Fills a struct of n pointers to functions with those of these names, in this order. False: one is missing. */
bool library_find(void *library, const char *const *names, size_t n, void *functions);
