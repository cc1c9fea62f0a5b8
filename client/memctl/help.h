/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memctl says about itself.
 */
#pragma once

#include <stdio.h>

#include "memctl/command.h"

/* What memctl is and which commands it has. */
void print_usage(FILE *stream);

/* The same on standard output, or about one command; an exit status. */
int print_help(const struct invocation *invocation, const struct command *command);
