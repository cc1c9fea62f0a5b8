/* SPDX-License-Identifier: Apache-2.0 */
/* hsa_system_get_info with every attribute, and hsa_status_string with every status of hsa.h and hsa_ext_amd.h. */
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/hsa/ask.h"

/* clang-format off */
#define STATUS(name) {HSA_STATUS_##name, "HSA_STATUS_" #name}
/* clang-format on */

static const struct {
    uint32_t status;
    const char *name;
} statuses[] = {
    STATUS(SUCCESS),
    STATUS(INFO_BREAK),
    STATUS(ERROR),
    STATUS(ERROR_INVALID_ARGUMENT),
    STATUS(ERROR_INVALID_QUEUE_CREATION),
    STATUS(ERROR_INVALID_ALLOCATION),
    STATUS(ERROR_INVALID_AGENT),
    STATUS(ERROR_INVALID_REGION),
    STATUS(ERROR_INVALID_SIGNAL),
    STATUS(ERROR_INVALID_QUEUE),
    STATUS(ERROR_OUT_OF_RESOURCES),
    STATUS(ERROR_INVALID_PACKET_FORMAT),
    STATUS(ERROR_RESOURCE_FREE),
    STATUS(ERROR_NOT_INITIALIZED),
    STATUS(ERROR_REFCOUNT_OVERFLOW),
    STATUS(ERROR_INCOMPATIBLE_ARGUMENTS),
    STATUS(ERROR_INVALID_INDEX),
    STATUS(ERROR_INVALID_ISA),
    STATUS(ERROR_INVALID_CODE_OBJECT),
    STATUS(ERROR_INVALID_EXECUTABLE),
    STATUS(ERROR_FROZEN_EXECUTABLE),
    STATUS(ERROR_INVALID_SYMBOL_NAME),
    STATUS(ERROR_VARIABLE_ALREADY_DEFINED),
    STATUS(ERROR_VARIABLE_UNDEFINED),
    STATUS(ERROR_EXCEPTION),
    STATUS(ERROR_INVALID_ISA_NAME),
    STATUS(ERROR_INVALID_CODE_SYMBOL),
    STATUS(ERROR_INVALID_EXECUTABLE_SYMBOL),
    STATUS(ERROR_INVALID_FILE),
    STATUS(ERROR_INVALID_CODE_OBJECT_READER),
    STATUS(ERROR_INVALID_CACHE),
    STATUS(ERROR_INVALID_WAVEFRONT),
    STATUS(ERROR_INVALID_SIGNAL_GROUP),
    STATUS(ERROR_INVALID_RUNTIME_STATE),
    STATUS(ERROR_FATAL),
    STATUS(ERROR_INVALID_MEMORY_POOL),
    STATUS(ERROR_MEMORY_APERTURE_VIOLATION),
    STATUS(ERROR_ILLEGAL_INSTRUCTION),
    STATUS(ERROR_MEMORY_FAULT),
    STATUS(CU_MASK_REDUCED),
    STATUS(ERROR_OUT_OF_REGISTERS),
    STATUS(ERROR_RESOURCE_BUSY),
    STATUS(ERROR_NOT_SUPPORTED),
};

/* hsa_system_get_info, attribute and value: SUCCESS, each attribute has its size and value, and nothing else is an
 * attribute. */
static void attributes(void **state)
{
    static const struct attribute rows[] = {
        ATTRIBUTE(HSA_SYSTEM_INFO_VERSION_MAJOR, uint16_t, 1),
        ATTRIBUTE(HSA_SYSTEM_INFO_VERSION_MINOR, uint16_t, 1),
        ATTRIBUTE(HSA_SYSTEM_INFO_TIMESTAMP, uint64_t, DIFFERS),
        ATTRIBUTE(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, uint64_t, 1000000000),
        ATTRIBUTE(HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT, uint64_t, DIFFERS),
        ATTRIBUTE(HSA_SYSTEM_INFO_ENDIANNESS, hsa_endianness_t,
                  __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? HSA_ENDIANNESS_LITTLE : HSA_ENDIANNESS_BIG),
        ATTRIBUTE(HSA_SYSTEM_INFO_MACHINE_MODEL, hsa_machine_model_t, HSA_MACHINE_MODEL_LARGE),
        ATTRIBUTE(HSA_SYSTEM_INFO_EXTENSIONS, uint8_t[128], 0),
        ATTRIBUTE(HSA_AMD_SYSTEM_INFO_BUILD_VERSION, const char *, DIFFERS),
        ATTRIBUTE(HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED, bool, true),
        ATTRIBUTE(HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT, bool, true),
        ATTRIBUTE(HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED, bool, false),
        ATTRIBUTE(HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED, bool, true),
        ATTRIBUTE(HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED, bool, true),
        ATTRIBUTE(HSA_AMD_SYSTEM_INFO_XNACK_ENABLED, bool, false),
        ATTRIBUTE(HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR, uint16_t, HSA_AMD_INTERFACE_VERSION_MAJOR),
        ATTRIBUTE(HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR, uint16_t, HSA_AMD_INTERFACE_VERSION_MINOR),
    };
    uint64_t longest;

    ask_all(ask_system, 0, rows, sizeof(rows) / sizeof(rows[0]));
    ask_exactly(ask_system, 0, HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT, sizeof(longest), &longest);
    assert_true(longest == UINT64_MAX);
}

/* hsa_system_get_info: value NULL is INVALID_ARGUMENT, and so is what is no attribute. */
static void arguments(void **state)
{
    uint64_t value;

    assert_status(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_system_get_info((hsa_system_info_t)4711, &value), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* HSA_SYSTEM_INFO_TIMESTAMP goes forward at HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY. */
static void timestamp(void **state)
{
    uint64_t last = 0, frequency, later;

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t now;

        assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &now));
        assert_in_range(now, last + (i == 0), UINT64_MAX);
        last = now;
    }
    assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
    usleep(20000);
    assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &later));
    assert_true(later - last >= frequency / 50);
}

/* HSA_AMD_SYSTEM_INFO_BUILD_VERSION: a text that stays. */
static void build_version(void **state)
{
    const char *first, *second;

    assert_success(hsa_system_get_info((hsa_system_info_t)HSA_AMD_SYSTEM_INFO_BUILD_VERSION, &first));
    assert_success(hsa_system_get_info((hsa_system_info_t)HSA_AMD_SYSTEM_INFO_BUILD_VERSION, &second));
    assert_ptr_equal(first, second);
    assert_string_equal(first, PACKAGE_STRING);
}

/* hsa_status_string(status, status_string): SUCCESS, the name, a colon and a sentence, each another one, always at the
 * same address. */
static void status_strings(void **state)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        size_t length = strlen(statuses[i].name);
        const char *text = NULL, *again = NULL;

        assert_success(hsa_status_string((hsa_status_t)statuses[i].status, &text));
        assert_success(hsa_status_string((hsa_status_t)statuses[i].status, &again));
        assert_ptr_equal(text, again);
        assert_memory_equal(text, statuses[i].name, length);
        assert_memory_equal(text + length, ": ", 2);
        assert_true(isupper((unsigned char)text[length + 2]));
        assert_int_equal(text[strlen(text) - 1], '.');
        for (size_t k = 0; k < i; k++) {
            (void)hsa_status_string((hsa_status_t)statuses[k].status, &again);
            assert_string_not_equal(strchr(text, ' '), strchr(again, ' '));
        }
    }
}

/* hsa_status_string: status_string NULL, or a value that is no status, is INVALID_ARGUMENT; it is not touched. */
static void status_string_arguments(void **state)
{
    size_t known = 0;

    assert_status(hsa_status_string(HSA_STATUS_SUCCESS, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    for (uint32_t status = 0; status < 0x2000; status++) {
        const char *text = "untouched";

        if (!hsa_status_string((hsa_status_t)status, &text))
            known++;
        else
            assert_string_equal(text, "untouched");
    }
    assert_int_equal(known, sizeof(statuses) / sizeof(statuses[0]));
    assert_status(hsa_status_string((hsa_status_t)-1, &(const char *){NULL}), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

/* hsa_status_string needs no hsa_init(). */
static void status_string_without_init(void **state)
{
    const char *text = NULL;

    assert_success(hsa_shut_down());
    assert_success(hsa_status_string(HSA_STATUS_ERROR_NOT_INITIALIZED, &text));
    assert_non_null(text);
    assert_success(hsa_init());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes),
        cmocka_unit_test(arguments),
        cmocka_unit_test(timestamp),
        cmocka_unit_test(build_version),
        cmocka_unit_test(status_strings),
        cmocka_unit_test(status_string_arguments),
        cmocka_unit_test(status_string_without_init),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
