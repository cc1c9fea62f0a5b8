/* SPDX-License-Identifier: Apache-2.0 */
/* The packets at the door: what was encoded is decoded, and nothing else is. */
#include "proto/door.h"
#include "tests/support/test.h"

#include <string.h>

static void requests(void **state)
{
    uint8_t packet[MEMORYD_DOOR_REQUEST + 1] = {0};
    enum door_kind kind;

    for (enum door_kind k = DOOR_IMPORT; k <= DOOR_ADOPT; k++) {
        door_request_encode(packet, k);
        assert_true(door_request_decode(packet, MEMORYD_DOOR_REQUEST, &kind));
        assert_int_equal(kind, k);
    }
    for (size_t n = 0; n <= sizeof(packet); n++)
        assert_int_equal(door_request_decode(packet, n, &kind), n == MEMORYD_DOOR_REQUEST);
    for (unsigned i = 0; i < MEMORYD_DOOR_REQUEST; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            door_request_encode(packet, DOOR_IMPORT);
            packet[i] ^= (uint8_t)(1 << bit);
            assert_false(door_request_decode(packet, MEMORYD_DOOR_REQUEST, &kind));
        }
}

static void answers(void **state)
{
    struct door_answer answer = {.status = 27, .ticket = UINT64_C(0x0102030405060708)}, told;
    uint8_t packet[DOOR_ANSWER_MAX + 1] = {0};
    size_t n;

    memset(answer.sentence, 'x', MEMORYD_SENTENCE_MAX);
    n = door_answer_encode(packet, &answer);
    assert_int_equal(n, DOOR_ANSWER_MAX);
    assert_true(door_answer_decode(packet, n, &told));
    assert_int_equal(told.status, 27);
    assert_true(told.ticket == answer.ticket);
    assert_string_equal(told.sentence, answer.sentence);
    assert_false(door_answer_decode(packet, n + 1, &told));
    assert_true(door_answer_decode(packet, MEMORYD_DOOR_ANSWER, &told));
    assert_string_equal(told.sentence, "");
    for (n = 0; n < MEMORYD_DOOR_ANSWER; n++)
        assert_false(door_answer_decode(packet, n, &told));
    /* as PROTOCOL.md shows it */
    assert_memory_equal(packet, ((uint8_t[]){27, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1}), MEMORYD_DOOR_ANSWER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(answers),
    };

    return test_run(tests, NULL, NULL);
}
