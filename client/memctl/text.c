/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every text that memctl prints and did not write itself goes through text_clean(), once.
 */
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/utf8.h"
#include "memctl/text.h"

void text_init(void)
{
    /* for wcwidth(); the broker's texts are UTF-8 anyway */
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

/* Decodes the first character of the text, which is not empty. Returns its length; 0: the byte is not UTF-8. */
static size_t text_next_character(const char *text, uint32_t *ret)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t length = utf8_character(text, strnlen(text, 4));

    if (!length)
        return 0;
    *ret = (uint8_t)text[0] & masks[length];
    for (size_t i = 1; i < length; i++)
        *ret = *ret << 6 | ((uint8_t)text[i] & 0x3f);
    return length;
}

/* C0, DEL and C1; the ends of lines; what changes the direction of writing. */
static bool text_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

char *text_clean(const char *text, char *clean, size_t size)
{
    size_t used = 0;

    while (*text) {
        char one[8];
        uint32_t c = 0;
        size_t length = text_next_character(text, &c), n;

        if (!length || (text_is_control(c) && c < 0x100))
            n = (size_t)snprintf(one, sizeof(one), "\\x%02x", length ? c : (uint32_t)(uint8_t)*text);
        else if (text_is_control(c))
            n = (size_t)snprintf(one, sizeof(one), "\\u%04x", c & 0xffff);
        else
            memcpy(one, text, n = length);
        if (n >= size - used)
            break;
        memcpy(clean + used, one, n);
        used += n;
        text += length ? length : 1;
    }
    clean[used] = '\0';
    return clean;
}

size_t text_columns(const char *text)
{
    size_t columns = 0;

    while (*text) {
        uint32_t c = 0;
        size_t length = text_next_character(text, &c);
        int width = length ? wcwidth((wchar_t)c) : 1;

        /* a character that the locale does not know most likely takes one column */
        columns += width < 0 ? 1 : (size_t)width;
        text += length ? length : 1;
    }
    return columns;
}

void say(const char *format, ...)
{
    char text[TEXT_MAX], clean[TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "memctl: %s\n", text_clean(text, clean, sizeof(clean)));
}

/* Takes the largest unit in which the number is at least 1; one decimal if it is not a whole number. */
void format_bytes(uint64_t bytes, char *text, size_t size)
{
    static const char units[] = "BKMGTPE";
    unsigned unit = 0;
    double value = (double)bytes;

    /* what would be rounded to 1024.0 is 1.0 of the next unit */
    while (value >= (unit ? 1023.95 : 1024) && unit + 1 < sizeof(units) - 1) {
        value /= 1024;
        unit++;
    }
    if (!unit)
        snprintf(text, size, "%" PRIu64, bytes);
    else if (!(bytes & ((UINT64_C(1) << (10 * unit)) - 1)))
        snprintf(text, size, "%.0f%c", value, units[unit]);
    else
        snprintf(text, size, "%.1f%c", value, units[unit]);
}
