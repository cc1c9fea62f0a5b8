/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyArg_ParseTuple() calls for "O&": 1, or 0 and an exception. Numbers are integers that fit, or OverflowError; no
 * floating point numbers are taken.
 */
#pragma once

#include "module.h"

int convert_to_uint64(PyObject *object, void *result);
int convert_to_unsigned(PyObject *object, void *result);
/* Bytes-like, of the size of a token. */
int convert_to_token(PyObject *object, void *result);
/* Bytes-like, of the size of a struct memclient_block. */
int convert_to_block(PyObject *object, void *result);
/* A str without a NUL, or None = NULL. The text lives as long as the str. */
int convert_to_text(PyObject *object, void *result);
/* A dict, or None = NULL; borrowed. */
int convert_to_dict(PyObject *object, void *result);
