/* SPDX-License-Identifier: Apache-2.0 */
/* What is text, and sentences that are cut to fit. */
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#include "base/printable.h"
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
        assert_false(printable_text(bad[i].bytes, bad[i].n));
    }
}

static void test_control_characters(void **state)
{
    for (int c = 0; c < 256; c++) {
        char text[2] = {(char)c, 'x'};

        assert_int_equal(printable_text(text, 2), c >= 0x20 && c < 0x7f);
        assert_int_equal(printable_without_controls(text, 2), c >= 0x20 && c < 0x7f);
    }
    assert_false(printable_without_controls(TEXT("\xc2\x80")));
    assert_false(printable_without_controls(TEXT("\xc2\x9f")));
    assert_true(printable_without_controls(TEXT("\xc2\xa0")));
    assert_true(printable_without_controls(TEXT("\u202e")));
}

static void test_what_is_printable(void **state)
{
    /* the first and the last of each range, and their neighbours */
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x7f, 0xa0},       {0xad, 0xad},       {0x34f, 0x34f},      {0x61c, 0x61c},     {0x115f, 0x1160},
        {0x1680, 0x1680},   {0x17b4, 0x17b5},   {0x180b, 0x180f},    {0x2000, 0x200f},   {0x2028, 0x202f},
        {0x205f, 0x206f},   {0x2800, 0x2800},   {0x3000, 0x3000},    {0x3164, 0x3164},   {0xe000, 0xf8ff},
        {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},    {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
        {0xfffe, 0xffff},   {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},  {0x1d159, 0x1d159}, {0x1d173, 0x1d17a},
        {0x1fffe, 0x1ffff}, {0xdfffe, 0xe0fff}, {0xefffe, 0x10ffff},
    };
    static const uint32_t shown[] = {' ', '~', 0xa1, 0xe4, 0x301, 0x5d0, 0x600, 0x6dd, 0x20ac, 0x65e5, 0xac00, 0x1f600};

    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        assert_true(printable_character(hidden[i].first - 1));
        for (uint32_t c = hidden[i].first; c <= hidden[i].last; c++)
            if (printable_character(c))
                fail_msg("U+%04X is shown", c);
        /* the last one ends the planes */
        assert_int_equal(printable_character(hidden[i].last + 1), hidden[i].last < 0x10ffff);
    }
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
        assert_true(printable_character(shown[i]));
    for (uint32_t plane = 0; plane <= 0x10; plane++)
        assert_false(printable_character(plane << 16 | 0xfffe) || printable_character(plane << 16 | 0xffff));
}

static void test_cut_between_characters(void **state)
{
    static const char text[] = "a\u00e4\u20ac\U0001f600z"; /* 1 + 2 + 3 + 4 + 1 bytes */
    static const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};

    for (size_t n = 0; n < sizeof(text); n++)
        assert_int_equal(utf8_cut(text, n), whole[n]);
}

static void test_text_of_others_is_escaped(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"a\u00e4 \u20ac", "a\u00e4 \u20ac"},
        {"a\nmemoryd: b", "a\\x0amemoryd: b"},
        {"\x1b[2J", "\\x1b[2J"},
        {"\xc2\x9b[2J", "\\x9b[2J"},
        {"caf\xe9!", "caf\\xe9!"},
        {"x\xe2\x82", "x"},
        {"\u202egnp.exe", "\\u202egnp.exe"},
        {"a\U000e0041\ufeffb", "a\\U000e0041\\ufeffb"},
        {"", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];

        snprintf(text, sizeof(text), "%s", cases[i].text);
        assert_string_equal(printable_escape(text, sizeof(text)), cases[i].shown);
    }
}

static void test_escapes_stay_whole_and_in_their_place(void **state)
{
    static const char evil[] = "a\u202e\u20ac\x1b\U000e0041\u00e4\xff z";
    char whole[64];

    snprintf(whole, sizeof(whole), "%s", evil);
    printable_escape(whole, sizeof(whole));
    for (size_t size = sizeof(evil); size < sizeof(whole); size++) {
        char text[80];
        size_t n;

        memset(text, '#', sizeof(text));
        memcpy(text, evil, sizeof(evil));
        printable_escape(text, size);
        n = strlen(text);
        assert_in_range(n, 1, size - 1);
        for (size_t i = size; i < sizeof(text); i++)
            assert_int_equal(text[i], '#');
        assert_true(printable_text(text, n));
        assert_memory_equal(text, whole, n);
        /* not in the middle of an escape sequence, nor more cut off than needed */
        assert_true(whole[n] == '\0' || whole[n] == '\\' || n + 4 > size - 1);
    }
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
        cmocka_unit_test(test_what_is_printable),
        cmocka_unit_test(test_cut_between_characters),
        cmocka_unit_test(test_text_of_others_is_escaped),
        cmocka_unit_test(test_escapes_stay_whole_and_in_their_place),
        cmocka_unit_test(test_long_sentences_stay_text),
    };

    return test_run(tests, NULL, NULL);
}
