/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What newer kernels have of which memoryd makes use. A distribution's kernel may have what its version does not say,
 * or lack it, so each is tried.
 */
#pragma once

#include "memctl/findings.h"

void kernel_check(struct findings *findings);
