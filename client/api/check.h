/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that exported functions share. Structs of other versions' sizes are as base/sized.h has it. */
#pragma once

#include <errno.h>
#include <stddef.h>

#include <memclient/memclient.h>

#include "base/sized.h"
#include "rpc/fail.h"

/* Into `to`, a struct of `size` bytes whose own size field is set; NULL gives the defaults. */
int check_options(void *to, size_t size, const void *from, const char *what);

/* What sized_write() may write to. */
int check_output(const void *to, const char *what);

/* NULL is the default context. */
int check_context(struct memclient **ctx);

int check_pointer(const void *pointer, const char *what);
int check_rights(unsigned rights, unsigned allowed, const char *what);
int check_access(unsigned access);
/* 1-255 bytes of UTF-8 without control characters */
int check_name(const char *name);
int check_name_options(const struct memclient_name_options *from,
                       struct memclient_name_options *options);
