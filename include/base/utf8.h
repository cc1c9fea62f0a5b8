/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is it text?
 *
 * Strings from a peer are checked once, where they come in, and strings that are cut to fit are cut between characters,
 * so that everything that leaves the broker is text. The check is strict: no overlong forms, no surrogates, nothing
 * above U+10FFFF.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The length of the character at the beginning of the n > 0 bytes; 0 if there is none. */
static inline size_t utf8_character(const char *text, size_t n)
{
    const uint8_t *b = (const uint8_t *)text;
    size_t length;
    uint8_t low = 0x80, high = 0xbf; /* of the second byte */

    if (b[0] < 0x80)
        return 1;
    if (b[0] >= 0xc2 && b[0] <= 0xdf) {
        length = 2;
    } else if (b[0] >= 0xe0 && b[0] <= 0xef) {
        length = 3;
        low = b[0] == 0xe0 ? 0xa0 : 0x80;
        high = b[0] == 0xed ? 0x9f : 0xbf;
    } else if (b[0] >= 0xf0 && b[0] <= 0xf4) {
        length = 4;
        low = b[0] == 0xf0 ? 0x90 : 0x80;
        high = b[0] == 0xf4 ? 0x8f : 0xbf;
    } else {
        return 0;
    }
    if (n < length || b[1] < low || b[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (b[i] < 0x80 || b[i] > 0xbf)
            return 0;
    return length;
}

/* Is it UTF-8 without NUL? */
static inline bool utf8_is_text(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t length = text[i] ? utf8_character(text + i, n - i) : 0;

        if (!length)
            return false;
        i += length;
    }
    return true;
}

/* Decodes the character at the beginning of the n > 0 bytes. Returns its length; 0 if there is none. */
static inline size_t utf8_decode(const char *text, size_t n, uint32_t *ret)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t length = utf8_character(text, n);

    if (!length)
        return 0;
    *ret = (uint8_t)text[0] & masks[length];
    for (size_t i = 1; i < length; i++)
        *ret = *ret << 6 | ((uint8_t)text[i] & 0x3f);
    return length;
}

/* How many of the n bytes are left when a character that their end cuts in two is dropped. */
static inline size_t utf8_cut(const char *text, size_t n)
{
    const uint8_t *b = (const uint8_t *)text;
    size_t start = n;

    /* back to the first byte of the last character, at most three away */
    while (start && n - start < 3 && (b[start - 1] & 0xc0) == 0x80)
        start--;
    if (!start || b[start - 1] < 0xc0)
        return n;
    start--;
    return utf8_character(text + start, n - start) ? n : start;
}
