/* SPDX-License-Identifier: Apache-2.0 */
/* See exposition.h. */
#include "observe/exposition.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

static const char *const types[] = {
    [FAMILY_COUNTER] = "counter",
    [FAMILY_GAUGE] = "gauge",
    [FAMILY_HISTOGRAM] = "histogram",
    [FAMILY_INFO] = "info",
};

/* In the text format a family has the name of its samples, there are no types of later formats, and a unit would be
 * a comment. */
static int begin_family(const struct exposition *exposition, const struct family *family, struct evbuffer *out)
{
    const char *suffix = "", *type = types[family->type];

    if (!exposition->openmetrics && family->type == FAMILY_COUNTER)
        suffix = "_total";
    if (!exposition->openmetrics && family->type == FAMILY_INFO) {
        suffix = "_info";
        type = "gauge";
    }
    if (evbuffer_add_printf(out, "# TYPE %s%s %s\n", family->name, suffix, type) < 0)
        return -ENOMEM;
    if (exposition->openmetrics && family->unit &&
        evbuffer_add_printf(out, "# UNIT %s %s\n", family->name, family->unit) < 0)
        return -ENOMEM;
    return evbuffer_add_printf(out, "# HELP %s%s %s\n", family->name, suffix, family->help) < 0 ? -ENOMEM : 0;
}

/* The cursor of a family that has begun is that of its row function plus 1. */
int exposition_next(struct exposition *exposition, struct evbuffer *out)
{
    const struct family *family = &families[exposition->family];
    uint64_t cursor;
    size_t size;

    if (exposition->family == n_families)
        return exposition->openmetrics && evbuffer_add(out, "# EOF\n", 6) < 0 ? -ENOMEM : 0;
    if (family->of_users && !exposition->users) {
        exposition->family++;
        return 1;
    }
    if (!exposition->cursor) {
        exposition->cursor = 1;
        return begin_family(exposition, family, out) ? -ENOMEM : 1;
    }
    cursor = exposition->cursor - 1;
    size = evbuffer_get_length(out);
    family->row(exposition, family, out, &cursor);
    if (cursor && evbuffer_get_length(out) == size)
        return -ENOMEM;
    exposition->cursor = cursor + 1;
    if (!cursor) {
        exposition->cursor = 0;
        exposition->family++;
    }
    return 1;
}

/* ---- which form -------------------------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* Is this the parameter of that name? Then *ret is where its value begins. */
static bool is_parameter(const char *text, const char *name, const char **ret)
{
    size_t n = strlen(name);

    if (strncasecmp(text, name, n) != 0)
        return false;
    text = skip_blanks(text + n);
    if (*text != '=')
        return false;
    *ret = skip_blanks(text + 1);
    return true;
}

/* "0.75" is 750; what is no number is 0. */
static unsigned weight_of(const char *text)
{
    unsigned weight = *text == '1' ? 1000 : 0;

    if ((*text != '0' && *text != '1') || (text[1] != '.' && !weight))
        return weight;
    text += 2;
    for (unsigned unit = 100; unit && !weight && *text >= '0' && *text <= '9'; unit /= 10, text++)
        weight += (unsigned)(*text - '0') * unit;
    return weight;
}

/* How much a media range of the header, up to its end, is wanted; 0 if it is another type, or of a version that is not
 * ours. */
static unsigned range_weight(const char *range, size_t length, const char *type)
{
    size_t n = strlen(type);
    const char *end = range + length, *value;
    unsigned weight = 1000;

    if (length < n || strncasecmp(range, type, n) != 0 || !strchr(" \t;,", range[n]))
        return 0;
    for (const char *at = range + n; at < end && (at = memchr(at, ';', (size_t)(end - at)));) {
        at = skip_blanks(at + 1);
        if (is_parameter(at, "q", &value))
            weight = weight_of(value);
        else if (is_parameter(at, "version", &value) && strncmp(value + (*value == '"'), "1.0.0", 5) != 0 &&
                 strncmp(value + (*value == '"'), "0.0.1", 5) != 0)
            return 0;
    }
    return weight;
}

bool exposition_is_openmetrics(const char *accept)
{
    unsigned openmetrics = 0, text = 0;

    for (const char *at = accept ? accept : ""; *at;) {
        size_t length;
        unsigned weight;

        at = skip_blanks(at);
        length = strcspn(at, ",");
        weight = range_weight(at, length, "application/openmetrics-text");
        openmetrics = weight > openmetrics ? weight : openmetrics;
        weight = range_weight(at, length, "text/plain");
        text = weight > text ? weight : text;
        at += length + (at[length] == ',');
    }
    return openmetrics && openmetrics >= text;
}
