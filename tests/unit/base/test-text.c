/* SPDX-License-Identifier: Apache-2.0 */
/* What is text, and sentences that are cut to fit. */
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#include "base/problem.h"
#include "base/utf8.h"

#define TEXT(s) (s), sizeof(s) - 1

static void test_sound_text(void **state)
{
    assert_true(utf8_is_text(TEXT("")));
    assert_true(utf8_is_text(TEXT("a/b")));
    assert_true(utf8_is_text(TEXT("\x01\x7f")));
    assert_true(utf8_is_text(TEXT("\u00e4 \u20ac \U0001f600")));
    /* the first and the last of each length */
    assert_true(utf8_is_text(TEXT("\xc2\x80\xdf\xbf")));
    assert_true(utf8_is_text(TEXT("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf")));
    assert_true(utf8_is_text(TEXT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")));
}

static void test_no_text(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        {TEXT("a\0b")},             /* NUL */
        {TEXT("\x80")},             /* a second byte first */
        {TEXT("\xc0\x80")},         /* overlong */
        {TEXT("\xc1\xbf")},         /* overlong */
        {TEXT("\xe0\x9f\xbf")},     /* overlong */
        {TEXT("\xf0\x8f\xbf\xbf")}, /* overlong */
        {TEXT("\xed\xa0\x80")},     /* surrogate */
        {TEXT("\xed\xbf\xbf")},     /* surrogate */
        {TEXT("\xf4\x90\x80\x80")}, /* above U+10FFFF */
        {TEXT("\xf5\x80\x80\x80")},
        {TEXT("\xff")},
        {TEXT("\xc3")}, /* cut off */
        {TEXT("\xe2\x82")},
        {TEXT("\xf0\x9f\x98")},
        {TEXT("\xc3(")}, /* not continued */
        {TEXT("\xe2\x82(")},
        {TEXT("\xf0\x9f\x98(")},
        {TEXT("caf\xe9")}, /* Latin-1 */
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(utf8_is_text(bad[i].bytes, bad[i].n));
        assert_false(utf8_is_printable(bad[i].bytes, bad[i].n));
    }
}

static void test_control_characters(void **state)
{
    for (int c = 0; c < 256; c++) {
        char text[2] = {(char)c, 'x'};

        assert_int_equal(utf8_is_printable(text, 2), c >= 0x20 && c < 0x7f);
    }
    assert_false(utf8_is_printable(TEXT("\xc2\x80")));
    assert_false(utf8_is_printable(TEXT("\xc2\x9f")));
    assert_true(utf8_is_printable(TEXT("\xc2\xa0")));
    assert_true(utf8_is_printable(TEXT("\u00e4\u20ac")));
}

static void test_cut_between_characters(void **state)
{
    static const char text[] = "a\u00e4\u20ac\U0001f600z"; /* 1 + 2 + 3 + 4 + 1 bytes */
    static const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};

    for (size_t n = 0; n < sizeof(text); n++)
        assert_int_equal(utf8_cut(text, n), whole[n]);
}

static void test_text_of_others_is_made_printable(void **state)
{
    char good[] = "a\u00e4 \u20ac", line[] = "a\nmemoryd: b", terminal[] = "\x1b[2J";
    char latin[] = "caf\xe9!", cut[] = "x\xe2\x82";

    assert_string_equal(utf8_make_printable(good), "a\u00e4 \u20ac");
    assert_string_equal(utf8_make_printable(line), "a?memoryd: b");
    assert_string_equal(utf8_make_printable(terminal), "?[2J");
    assert_string_equal(utf8_make_printable(latin), "caf?!");
    assert_string_equal(utf8_make_printable(cut), "x");
}

static void test_long_sentences_stay_text(void **state)
{
    struct problem problem = PROBLEM_NULL;
    char name[300];

    /* a name of three-byte characters, moved along so that each of the three cuts is met */
    for (int shift = 0; shift < 3; shift++) {
        memset(name, 'x', sizeof(name));
        for (int i = shift; i + 3 < (int)sizeof(name); i += 3)
            memcpy(name + i, "\u20ac", 3);
        name[sizeof(name) - 1] = '\0';
        errno = ENOENT;
        assert_int_equal(refuse(&problem, 18, "%s", name), 18);
        assert_int_equal(errno, ENOENT);
        assert_in_range(strlen(problem.sentence), 253, 255);
        assert_true(utf8_is_text(problem.sentence, strlen(problem.sentence)));
    }
    problem_set(&problem, "%s is %d", "this", 7);
    assert_string_equal(problem.sentence, "this is 7");
    /* nobody wants to know */
    assert_int_equal(refuse(NULL, 3, "a sentence"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_text),
        cmocka_unit_test(test_no_text),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_cut_between_characters),
        cmocka_unit_test(test_text_of_others_is_made_printable),
        cmocka_unit_test(test_long_sentences_stay_text),
    };

    return test_run(tests, NULL, NULL);
}
