/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which characters may be shown?
 *
 * Names, programs and sentences are other users' texts. A character that cannot be seen, or that changes how its
 * neighbours are shown, makes one text pass for another, hides a part of it, or is obeyed by a terminal. This is the
 * one place that decides which characters those are: no name is made with them, and wherever a text is shown they
 * appear as escape sequences of C: \x1b, \u202e, \U000e0041.
 *
 * Not printable are, by the Unicode Character Database (15.0), and as str.isprintable() of Python has it:
 *
 *   - the categories Cc (controls), Cf (formats), Zl and Zp (ends of lines), Zs (blanks, but for the ASCII one), Co
 *     (private use) and the noncharacters. Of Cf the numeral and verse signs of Arabic, Syriac and Kaithi are
 *     printable, since they have a shape.
 *   - Default_Ignorable_Code_Point: joiners, variation selectors, fillers, and all of U+E0000 to U+E0FFF
 *   - the blank of Braille and the null notehead, which are symbols without a shape
 *
 * What is not assigned yet is printable: a terminal shows it as a box.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Bytes of the escape sequence of one character, with the NUL. */
enum { PRINTABLE_ESCAPE_SIZE = 11 };

/* Is it a control character: C0, DEL, C1? */
static inline bool printable_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

static inline bool printable_character(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x00a0, 0x00a0},      /* no-break space; below it are the control characters */
        {0x00ad, 0x00ad},      /* soft hyphen */
        {0x034f, 0x034f},      /* combining grapheme joiner */
        {0x061c, 0x061c},      /* Arabic letter mark */
        {0x115f, 0x1160},      /* Hangul fillers */
        {0x1680, 0x1680},      /* Ogham space */
        {0x17b4, 0x17b5},      /* Khmer inherent vowels */
        {0x180b, 0x180f},      /* Mongolian variation selectors and vowel separator */
        {0x2000, 0x200f},      /* blanks, zero-width ones, joiners, marks of direction */
        {0x2028, 0x202f},      /* line and paragraph separator, embeddings and overrides of direction, narrow blank */
        {0x205f, 0x206f},      /* blanks, word joiner, invisible operators, isolates of direction, deprecated formats */
        {0x2800, 0x2800},      /* blank of Braille */
        {0x3000, 0x3000},      /* ideographic space */
        {0x3164, 0x3164},      /* Hangul filler */
        {0xe000, 0xf8ff},      /* private use */
        {0xfdd0, 0xfdef},      /* noncharacters */
        {0xfe00, 0xfe0f},      /* variation selectors */
        {0xfeff, 0xfeff},      /* zero-width no-break space, the byte order mark */
        {0xffa0, 0xffa0},      /* halfwidth Hangul filler */
        {0xfff0, 0xfffb},      /* reserved, and interlinear annotation */
        {0x13430, 0x1343f},    /* formats of Egyptian hieroglyphs */
        {0x1bca0, 0x1bca3},    /* formats of shorthand */
        {0x1d159, 0x1d159},    /* null notehead */
        {0x1d173, 0x1d17a},    /* formats of music */
        {0xe0000, 0xe0fff},    /* tags, variation selectors, reserved */
        {0xf0000, UINT32_MAX}, /* private use */
    };

    if (c < 0x7f)
        return c >= 0x20;
    /* the last two of each plane are noncharacters */
    if (printable_is_control(c) || (c & 0xfffe) == 0xfffe)
        return false;
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]) && hidden[i].first <= c; i++)
        if (c <= hidden[i].last)
            return false;
    return true;
}

/* Is it UTF-8, and is each character printable? */
static inline bool printable_text(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t length = utf8_decode(text + i, n - i, &c);

        if (!length || !printable_character(c))
            return false;
        i += length;
    }
    return true;
}

/* Is it UTF-8 without control characters, as every string of the protocol but a program's name must be? */
static inline bool printable_without_controls(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t length = utf8_decode(text + i, n - i, &c);

        if (!length || printable_is_control(c))
            return false;
        i += length;
    }
    return true;
}

/* Formats a character, or a byte that is none, as an escape sequence. Returns its length. */
static inline size_t printable_escape_one(uint32_t c, char escape[static PRINTABLE_ESCAPE_SIZE])
{
    if (c < 0x100)
        return (size_t)snprintf(escape, PRINTABLE_ESCAPE_SIZE, "\\x%02x", c);
    if (c < 0x10000)
        return (size_t)snprintf(escape, PRINTABLE_ESCAPE_SIZE, "\\u%04x", c);
    return (size_t)snprintf(escape, PRINTABLE_ESCAPE_SIZE, "\\U%08x", c);
}

/*
 * Makes printable text of what others may have written or what was cut to fit, in place: each character that is not
 * printable and each byte that is not UTF-8 becomes an escape sequence, and the end is cut off if the `size` bytes have
 * no room for it. Returns the text.
 */
static inline char *printable_escape(char *text, size_t size)
{
    size_t n = utf8_cut(text, strlen(text)), i = 0;

    while (i < n) {
        char escape[PRINTABLE_ESCAPE_SIZE];
        uint32_t c = (uint8_t)text[i];
        size_t length = utf8_decode(text + i, n - i, &c), escaped, rest;

        if (length && printable_character(c)) {
            i += length;
            continue;
        }
        length = length ? length : 1;
        escaped = printable_escape_one(c, escape);
        if (i + escaped >= size) {
            n = i;
            break;
        }
        rest = n - i - length;
        if (rest >= size - i - escaped)
            rest = utf8_cut(text + i + length, size - 1 - i - escaped);
        memmove(text + i + escaped, text + i + length, rest);
        memcpy(text + i, escape, escaped);
        i += escaped;
        n = i + rest;
    }
    text[n] = '\0';
    return text;
}
