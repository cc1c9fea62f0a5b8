/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that exported functions share.
 *
 * Option structs say how large the caller's version of them is. A caller older than the library
 * gives less, and the rest is zero, the default; a newer one may give more as long as it is zero,
 * since what this library does not know must not be silently ignored. Structs that are filled in get
 * as much as the caller's has room for.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memclient/memclient.h>

#include "rpc/fail.h"

/* Into `to`, a struct of `size` bytes whose own size field is set; NULL gives the defaults. */
int check_options(void *to, size_t size, const void *from, const char *what);

/* What the caller's struct has room for is written; its size field stays. */
int check_output(const void *to, const char *what);
void write_output(void *to, const void *from, size_t size);

/* NULL is the default context. */
int check_context(struct memclient **ctx);

int check_pointer(const void *pointer, const char *what);
int check_rights(unsigned rights, unsigned allowed, const char *what);
int check_access(unsigned access);
/* 1-255 bytes of UTF-8 without control characters */
int check_name(const char *name);
int check_name_options(const struct memclient_name_options *from,
                       struct memclient_name_options *options);
