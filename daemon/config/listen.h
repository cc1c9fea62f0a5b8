/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where metrics are served: an address of this machine that no other machine can reach, or a path.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

union config_address {
    struct sockaddr any;
    struct sockaddr_un un;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* "/PATH", "127.0.0.1:PORT" or "[::1]:PORT"; others are refused. */
bool config_address(const char *text, union config_address *ret, size_t *ret_size);
