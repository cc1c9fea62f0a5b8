/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What travels between a client and the door (PROTOCOL.md, section 19): a request with one descriptor, and its answer.
 * Packets of a few bytes, so that the door, which receives whatever a client sends, has next to nothing to parse.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"

/* What the descriptor is shown for. */
enum door_kind {
    DOOR_IMPORT = 1,
    DOOR_ADOPT = 2,
};

struct door_answer {
    uint32_t status; /* proto/status.h */
    uint64_t ticket; /* if it is OK */
    char sentence[MEMORYD_SENTENCE_MAX + 1];
};

#define DOOR_ANSWER_MAX (MEMORYD_DOOR_ANSWER + MEMORYD_SENTENCE_MAX)

void door_request_encode(uint8_t packet[static MEMORYD_DOOR_REQUEST], enum door_kind kind);
/* False: it is no request. */
bool door_request_decode(const uint8_t *packet, size_t size, enum door_kind *ret);

/* Its size. */
size_t door_answer_encode(uint8_t packet[static DOOR_ANSWER_MAX], const struct door_answer *answer);
/* False: it is no answer. */
bool door_answer_decode(const uint8_t *packet, size_t size, struct door_answer *ret);
