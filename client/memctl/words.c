/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences of the library and the broker are for programs too: they have the protocol's words for rights and
 * flags, and exact sizes. Here they get the words of memctl(1).
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memctl/text.h"

static const struct {
    const char *theirs, *ours;
} dictionary[] = {
    {"READ", "the right to read"},     {"WRITE", "the right to write"},  {"SHARE", "the right to share"},
    {"MANAGE", "the right to manage"}, {"PUBLISHABLE", "--publishable"}, {"PAGES_HUGETLB", "--pages hugetlb"},
    {"page_size", "--page-size"},
};

static bool words_is_inner(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || c == '/';
}

/* Returns the length of a word of theirs that begins here, and ours for it; 0: none does. */
static size_t words_translate(const char *at, const char **ret)
{
    for (size_t i = 0; i < sizeof(dictionary) / sizeof(dictionary[0]); i++) {
        size_t n = strlen(dictionary[i].theirs);

        if (!strncmp(at, dictionary[i].theirs, n) && !words_is_inner(at[n])) {
            *ret = dictionary[i].ours;
            return n;
        }
    }
    return 0;
}

/* Likewise of "8388608 bytes", which becomes "8M". Small sizes stay. */
static size_t words_shorten(const char *at, char *text, size_t size)
{
    static const char unit[] = " bytes";
    unsigned long long bytes;
    char *end;

    if (!isdigit((unsigned char)*at))
        return 0;
    errno = 0;
    bytes = strtoull(at, &end, 10);
    if (errno || bytes < 1024 || strncmp(end, unit, sizeof(unit) - 1) != 0 || words_is_inner(end[sizeof(unit) - 1]))
        return 0;
    format_bytes(bytes, text, size);
    return (size_t)(end - at) + sizeof(unit) - 1;
}

/*
 * Returns the length of a name that begins here, which is a user's text and stays as it is: it follows "name " and ends
 * where their sentences continue, or it is between quotation marks. 0: none begins here.
 */
static size_t words_name_length(const char *sentence, const char *at)
{
    static const char *const ends[] = {"; another user's is written", " is bound already", " is uid ", " grants uid ",
                                       ": "};
    static const char name[] = " name ";
    const size_t before = (size_t)(at - sentence), n = sizeof(name) - 1;
    size_t length = strlen(at);

    if (before && at[-1] == '"' && (before == 1 || at[-2] == ' '))
        return strcspn(at, "\"");
    if (before < n || memcmp(at - n, name, n) != 0)
        return 0;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const char *end = strstr(at, ends[i]);

        if (end && (size_t)(end - at) < length)
            length = (size_t)(end - at);
    }
    return length;
}

char *words_of(const char *sentence, char *words, size_t size)
{
    const char *start = sentence;
    size_t used = 0, named = 0; /* bytes that are left of a name */
    char before = ' ';

    while (*sentence) {
        char bytes[24], same[2] = {*sentence, '\0'};
        const char *ours = same;
        size_t n = 0, length;

        if (!named)
            named = words_name_length(start, sentence);
        if (!words_is_inner(before) && !named) {
            n = words_shorten(sentence, bytes, sizeof(bytes));
            if (n)
                ours = bytes;
            else
                n = words_translate(sentence, &ours);
        }
        /* "buffer #12" */
        if (!n && !named && *sentence == '#' && before == ' ' && isdigit((unsigned char)sentence[1]))
            ours = "";
        length = strlen(ours);
        if (length >= size - used)
            break;
        memcpy(words + used, ours, length);
        used += length;
        before = n ? sentence[n - 1] : *sentence;
        sentence += n ? n : 1;
        named -= named > 0;
    }
    words[used] = '\0';
    return words;
}
