/* SPDX-License-Identifier: Apache-2.0 */
/* See torture.h: what all processes of make torture need. */
#include "tests/torture/torture.h"

#include <fcntl.h>
#include <stdlib.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

struct shared *shared;

/* xorshift: repeatable, as far as processes that race are */
uint64_t random_below(struct random *random, uint64_t n)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state % n;
}

void complain(const char *format, ...)
{
    uint32_t i = atomic_fetch_add(&shared->n_sentences, 1);
    va_list ap;

    if (i >= SENTENCES)
        return;
    va_start(ap, format);
    vsnprintf(shared->sentences[i], sizeof(shared->sentences[i]), format, ap);
    va_end(ap);
    fprintf(stderr, "torture: %s\n", shared->sentences[i]);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

uint64_t key_of(uint32_t place, uint32_t generation, uint32_t version)
{
    uint64_t key = ((uint64_t)place << 56) ^ ((uint64_t)generation << 28) ^ version;

    if (version == 0)
        return 0;
    key = (key ^ key >> 31) * GOLDEN;
    return key | 1;
}

static uint64_t word_at(uint64_t i, uint64_t key)
{
    return key ? (i + key) * GOLDEN : 0;
}

void bytes_write(void *address, uint64_t size, uint64_t key)
{
    uint64_t *words = address;

    for (uint64_t i = 0; i < size / sizeof(*words); i++)
        words[i] = word_at(i, key);
    atomic_fetch_add(&shared->figures.bytes_written, size);
}

static bool is_of_any(uint64_t word, uint64_t i, const uint64_t *keys, unsigned n_keys)
{
    for (unsigned k = 0; k < n_keys; k++)
        if (word == word_at(i, keys[k]))
            return true;
    return false;
}

uint64_t bytes_wrong(const void *address, uint64_t size, const uint64_t *keys, unsigned n_keys)
{
    const volatile uint64_t *words = address;
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < size / sizeof(*words); i++)
        if (!is_of_any(words[i], i, keys, n_keys))
            wrong += sizeof(*words);
    atomic_fetch_add(&shared->figures.bytes_verified, size);
    atomic_fetch_add(&shared->figures.bytes_wrong, wrong);
    return wrong;
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

void place_name(uint32_t place, uint32_t generation, bool second, char name[64])
{
    snprintf(name, 64, "torture/%u.%u%s", place, generation, second ? "/second" : "");
}

bool is_doomed(uint32_t member, uint32_t incarnation)
{
    struct member *m = &shared->members[member];

    return atomic_load(&m->incarnation) != incarnation || atomic_load(&m->doomed);
}
