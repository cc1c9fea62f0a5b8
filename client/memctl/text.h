/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for a terminal. Names, programs and paths are other users' texts: what is not printable (base/printable.h)
 * appears as escape sequences of C. Widths are in columns, not in bytes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of a text that is printed in one piece; a longer one is cut between characters. */
enum { TEXT_MAX = 4096 };

/* Must be called first. Texts are UTF-8, whatever the locale. */
void text_init(void);

/* Copies `text`, with \xNN for each byte that is not UTF-8, and \xNN, \uNNNN or \UNNNNNNNN for each character that is
 * not printable or one mark too many over a letter. Returns `clean`. */
char *text_clean(const char *text, char *clean, size_t size);

/* The columns that a clean text takes. */
size_t text_columns(const char *text);

/* Prints "memctl: SENTENCE" to standard error. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Translates a sentence of the library or the broker into the words of the command line: rights and options as memctl
 * calls them, sizes as people read them. Returns `words`.
 */
char *words_of(const char *sentence, char *words, size_t size);

/* What a noun has after this number of it. */
static inline const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Formats a size: "8M", "1.5G", "100". */
void format_bytes(uint64_t bytes, char *text, size_t size);
