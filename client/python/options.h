/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the library's calls, and what it tells of its objects, as tables for fields.h. */
#pragma once

#include "fields.h"

extern const struct field options_alloc[];
extern const struct field options_name[];
extern const struct field options_share[];
extern const struct field options_buffer_info[];
extern const struct field options_heap[];
extern const struct field options_heap_info[];
