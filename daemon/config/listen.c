/* SPDX-License-Identifier: Apache-2.0 */
/* See listen.h. */
#include "config/listen.h"

#include <arpa/inet.h>
#include <string.h>

#include "config/value.h"

static bool is_local(int family, const union config_address *address)
{
    return family == AF_INET ? ntohl(address->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                             : IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
}

bool config_address(const char *text, union config_address *ret, size_t *ret_size)
{
    const char *end = strrchr(text, ':');
    bool brackets = *text == '[';
    char host[INET6_ADDRSTRLEN + 2];
    uint64_t port;
    size_t n;

    memset(ret, 0, sizeof(*ret));
    if (*text == '/') {
        ret->un.sun_family = AF_UNIX;
        *ret_size = sizeof(ret->un);
        n = strlen(text);
        if (n >= sizeof(ret->un.sun_path))
            return false;
        memcpy(ret->un.sun_path, text, n + 1);
        return true;
    }
    if (!end || !value_number(end + 1, &port) || !port || port > UINT16_MAX)
        return false;
    n = (size_t)(end - text);
    if (brackets && (n < 2 || text[n - 1] != ']'))
        return false;
    n -= brackets ? 2 : 0;
    if (n >= sizeof(host))
        return false;
    memcpy(host, text + brackets, n);
    host[n] = '\0';
    if (brackets) {
        ret->in6.sin6_family = AF_INET6;
        ret->in6.sin6_port = htons((uint16_t)port);
        *ret_size = sizeof(ret->in6);
        return inet_pton(AF_INET6, host, &ret->in6.sin6_addr) == 1 && is_local(AF_INET6, ret);
    }
    ret->in.sin_family = AF_INET;
    ret->in.sin_port = htons((uint16_t)port);
    *ret_size = sizeof(ret->in);
    return inet_pton(AF_INET, host, &ret->in.sin_addr) == 1 && is_local(AF_INET, ret);
}
