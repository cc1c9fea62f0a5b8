/* SPDX-License-Identifier: Apache-2.0 */
/* See findings.h. */
#include "memctl/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "memctl/command.h"
#include "memctl/text.h"

static const struct column findings_columns[] = {
    {"CHECK", "check", COLUMN_TEXT},
    {"OK", "ok", COLUMN_YES},
    {"RATIO", "ratio", COLUMN_RATIO},
    {"DETAIL", "detail", COLUMN_TEXT},
    COLUMNS_END,
};

void findings_init(struct findings *findings, bool json)
{
    *findings = (struct findings){.healthy = true};
    output_init(&findings->output, json, findings_columns);
}

static void __attribute__((format(printf, 5, 0)))
findings_add(struct findings *findings, const char *check, bool ok, struct remedy remedy, const char *format,
             va_list arguments)
{
    char detail[TEXT_MAX];
    int r;

    (void)vsnprintf(detail, sizeof(detail), format, arguments);
    r = output_row(&findings->output,
                   json_pack("{so sb so so so}", "check", json_text(check), "ok", ok, "detail", json_text(detail),
                             "ratio", remedy.ratio > 0 ? json_real(remedy.ratio) : json_null(), "mend",
                             json_text(remedy.mend ? remedy.mend : "")));
    findings->healthy &= ok;
    if (r)
        findings->r = r;
}

void findings_report(struct findings *findings, const char *check, bool ok, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    findings_add(findings, check, ok, (struct remedy){.mend = NULL}, format, arguments);
    va_end(arguments);
}

void findings_report_mend(struct findings *findings, const char *check, bool ok, struct remedy remedy,
                          const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    findings_add(findings, check, ok, remedy, format, arguments);
    va_end(arguments);
}

/* Below the table, so that each line can be copied. */
static int findings_print_mends(const json_t *rows)
{
    const char *heading = "\nTo mend that, as root:\n";
    size_t i;
    json_t *row;

    json_array_foreach(rows, i, row) {
        const char *mend = json_string_value(json_object_get(row, "mend"));

        if (!mend)
            continue;
        printf("%s  %s\n", heading, mend);
        heading = "";
    }
    return output_flush();
}

int findings_end(struct findings *findings)
{
    json_t *rows = json_incref(findings->output.rows);
    int r = output_end(&findings->output, findings->r);

    if (!r && !findings->output.json)
        r = findings_print_mends(rows);
    json_decref(rows);
    if (r)
        return r;
    if (findings->no_broker)
        return EXIT_NO_BROKER;
    return findings->healthy ? EXIT_DONE : EXIT_REFUSED;
}
