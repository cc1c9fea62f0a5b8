/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: comparing, wiping, and their text form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

static void test_equal(void **state)
{
    uint8_t a[32], b[32];

    memset(a, 0xa5, sizeof(a));
    memcpy(b, a, sizeof(a));
    assert_true(bytes_equal(a, b, sizeof(a)));
    assert_true(bytes_equal(a, b, 0));
    for (size_t i = 0; i < sizeof(a); i++) {
        for (int bit = 0; bit < 8; bit++) {
            b[i] ^= (uint8_t)(1 << bit);
            assert_false(bytes_equal(a, b, sizeof(a)));
            b[i] ^= (uint8_t)(1 << bit);
        }
    }
    /* only the first n count */
    b[31] = 0;
    assert_true(bytes_equal(a, b, 31));
}

static void test_hex_there_and_back(void **state)
{
    uint8_t in[256], out[256];
    char text[513];

    for (int i = 0; i < 256; i++)
        in[i] = (uint8_t)i;
    bytes_to_hex(in, sizeof(in), text);
    assert_int_equal(strlen(text), 512);
    assert_memory_equal(text, "000102", 6);
    assert_string_equal(text + 506, "fdfeff");
    assert_true(bytes_from_hex(text, out, sizeof(out)));
    assert_memory_equal(in, out, sizeof(in));
}

static void test_hex_reading_is_strict(void **state)
{
    static const char *const bad[] = {
        "",         "0",      "00",     "001",    "00112",  "001122 ", " 001122", "0x1122",
        "00112233", "00112g", "00:122", "+01122", "-01122", "0011\n2", "/0112@",  "`0112G",
    };
    uint8_t out[3] = {7, 7, 7};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(bytes_from_hex(bad[i], out, sizeof(out)));
        assert_true(out[0] == 7 && out[1] == 7 && out[2] == 7);
    }
    assert_true(bytes_from_hex("aBcDeF", out, sizeof(out)));
    assert_true(out[0] == 0xab && out[1] == 0xcd && out[2] == 0xef);
    assert_true(bytes_from_hex("", out, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_hex_there_and_back),
        cmocka_unit_test(test_hex_reading_is_strict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
