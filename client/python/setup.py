# SPDX-License-Identifier: Apache-2.0
"""Builds the package with an installed libmemclient, which pkg-config finds. In memoryd's own tree, make does it."""

import glob
import shlex
import subprocess

from setuptools import Extension, setup


def library(what: str) -> str:
    """What pkg-config says of it."""
    return subprocess.check_output(["pkg-config", what, "memclient"], text=True).strip()


folder = library("--variable=libdir")

setup(
    version=library("--modversion"),
    ext_modules=[
        Extension(
            "memclient._memclient",
            sorted(glob.glob("*.c")),
            depends=sorted(glob.glob("*.h")),
            define_macros=[("_GNU_SOURCE", None)],
            extra_compile_args=["-std=gnu11", "-fvisibility=hidden", *shlex.split(library("--cflags"))],
            extra_link_args=shlex.split(library("--libs")),
            # wherever that is, it is found without LD_LIBRARY_PATH
            runtime_library_dirs=[] if folder.startswith("/usr/lib") else [folder],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
