/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text on its way to a terminal. Names, programs and paths are other people's: what could make a terminal do or hide
 * something is shown as an escape sequence of C, and what the terminal shows is counted in columns, not in bytes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Room for any text that is printed in one piece; what is longer is cut between characters. */
enum { TEXT_MAX = 4096 };

/* Once, before anything else here: texts are UTF-8, whatever the locale. */
void text_init(void);

/* Copies `text`, with \xNN for each byte that is no UTF-8, and \xNN or \uNNNN for each character that controls
 * something. Returns `clean`. */
char *text_clean(const char *text, char *clean, size_t size);

/* How many columns a clean text takes. */
size_t text_columns(const char *text);

/* "memctl: SENTENCE" on standard error. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * A sentence of the library or the broker in the words of the command line: rights and options as memctl calls them,
 * sizes as people read them. Returns `words`.
 */
char *words_of(const char *sentence, char *words, size_t size);

/* "8M", "1.5G", "100" */
void format_bytes(uint64_t bytes, char *text, size_t size);
