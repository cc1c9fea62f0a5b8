/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading values. strtoull() accepts blanks and signs, and negates after a minus, so digits are read here, with checked
 * arithmetic.
 */

#include "config/value.h"

#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

/* Reads digits and returns what follows, or NULL if there are none or they do not fit. */
static const char *read_digits(const char *text, uint64_t *ret)
{
    uint64_t base = 10;
    uint64_t v = 0;
    const char *p = text;

    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        base = 16;
        p += 2;
    }
    const char *first = p;
    for (;; p++) {
        int digit = hex_digit(*p);

        if (digit < 0 || (uint64_t)digit >= base)
            break;
        if (!checked_mul_u64(v, base, &v) || !checked_add_u64(v, (uint64_t)digit, &v))
            return NULL;
    }
    if (p == first)
        return NULL;
    *ret = v;
    return p;
}

bool value_number(const char *text, uint64_t *ret)
{
    uint64_t v;
    const char *rest = read_digits(text, &v);

    if (!rest || *rest)
        return false;
    *ret = v;
    return true;
}

bool value_size(const char *text, uint64_t *ret)
{
    static const char units[] = "KMGT";
    uint64_t v;
    const char *rest = read_digits(text, &v);

    if (!rest)
        return false;
    if (*rest) {
        const char *unit = strchr(units, *rest & ~0x20);

        if (!unit || !*unit || rest[1])
            return false;
        if (!checked_mul_u64(v, UINT64_C(1) << (10 * (unit - units + 1)), &v))
            return false;
    }
    *ret = v;
    return true;
}

bool value_percent(const char *text, unsigned *ret)
{
    uint64_t v;
    const char *rest = read_digits(text, &v);

    if (!rest || strcmp(rest, "%") != 0 || v < 1 || v > 100)
        return false;
    *ret = (unsigned)v;
    return true;
}

bool value_time(const char *text, uint64_t *ret_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}};
    uint64_t v;
    const char *rest = read_digits(text, &v);

    if (!rest)
        return false;
    if (!*rest && !v) {
        *ret_ms = 0;
        return true;
    }
    while (*rest == ' ')
        rest++;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (!strcmp(rest, units[i].unit))
            return checked_mul_u64(v, units[i].ms, ret_ms);
    return false;
}

bool value_list(const char *text, uint32_t *values, uint32_t *n, uint32_t most, uint32_t top)
{
    uint32_t found[256];
    uint32_t n_found = 0;
    const char *p = text;

    if (most > sizeof(found) / sizeof(*found))
        return false;
    for (;;) {
        uint64_t from;
        uint64_t to;

        while (*p == ' ')
            p++;
        p = read_digits(p, &from);
        if (!p)
            return false;
        to = from;
        if (*p == '-') {
            p = read_digits(p + 1, &to);
            if (!p)
                return false;
        }
        if (to < from || to > top || to - from >= most - n_found)
            return false;
        for (uint64_t v = from; v <= to; v++)
            found[n_found++] = (uint32_t)v;
        while (*p == ' ')
            p++;
        if (!*p)
            break;
        if (*p == ',')
            p++;
    }
    memcpy(values, found, n_found * sizeof(*found));
    *n = n_found;
    return true;
}

unsigned value_distance(const char *a, const char *b)
{
    unsigned row[64];
    size_t n = strlen(b);

    if (n >= sizeof(row) / sizeof(*row) || strlen(a) >= sizeof(row) / sizeof(*row))
        return 64;
    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned above = row[j];
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);

            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[n];
}
