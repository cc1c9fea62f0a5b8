/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets and their text form.
 *
 * A secret is compared in a time that does not depend on where the first difference is. Its text form is lower-case
 * hexadecimal of an exact length; reading accepts either case and nothing else: no blanks, no prefix, no odd digit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Equal? Reads all of both, whatever they hold. */
static inline bool bytes_equal(const void *a, const void *b, size_t n)
{
    const volatile uint8_t *pa = a;
    const volatile uint8_t *pb = b;
    uint8_t difference = 0;

    for (size_t i = 0; i < n; i++)
        difference |= (uint8_t)(pa[i] ^ pb[i]);
    return !difference;
}

/* Writes 2 * n digits and a terminating NUL. */
static inline void bytes_to_hex(const void *p, size_t n, char *text)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * n] = '\0';
}

static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Reads exactly 2 * n digits and the NUL after them; else false and `p` untouched. */
static inline bool bytes_from_hex(const char *text, void *p, size_t n)
{
    uint8_t *bytes = p;

    /* Reading stops at the first that is no digit, so never beyond the text's own NUL. */
    for (size_t i = 0; i < 2 * n; i++)
        if (hex_digit(text[i]) < 0)
            return false;
    if (text[2 * n])
        return false;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
    return true;
}
