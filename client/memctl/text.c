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

#include "base/printable.h"
#include "memctl/text.h"

/* As many as the writings of the world put on one letter, the chants of the Hebrew Bible included. */
enum { MARKS_MAX = 4 };

void text_init(void)
{
    /* for wcwidth(); the broker's texts are UTF-8 anyway */
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

/*
 * Does the locale draw it over the character before it? A few of these in a row are an accented letter; more of them
 * run over the lines above and below, and one at the beginning would change what stands before the text.
 */
static bool text_is_mark(uint32_t c)
{
    return c >= 0x300 && wcwidth((wchar_t)c) == 0;
}

char *text_clean(const char *text, char *clean, size_t size)
{
    size_t left = strlen(text), used = 0;
    unsigned marks = MARKS_MAX;

    while (left) {
        char escape[PRINTABLE_ESCAPE_SIZE];
        const char *one = text;
        uint32_t c = (uint8_t)*text;
        size_t length = utf8_decode(text, left, &c), n = length;

        marks = length && text_is_mark(c) ? marks + 1 : 0;
        if (!length || !printable_character(c) || marks > MARKS_MAX) {
            n = printable_escape_one(c, escape);
            one = escape;
        }
        if (n >= size - used)
            break;
        memcpy(clean + used, one, n);
        used += n;
        text += length ? length : 1;
        left -= length ? length : 1;
    }
    clean[used] = '\0';
    return clean;
}

size_t text_columns(const char *text)
{
    size_t columns = 0;

    while (*text) {
        uint32_t c = 0;
        size_t length = utf8_decode(text, strnlen(text, 4), &c);
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
