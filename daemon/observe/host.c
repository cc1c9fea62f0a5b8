/* SPDX-License-Identifier: Apache-2.0 */
/* See host.h. */
#include "observe/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/utsname.h>

#define HOST_MAX 255

static bool is_port(const char *text)
{
    return !*text || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

static bool is_name_of_this_machine(const char *host)
{
    struct utsname names;

    return !strcasecmp(host, "localhost") || (!uname(&names) && !strcasecmp(host, names.nodename));
}

bool host_is_ours(const char *value)
{
    char host[HOST_MAX + 1];
    struct in6_addr address;
    bool brackets;
    size_t n;

    if (!value)
        return false;
    brackets = *value == '[';
    value += brackets;
    n = strcspn(value, brackets ? "]" : ":");
    if (!n || n > HOST_MAX || (brackets && value[n] != ']') || !is_port(value + n + brackets))
        return false;
    memcpy(host, value, n);
    host[n] = '\0';
    if (brackets)
        return inet_pton(AF_INET6, host, &address) == 1;
    return inet_pton(AF_INET, host, &address) == 1 || is_name_of_this_machine(host);
}
