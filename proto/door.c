/* SPDX-License-Identifier: Apache-2.0 */
/* See door.h. */
#include "proto/door.h"

#include <endian.h>
#include <string.h>

#include "base/printable.h"

void door_request_encode(uint8_t packet[static MEMORYD_DOOR_REQUEST], enum door_kind kind)
{
    const uint32_t words[2] = {htole32(kind), 0};

    memcpy(packet, words, MEMORYD_DOOR_REQUEST);
}

bool door_request_decode(const uint8_t *packet, size_t size, enum door_kind *ret)
{
    uint32_t words[2];

    if (size != MEMORYD_DOOR_REQUEST)
        return false;
    memcpy(words, packet, sizeof(words));
    if (words[1] || (words[0] != htole32(DOOR_IMPORT) && words[0] != htole32(DOOR_ADOPT)))
        return false;
    *ret = (enum door_kind)le32toh(words[0]);
    return true;
}

size_t door_answer_encode(uint8_t packet[static DOOR_ANSWER_MAX], const struct door_answer *answer)
{
    const uint32_t words[2] = {htole32(answer->status), 0};
    const uint64_t ticket = htole64(answer->ticket);
    size_t n = strnlen(answer->sentence, MEMORYD_SENTENCE_MAX);

    memcpy(packet, words, sizeof(words));
    memcpy(packet + sizeof(words), &ticket, sizeof(ticket));
    memcpy(packet + MEMORYD_DOOR_ANSWER, answer->sentence, n);
    return MEMORYD_DOOR_ANSWER + n;
}

bool door_answer_decode(const uint8_t *packet, size_t size, struct door_answer *ret)
{
    uint32_t words[2];
    uint64_t ticket;

    if (size < MEMORYD_DOOR_ANSWER || size > DOOR_ANSWER_MAX)
        return false;
    memcpy(words, packet, sizeof(words));
    memcpy(&ticket, packet + sizeof(words), sizeof(ticket));
    *ret = (struct door_answer){.status = le32toh(words[0]), .ticket = le64toh(ticket)};
    memcpy(ret->sentence, packet + MEMORYD_DOOR_ANSWER, size - MEMORYD_DOOR_ANSWER);
    (void)printable_escape(ret->sentence, sizeof(ret->sentence));
    return true;
}
