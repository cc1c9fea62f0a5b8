/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that has as many sessions as it gets: crowd N [BUFFERS]. It opens up to N of them, in the first of which
 * it reserves addresses, and makes up to so many buffers, which take a descriptor of the broker each. Then it writes
 * how many of both there are, and why there are no more, and stays until its input ends; without any session it fails.
 */
#include <memclient/memclient.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    unsigned long n = 0, n_buffers = 0, most = argc > 1 ? strtoul(argv[1], NULL, 10) : 0,
                  most_buffers = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    struct memclient_context *ctx, *first = NULL;
    struct memclient_reservation *reservation;
    struct memclient_buffer *buf;
    char byte;

    for (; n < most && !memclient_context_open(NULL, &ctx); n++)
        if (!first)
            first = ctx;
    if (first && memclient_reserve(first, 1 << 20, NULL, &reservation))
        return 1;
    while (first && n_buffers < most_buffers && !memclient_alloc(first, 1, NULL, &buf))
        n_buffers++;
    printf("%lu %lu %s\n", n, n_buffers, memclient_error());
    fflush(stdout);
    if (!n)
        return 1;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}
