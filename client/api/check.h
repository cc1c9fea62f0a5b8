/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that exported functions share. base/sized.h has the rule for structs of other versions. */
#pragma once

#include <errno.h>
#include <stddef.h>

#include <memclient/memclient.h>

#include "base/sized.h"
#include "rpc/fail.h"

/* Copies options of any version into a struct of `size` bytes; NULL gives the defaults. */
int check_options(void *to, size_t size, const void *from, const char *what);

/* Can sized_write() write to it? */
int check_output(const void *to, const char *what);
/* Writes the result, as sized_write(). Returns 0. */
int write_output(void *to, const void *from, size_t size);

/* Replaces NULL by the default context. */
int check_context(struct memclient_context **ctx);

int check_pointer(const void *pointer, const char *what);
int check_rights(unsigned rights, unsigned allowed, const char *what);
int check_access(unsigned access);
/* 1-255 bytes of UTF-8 without control characters */
int check_name(const char *name);
int check_name_options(const struct memclient_name_options *from, struct memclient_name_options *options);
