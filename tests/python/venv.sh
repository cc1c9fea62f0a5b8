#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# pip builds the package with an installed library, which pkg-config finds, in a virtual environment; a program there
# uses it with a broker. Nothing is asked of a network.
set -eu

[ -n "${PYTHON-}" ] || { echo 'the Python module was not built: python3-dev is missing, or Python is older than 3.11'; exit 77; }
[ "${SANITIZERS:-no}" = no ] || { echo 'neither the interpreter nor what pip builds has a sanitizer'; exit 77; }
missing=
for module in venv ensurepip setuptools wheel; do
    "$PYTHON" -c "import $module" 2>/dev/null || missing+=" $module"
done
[ -z "$missing" ] || { echo "$PYTHON lacks$missing (Debian: python3-venv, python3-setuptools, python3-wheel)"; exit 77; }

. "${srcdir:?}/tests/support/broker.sh"
begin_test_broker

# The library, below a prefix of its own. No make install, which links what other tests use meanwhile.
variable() {
    pkg-config --variable="$1" "$builddir/client/memclient.pc"
}
libdir=$dir/root$(variable libdir)
mkdir -p "$libdir/pkgconfig" "$dir/root$(variable includedir)"
bash "$builddir/libtool" --quiet --mode=install install -c "$builddir/client/libmemclient.la" "$libdir" 2>"$dir/install" ||
    { cat "$dir/install"; exit 1; }
cp -r "$srcdir/include/memclient" "$dir/root$(variable includedir)"
sed "s|=/|=$dir/root/|" "$builddir/client/memclient.pc" >"$libdir/pkgconfig/memclient.pc"

# The package as it is in the source, where pip may not write.
mkdir -p "$dir/source/client/python"
cp -r "$srcdir"/client/python/{*.[ch],memclient,MANIFEST.in,pyproject.toml,setup.py} "$dir/source/client/python"
# the copies of a source that may not be written are like it, and have to be removed again
chmod -R u+w "$dir/root" "$dir/source"

unset PYTHONPATH
export HOME=$dir PKG_CONFIG_PATH=$libdir/pkgconfig PIP_NO_INDEX=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
"$PYTHON" -m venv --system-site-packages "$dir/venv"
. "$dir/venv/bin/activate"
cd "$dir/source"
pip install --no-build-isolation ./client/python >"$dir/pip" 2>&1 || { cat "$dir/pip"; exit 1; }

cd "$dir"
python3 -W error - "$dir" <<'P'
import importlib.metadata
import sys
import time

import memclient

folder = sys.argv[1]
assert memclient.__file__.startswith(f"{folder}/venv/"), memclient.__file__
assert memclient._memclient.__file__.endswith("/_memclient.abi3.so"), memclient._memclient.__file__
assert importlib.metadata.version("memclient") == memclient.library_version
with memclient.alloc(100000, name="venv") as buffer:
    memoryview(buffer)[:5] = b"hello"
    with memclient.open("venv", rights="r") as other, memoryview(other) as view:
        assert bytes(view[:5]) == b"hello" and view.readonly
with open("/proc/self/maps") as maps:
    libraries = {line.split()[-1] for line in maps if "libmemclient" in line}
assert libraries and all(name.startswith(f"{folder}/root/") for name in libraries), libraries
memclient.unbind("venv")
# what is ending is listed until its pages are free
deadline = time.monotonic() + 60
while rows := memclient.buffers():
    assert time.monotonic() < deadline, rows
    time.sleep(0.01)
P
