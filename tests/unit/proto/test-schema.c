/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables: methods, events, statuses and messages keep the promises that are made about all of
 * them, and that the code leans on.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "proto/status.h"

static void test_methods_are_told_apart(void **state)
{
    const struct schema_method *methods;
    size_t n;

    methods = schema_methods(&n);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        assert_in_range(methods[i].id, 1, 0x7fff);
        assert_ptr_equal(schema_method(methods[i].id), &methods[i]);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(methods[i].id, methods[j].id);
            assert_string_not_equal(methods[i].name, methods[j].name);
        }
    }
    assert_null(schema_method(0));
    assert_null(schema_method(0x7fff));
    assert_null(schema_method(0x8001));
    assert_string_equal(schema_method(METHOD_HELLO)->name, "hello");
    assert_ptr_equal(schema_method(METHOD_ALLOC)->reply, &memoryd__v1__buffers__descriptor);
}

static void test_events_are_told_apart(void **state)
{
    const struct schema_event *events;
    size_t n;

    events = schema_events(&n);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        /* never mistaken for a method */
        assert_in_range(events[i].id, 0x8000, 0xffff);
        assert_ptr_equal(schema_event(events[i].id), &events[i]);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(events[i].id, events[j].id);
    }
    assert_null(schema_event(METHOD_HELLO));
    assert_null(schema_event(0));
}

static void test_what_a_method_may_cost(void **state)
{
    const struct schema_method *methods;
    size_t n;

    methods = schema_methods(&n);
    for (size_t i = 0; i < n; i++) {
        assert_in_range(methods[i].fds_in, 0, MEMORYD_FDS_MAX);
        assert_in_range(methods[i].fds_out, 0, MEMORYD_FDS_MAX);
        /* only what opens the session goes before it */
        assert_int_equal(methods[i].session == SESSION_NONE, methods[i].id == METHOD_HELLO);
    }
}

/* How deep messages are nested below this one; a message that contains itself never ends. */
static unsigned depth(const ProtobufCMessageDescriptor *message, unsigned level)
{
    unsigned deepest = level;

    if (level > MEMORYD_NESTING_MAX)
        fail_msg("%s is nested too deep, or within itself", message->name);
    for (unsigned i = 0; i < message->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->fields[i];

        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            unsigned d = depth(field->descriptor, level + 1);

            deepest = d > deepest ? d : deepest;
        }
    }
    return deepest;
}

/* Decoding recurses as deep as messages are nested (protobuf-c has no limit of its own), so that
 * must end. */
static void test_no_message_is_nested_deep(void **state)
{
    const struct schema_method *methods;
    const struct schema_event *events;
    size_t n_methods, n_events;

    methods = schema_methods(&n_methods);
    for (size_t i = 0; i < n_methods; i++) {
        (void)depth(methods[i].request, 0);
        (void)depth(methods[i].reply, 0);
    }
    events = schema_events(&n_events);
    for (size_t i = 0; i < n_events; i++)
        (void)depth(events[i].message, 0);
    assert_int_equal(depth(&memoryd__v1__nodes_reply__descriptor, 0), 1);
}

/* Repeated messages are where a small packet becomes a large message; requests have none of them,
 * and the numbers that grow are packed. */
static void test_requests_do_not_multiply(void **state)
{
    const struct schema_method *methods;
    size_t n;

    methods = schema_methods(&n);
    for (size_t i = 0; i < n; i++)
        for (unsigned f = 0; f < methods[i].request->n_fields; f++) {
            const ProtobufCFieldDescriptor *field = &methods[i].request->fields[f];

            if (field->label != PROTOBUF_C_LABEL_REPEATED)
                continue;
            if (field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING ||
                field->type == PROTOBUF_C_TYPE_BYTES)
                fail_msg("%s repeats %s", methods[i].request->name, field->name);
        }
}

/* All-zero messages are valid protocol, so every enumeration has a zero. */
static void test_enumerations_start_at_zero(void **state)
{
    static const ProtobufCEnumDescriptor *const enums[] = {
        &memoryd__v1__right__descriptor,
        &memoryd__v1__pages__descriptor,
        &memoryd__v1__placement__descriptor,
        &memoryd__v1__name_policy__descriptor,
        &memoryd__v1__buffer_state__descriptor,
        &memoryd__v1__event_kind__descriptor,
        &memoryd__v1__alloc_request__flag__descriptor,
        &memoryd__v1__share_request__flag__descriptor,
        &memoryd__v1__buffer_info__flag__descriptor,
    };

    for (size_t i = 0; i < sizeof(enums) / sizeof(enums[0]); i++)
        assert_non_null(protobuf_c_enum_descriptor_get_value(enums[i], 0));
}

static void test_statuses(void **state)
{
    static const struct {
        unsigned number;
        const char *name;
        int err;
    } rows[] = {
#define X(name, number, err, text) {number, #name, err},
        MEMORYD_STATUSES(X)
#undef X
    };
    const unsigned n = sizeof(rows) / sizeof(rows[0]);

    for (unsigned i = 0; i < n; i++) {
        /* without a gap: a number that was given out is never taken back */
        assert_int_equal(rows[i].number, i);
        assert_string_equal(status_name(i), rows[i].name);
        assert_int_equal(status_errno(i), rows[i].err);
        assert_true(strlen(status_text(i)) > 0);
        assert_int_equal(rows[i].err == 0, i == STATUS_OK);
    }
    /* a later broker's status */
    assert_string_equal(status_name(n), "REFUSED");
    assert_int_equal(status_errno(UINT32_MAX), EIO);
    assert_string_equal(status_text(n), status_text(STATUS_REFUSED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_methods_are_told_apart),
        cmocka_unit_test(test_events_are_told_apart),
        cmocka_unit_test(test_what_a_method_may_cost),
        cmocka_unit_test(test_no_message_is_nested_deep),
        cmocka_unit_test(test_requests_do_not_multiply),
        cmocka_unit_test(test_enumerations_start_at_zero),
        cmocka_unit_test(test_statuses),
    };

    return test_run(tests, NULL, NULL);
}
