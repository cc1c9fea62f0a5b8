# SPDX-License-Identifier: Apache-2.0
#
# The options and flags of memoryd's configure. Everything found goes into variables of our own
# (MEMORYD_CFLAGS and so on), never into the CFLAGS of whoever builds.

# MEMORYD_TRY_FLAG(FLAG, VARIABLE): append FLAG to VARIABLE if compiling and linking take it silently.
AC_DEFUN([MEMORYD_TRY_FLAG], [
    AS_VAR_PUSHDEF([cache], [memoryd_cv_flag_$1])
    AC_CACHE_CHECK([whether $CC takes $1], [cache], [
        memoryd_saved="$CFLAGS"
        CFLAGS="$CFLAGS -Werror $1"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
                       [AS_VAR_SET([cache], [yes])], [AS_VAR_SET([cache], [no])])
        CFLAGS="$memoryd_saved"
    ])
    AS_VAR_IF([cache], [yes], [$2="$$2 $1"])
    AS_VAR_POPDEF([cache])
])

AC_DEFUN([MEMORYD_TRY_FLAGS], [m4_foreach_w([flag], [$1], [MEMORYD_TRY_FLAG(m4_defn([flag]), [$2])])])

# --enable-sanitizers=address,undefined | thread
AC_DEFUN([MEMORYD_OPTION_SANITIZERS], [
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers=LIST],
                        [build with sanitizers: address,undefined or thread])],
        [], [enable_sanitizers=no])
    SANITIZER_FLAGS=
    AS_CASE([$enable_sanitizers],
        [no], [],
        [yes], [enable_sanitizers=address,undefined])
    AS_IF([test "$enable_sanitizers" != no], [
        SANITIZER_FLAGS="-fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
        memoryd_saved="$CFLAGS"
        CFLAGS="$CFLAGS $SANITIZER_FLAGS"
        AC_MSG_CHECKING([whether $CC can build with $SANITIZER_FLAGS])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
                       [AC_MSG_RESULT([no])
                        AC_MSG_ERROR([$CC cannot build with --enable-sanitizers=$enable_sanitizers])])
        CFLAGS="$memoryd_saved"
    ])
    AC_SUBST([SANITIZER_FLAGS])
    AC_SUBST([SANITIZERS], [$enable_sanitizers])
])

# --enable-fuzzing: all code with coverage instrumentation, the programs of tests/fuzz with libFuzzer's main.
# Without it the same programs are built with a small main of our own, which replays the saved inputs.
AC_DEFUN([MEMORYD_OPTION_FUZZING], [
    AC_ARG_ENABLE([fuzzing],
        [AS_HELP_STRING([--enable-fuzzing], [build tests/fuzz as libFuzzer programs (CC=clang)])],
        [], [enable_fuzzing=no])
    FUZZING_CFLAGS=
    FUZZING_LDFLAGS=
    AS_IF([test "$enable_fuzzing" != no], [
        FUZZING_CFLAGS="-fsanitize=fuzzer-no-link"
        FUZZING_LDFLAGS="-fsanitize=fuzzer"
        memoryd_saved="$CFLAGS"
        CFLAGS="$CFLAGS $FUZZING_CFLAGS $FUZZING_LDFLAGS"
        AC_MSG_CHECKING([whether $CC has libFuzzer])
        AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return data && size > 1u << 30; }
            ]])], [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([--enable-fuzzing needs libFuzzer: CC=clang and its compiler-rt (libclang-rt-dev)])])
        CFLAGS="$memoryd_saved"
        AC_DEFINE([FUZZING], [1], [Define when tests/fuzz gets its main from libFuzzer])
    ])
    AC_SUBST([FUZZING_CFLAGS])
    AC_SUBST([FUZZING_LDFLAGS])
    AM_CONDITIONAL([FUZZING], [test "$enable_fuzzing" != no])
])

AC_DEFUN([MEMORYD_OPTION_COVERAGE], [
    AC_ARG_ENABLE([coverage],
        [AS_HELP_STRING([--enable-coverage], [count which lines the tests run; see make coverage])],
        [], [enable_coverage=no])
    COVERAGE_FLAGS=
    AS_IF([test "$enable_coverage" != no], [COVERAGE_FLAGS="--coverage -O0 -fprofile-abs-path"])
    AC_SUBST([COVERAGE_FLAGS])
    AM_CONDITIONAL([COVERAGE], [test "$enable_coverage" != no])
])

# Off by default: it would stand beside, or before, the runtime that drives a machine's GPUs.
AC_DEFUN([MEMORYD_OPTION_HSA_RUNTIME_ALIAS], [
    AC_ARG_ENABLE([hsa-runtime-alias],
        [AS_HELP_STRING([--enable-hsa-runtime-alias],
            [also install libmemclient-hsa as libhsa-runtime64.so.1, the name that HSA programs are linked with])],
        [], [enable_hsa_runtime_alias=no])
    AM_CONDITIONAL([HSA_RUNTIME_ALIAS], [test "$enable_hsa_runtime_alias" != no])
])

# A jemalloc of our own, made of the distribution's archive of position independent objects.
AC_DEFUN([MEMORYD_OPTION_JEMALLOC], [
    AC_ARG_WITH([jemalloc],
        [AS_HELP_STRING([--with-jemalloc=FILE],
            [the archive that UMF's jemalloc pool is made of (libjemalloc_pic.a); no: without that pool])],
        [], [with_jemalloc=auto])
    AC_PATH_PROG([PERL], [perl])
    AC_CHECK_TOOL([OBJCOPY], [objcopy])
    JEMALLOC_ARCHIVE=
    AS_CASE([$with_jemalloc],
        [no], [],
        [auto|yes], [
            memoryd_file=`$CC -print-file-name=libjemalloc_pic.a`
            AS_IF([test -f "$memoryd_file"], [JEMALLOC_ARCHIVE=$memoryd_file])],
        [JEMALLOC_ARCHIVE=$with_jemalloc])
    AC_CHECK_HEADER([jemalloc/jemalloc.h], [], [JEMALLOC_ARCHIVE=])
    AS_CASE([$host_cpu], [x86_64|aarch64], [], [JEMALLOC_ARCHIVE=])
    AS_IF([test -z "$PERL" || test -z "$OBJCOPY"], [JEMALLOC_ARCHIVE=])
    AS_IF([test -z "$JEMALLOC_ARCHIVE"], [
        AS_CASE([$with_jemalloc], [auto|no], [],
            [AC_MSG_ERROR([--with-jemalloc needs libjemalloc_pic.a, jemalloc/jemalloc.h, objcopy, perl, and x86_64 or aarch64])])
        with_jemalloc=no
    ], [
        with_jemalloc=$JEMALLOC_ARCHIVE
        AC_DEFINE([HAVE_JEMALLOC], [1], [Define if there is a jemalloc of our own])
    ])
    AC_SUBST([JEMALLOC_ARCHIVE])
    AM_CONDITIONAL([JEMALLOC], [test -n "$JEMALLOC_ARCHIVE"])
])

# OpenCL's layer needs headers and nothing else.
AC_DEFUN([MEMORYD_OPTION_OPENCL], [
    AC_ARG_WITH([opencl],
        [AS_HELP_STRING([--without-opencl],
            [make libmemclient-opencl without the layer of OpenCL, as where there is no CL/cl_layer.h])],
        [], [with_opencl=auto])
    memoryd_headers=no
    AS_IF([test "$with_opencl" != no],
          [AC_CHECK_HEADER([CL/cl_layer.h], [memoryd_headers=yes], [], [[#define CL_TARGET_OPENCL_VERSION 300]])])
    AS_CASE([$with_opencl:$memoryd_headers],
        [yes:no], [AC_MSG_ERROR([CL/cl_layer.h not found: install opencl-c-headers, or give --without-opencl])])
    with_opencl=$memoryd_headers
    AM_CONDITIONAL([OPENCL], [test "$with_opencl" = yes])
])

# The filters of daemon/sandbox are compiled by a program that runs during the build. Sanitizers make calls of their own.
AC_DEFUN([MEMORYD_OPTION_SECCOMP], [
    AC_ARG_WITH([seccomp],
        [AS_HELP_STRING([--with-seccomp=yes|no|auto],
            [a sandbox for the daemon, compiled by libseccomp; not with sanitizers, nor cross-compiled])],
        [], [with_seccomp=auto])
    memoryd_seccomp=no
    AS_IF([test "$with_seccomp" != no], [
        PKG_CHECK_MODULES([LIBSECCOMP], [libseccomp >= 2.5], [memoryd_seccomp=yes], [memoryd_seccomp=no])
        AS_IF([test "$cross_compiling:$enable_sanitizers:$enable_fuzzing" != no:no:no], [memoryd_seccomp=no])])
    AS_CASE([$with_seccomp:$memoryd_seccomp],
        [yes:no], [AC_MSG_ERROR([--with-seccomp needs libseccomp 2.5 (libseccomp-dev), and a build for this machine without sanitizers])])
    with_seccomp=$memoryd_seccomp
    AC_DEFINE_UNQUOTED([SANDBOX], [`test "$with_seccomp" = yes && echo 1 || echo 0`],
                       [1 if the daemon has filters of its system calls])
    AM_CONDITIONAL([SANDBOX], [test "$with_seccomp" = yes])
])

# Static probes for tracers, memoryd(8): PROBES.
AC_DEFUN([MEMORYD_OPTION_PROBES], [
    AC_ARG_ENABLE([probes],
        [AS_HELP_STRING([--disable-probes],
            [no static probes (USDT) for bpftrace, perf, gdb and SystemTap, as where there is no sys/sdt.h])],
        [], [enable_probes=auto])
    memoryd_probes=no
    AS_IF([test "$enable_probes" != no], [AC_CHECK_HEADER([sys/sdt.h], [memoryd_probes=yes])])
    AS_CASE([$enable_probes:$memoryd_probes],
        [yes:no], [AC_MSG_ERROR([sys/sdt.h not found: install systemtap-sdt-dev, or give --disable-probes])])
    enable_probes=$memoryd_probes
    AC_DEFINE_UNQUOTED([PROBES], [`test "$enable_probes" = yes && echo 1 || echo 0`],
                       [1 if the daemon has static probes])
    AM_CONDITIONAL([PROBES], [test "$enable_probes" = yes])
])

# The Python module, for the interpreter that $PYTHON is, or the system's. It goes where that one looks, if this is below
# the prefix; else into the prefix, and PYTHONPATH has to say so.
AC_DEFUN([MEMORYD_OPTION_PYTHON], [
    AC_ARG_VAR([PYTHON], [the Python interpreter, 3.11 or later, that the Python module is for])
    AC_ARG_WITH([python],
        [AS_HELP_STRING([--without-python], [make no Python module, as where there is no Python.h])],
        [], [with_python=auto])
    AC_ARG_WITH([pythondir],
        [AS_HELP_STRING([--with-pythondir=DIR], [where the Python module goes])],
        [], [with_pythondir=auto])
    : "${PYTHON=/usr/bin/python3}"
    memoryd_python=no
    PYTHON_CFLAGS=
    AS_IF([test "$with_python" != no], [
        AC_MSG_CHECKING([for the headers of $PYTHON, 3.11 or later])
        memoryd_include=`"$PYTHON" -c 'import sys, sysconfig; assert sys.version_info >= (3, 11)
print(sysconfig.get_path("include"))' 2>/dev/null`
        AS_IF([test -n "$memoryd_include" && test -e "$memoryd_include/Python.h"],
              [memoryd_python=yes PYTHON_CFLAGS="-isystem $memoryd_include"])
        AC_MSG_RESULT([$memoryd_python])])
    AS_CASE([$with_python:$memoryd_python],
        [yes:no], [AC_MSG_ERROR([no Python.h of Python 3.11 or later for $PYTHON: install python3-dev, or give --without-python])])
    with_python=$memoryd_python
    AS_IF([test "$with_python" = no], [PYTHON=])
    AS_IF([test "$with_python:$with_pythondir" = yes:auto], [
        memoryd_prefix=$prefix
        AS_IF([test "$memoryd_prefix" = NONE], [memoryd_prefix=$ac_default_prefix])
        with_pythondir='${prefix}'/`"$PYTHON" -c 'import os.path, site, sys
lib = os.path.join(os.path.normpath(sys.argv[[1]]), "")
below = [[path[len(lib):] for path in site.getsitepackages() if path.startswith(lib + "lib")]]
print((below + [["lib/python%d.%d/site-packages" % sys.version_info[:2]]])[[0]])' "$memoryd_prefix"`])
    AC_SUBST([PYTHON_CFLAGS])
    AC_SUBST([pythondir], [$with_pythondir])
    AM_CONDITIONAL([PYTHON], [test "$with_python" = yes])
])

AC_DEFUN([MEMORYD_OPTION_WERROR], [
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors, as CI does])],
        [], [enable_werror=no])
])

# MEMORYD_INSTALL_DIR(NAME, WHAT, BELOW-PREFIX, PKG-CONFIG-MODULE, PKG-CONFIG-VARIABLE, [no])
#
# --with-NAME=DIR|no. Below the prefix by default, so that an unprivileged or a trial installation never
# writes into the system; with --prefix=/usr it is where the distribution wants it.
AC_DEFUN([MEMORYD_INSTALL_DIR], [
    AC_ARG_WITH([$1],
        [AS_HELP_STRING([--with-$1=DIR], [where $2 go; no: do not install them]m4_ifval([$6], [[ (default)]]))],
        [], [with_$1=m4_default([$6], [auto])])
    AS_CASE([$with_$1],
        [no], [],
        [auto|yes], [
            with_$1='${prefix}/$3'
            AS_CASE([$prefix], [/usr|/usr/], [
                memoryd_dir=`$PKG_CONFIG --variable=$5 $4 2>/dev/null`
                AS_IF([test -n "$memoryd_dir"], [with_$1=$memoryd_dir])])
        ],
        [/*|'${'*], [],
        [AC_MSG_ERROR([--with-$1 wants an absolute directory or no, not "$with_$1"])])
    AC_SUBST([$1], [$with_$1])
    AM_CONDITIONAL(m4_toupper([INSTALL_$1]), [test "$with_$1" != no])
])

AC_DEFUN([MEMORYD_COMPILER_FLAGS], [
    WARNING_CFLAGS="-Wall -Wextra"
    # Each of these found a real class of mistakes: shadowed and unused names, missing prototypes and
    # returns, formats that do not match, implicit narrowing in comparisons,
    # and stack that depends on input.
    MEMORYD_TRY_FLAGS([
        -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wredundant-decls
        -Wnested-externs -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wformat-signedness
        -Wfloat-equal -Wimplicit-fallthrough -Wcast-align -Wlogical-op
        -Wduplicated-cond -Wduplicated-branches -Wdate-time -Werror=implicit-function-declaration
        -Werror=incompatible-pointer-types -Werror=int-conversion -Werror=return-type
        -Wno-missing-field-initializers -Wno-unused-parameter], [WARNING_CFLAGS])
    AS_IF([test "$enable_werror" != no], [
        WARNING_CFLAGS="$WARNING_CFLAGS -Werror"
        # gcc's manual: with sanitizers some warnings that depend on optimisation are wrong
        AS_IF([test "$enable_sanitizers" != no], [
            MEMORYD_TRY_FLAGS([-Wno-error=array-bounds -Wno-error=maybe-uninitialized
                -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=null-dereference],
                [WARNING_CFLAGS])])
    ])

    # Hardening. _FORTIFY_SOURCE needs optimisation and hides from the sanitizers what they look for.
    HARDENING_CFLAGS=
    HARDENING_CPPFLAGS=
    HARDENING_LDFLAGS=
    MEMORYD_TRY_FLAGS([-fstack-protector-strong -fstack-clash-protection], [HARDENING_CFLAGS])
    AS_CASE([$host_cpu],
        [x86_64], [MEMORYD_TRY_FLAGS([-fcf-protection], [HARDENING_CFLAGS])],
        [aarch64], [MEMORYD_TRY_FLAGS([-mbranch-protection=standard], [HARDENING_CFLAGS])])
    MEMORYD_TRY_FLAGS([-Wl,-z,relro -Wl,-z,now -Wl,--as-needed], [HARDENING_LDFLAGS])
    AS_IF([test "$enable_sanitizers$enable_coverage$enable_fuzzing" = nonono], [
        AS_CASE([" $CFLAGS "], [*" -O0 "*], [], [*" -O"*],
                [HARDENING_CPPFLAGS="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"])
    ])

    # Undefined symbols in a shared object are an error; but sanitized objects leave the sanitizer's
    # own symbols to the program.
    NO_UNDEFINED_LDFLAGS=
    AS_IF([test "$enable_sanitizers$enable_fuzzing" = nono],
          [MEMORYD_TRY_FLAG([-Wl,-z,defs], [NO_UNDEFINED_LDFLAGS])])

    # The programs are position independent, whatever the compiler's default.
    PIE_LDFLAGS=
    MEMORYD_TRY_FLAG([-pie], [PIE_LDFLAGS])

    MEMORYD_CPPFLAGS="$HARDENING_CPPFLAGS"
    MEMORYD_CFLAGS="-std=gnu11 -fvisibility=hidden -fPIE -pthread $WARNING_CFLAGS $HARDENING_CFLAGS $SANITIZER_FLAGS $FUZZING_CFLAGS $COVERAGE_FLAGS"
    MEMORYD_LDFLAGS="-pthread $HARDENING_LDFLAGS $NO_UNDEFINED_LDFLAGS $SANITIZER_FLAGS $FUZZING_CFLAGS $COVERAGE_FLAGS"
    AC_SUBST([MEMORYD_CPPFLAGS])
    AC_SUBST([MEMORYD_CFLAGS])
    AC_SUBST([MEMORYD_LDFLAGS])
    AC_SUBST([PIE_LDFLAGS])
])
