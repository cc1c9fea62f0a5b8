/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How rows are told: figures in their units, the table's lines, the objects for programs; and what is kept of one visit
 * of a program's for the next ones.
 *
 * Rounds that follow one another are no independent ones. A neighbour who was busy was so for all of them, and where
 * the process got its pages is the same in each. So bench.sh runs all programs several times, minutes apart: each of
 * these visits adds its rounds to those before, and the last one tells the row of all of them.
 */
#pragma once

#include "tests/bench/bench.h"

/* ---- what is asked for, before anything else --------------------------------------------------------------------- */

/* Objects are added to this file. */
void report_into(const char *file);
/* What is measured is kept in this folder until the last visit, which tells it. */
void report_visit(bool is_last, const char *kept_in);
/* The status for main(). */
int report_end(void);

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* What is measured, in us or bytes, and processor time in us, as they are shown. */
double report_figure(const struct bench_row *row, double value);
double report_processor(const struct bench_row *row, double us);
/* That is compared. */
double report_quantile(const struct bench_row *row);
/* Of what is held to something, and else of the ratio. */
bool report_is_narrow(const struct bench_row *row, struct bench_rounds *rounds);
