/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that never looks whether anything failed: heedless NAME. Programs like it are written every day.
 *
 * It works in a buffer under NAME, whose first word counts its turns, and in small ones beside it, and uses whatever it
 * got. An error on the way would be a pointer to nowhere: the process dies, or a sum is wrong. On SIGTERM it ends
 * with status 0 if all sums were right.
 */
#include <memclient/memclient.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { WORDS = 4096 };

static volatile sig_atomic_t terminated;

static void on_signal(int signal)
{
    terminated = signal;
}

static uint64_t sum_of(const uint64_t *words)
{
    uint64_t sum = 0;

    for (size_t i = 1; i < WORDS; i++)
        sum += words[i];
    return sum;
}

int main(int argc, char **argv)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *large = NULL, *small = NULL;
    uint64_t *words = NULL, *copy = NULL;
    uint64_t wrong = 0;

    signal(SIGTERM, on_signal);
    options.name = argv[argc - 1];
    memclient_alloc(NULL, WORDS * sizeof(*words), &options, &large);
    memclient_map(large, NULL, (void **)&words);
    while (!terminated) {
        words[words[0] % (WORDS - 1) + 1] += words[0];
        memclient_alloc(NULL, WORDS * sizeof(*words), NULL, &small);
        memclient_map(small, NULL, (void **)&copy);
        memcpy(copy, words, WORDS * sizeof(*words));
        words[0]++;
        wrong += sum_of(copy) != words[0] * (words[0] - 1) / 2;
        memclient_unmap(NULL, copy, 0);
        memclient_buffer_unref(small);
        small = NULL;
        copy = NULL;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* others need the processor too */
    }
    return wrong != 0;
}
