/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that was lent. NumPy's ndarray(buffer=) and PyTorch's frombuffer() take a view, end it at once, and go on to
 * use the memory; what they keep is a reference to the object. So do socket.send() and file.readinto(), which keep
 * nothing. The object cannot tell them apart, and so its memory stays as it is until the object ends. A memoryview, and
 * with it numpy.frombuffer() and ctypes, keeps its view as long as it uses the memory; it asks for all there is to
 * know.
 */
#pragma once

#include "module.h"

static inline bool lent_by(int flags)
{
    return (flags & PyBUF_FULL_RO) != PyBUF_FULL_RO;
}
