/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values on the command line. Each function returns 0, or -EINVAL for what it does not understand, and then leaves its
 * outputs untouched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { VALUES_LIST_MAX = 64, RIGHTS_TEXT = 5 };

struct values_list {
    size_t n;
    uint32_t numbers[VALUES_LIST_MAX];
};

/* The words of the library's enums, each by its value, up to a NULL. */
extern const char *const pages_words[];
extern const char *const placement_words[];
extern const char *const claim_words[];
extern const char *const kind_words[]; /* of enum memclient_history_kind; 0 is no choice */
/* Of the events that `events --follow` can show beside the history, up to a NULL. */
extern const struct event_word {
    const char *word;
    unsigned event; /* enum memclient_event_kind */
    bool of_buffers;
} event_words[];

/* What --kind chooses. */
struct values_kinds {
    unsigned history; /* 1 << enum memclient_history_kind */
    unsigned events;
};

/* "512", "64K", "1.5G", "2GiB": 0, or -EINVAL, or -ERANGE for more than 64 bits. */
int parse_bytes(const char *text, uint64_t *ret);
/* "250ms", "30s", "5min", "2h", "30" (seconds), in milliseconds; errors as above. */
int parse_duration(const char *text, uint64_t *ret_ms);

/* A number of 32 bits, decimal. */
int parse_u32(const char *text, uint32_t *ret);
/* "0,2,3", at most VALUES_LIST_MAX. */
int parse_list(const char *text, struct values_list *list);
/* One of the words: its index. */
int parse_choice(const char *text, const char *const *words, unsigned *ret);
/* "refused,held": adds them. */
int parse_kinds(const char *text, struct values_kinds *kinds);
/* "rw": letters of enum memclient_right; writing implies reading. */
int parse_rights(const char *text, unsigned *ret);
/* "rwsm", "r"; "" for none. */
void format_rights(unsigned rights, char text[RIGHTS_TEXT]);
/* A number that a process may have. */
int parse_pid(const char *text, pid_t *ret);
/* A name or number. */
int parse_user(const char *text, uid_t *ret);
int parse_group(const char *text, gid_t *ret);
/* "GROUP:RIGHTS" */
int parse_group_rights(const char *text, gid_t *ret_gid, unsigned *ret_rights);
