#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What every file looks like: licence line, an essay at its head, no tabs, no leftovers; and what a local.am may not forget.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__);
use Lint;

use constant LONG_FILE => 600;
use constant WIDE => 120;

my %top = map { $_ => 1 } qw(
    include proto daemon client systemd tests bootstrap configure.ac Makefile.am README.md NEWS.md LICENSE SECURITY.md
    ARCHITECTURE.md CONTRIBUTING.md
    m4 build-aux debian);

# spelled so that this file does not find itself
my $leftover = join '|', map { "\\b$_\\b" } 'TO' . 'DO', 'FIX' . 'ME', 'X' . 'XX', 'HA' . 'CK', 'for' . ' now';

for my $file (files()) {
    my ($first) = split m{/}, $file;
    complain($file, undef, "no new top-level name without a reason: $first")
        if !$top{$first} && $first !~ /^\./;

    next if $file =~ m{^(LICENSE|\.git|tests/.*/corpus/)} || -B root() . "/$file" || -l root() . "/$file";
    my $text = slurp($file);
    next if $text eq '';
    my $is_c = $file =~ /\.(c|h|hpp|cpp)$/;
    my $is_am = $file =~ /(^|\/)(local|Makefile)\.am$/;

    complain($file, undef, 'does not end with a newline') if $text !~ /\n\z/;
    complain($file, line_at($text, $-[0]), 'space at the end of a line') if $text =~ /[ \t]+$/m;
    complain($file, line_at($text, $-[0]), "leftover: $&") if $text =~ /$leftover/;

    if ($is_c || $is_am || $file =~ /\.(sh|pl|pm|m4|ac|proto|scd|map|sym|in|service|socket|conf)$|^bootstrap$/) {
        my ($head) = $text =~ /\A((?:[^\n]*\n){1,4})/;
        complain($file, 1, 'no SPDX-License-Identifier in the first lines') if $head !~ /SPDX-License-Identifier: Apache-2\.0/;
    }

    if ($is_c || $file =~ /\.proto$/) {
        complain($file, line_at($text, $-[0]), 'a tab') if $text =~ /\t/;
        my @lines = split /\n/, $text, -1;
        for my $n (0 .. $#lines) {
            my $line = $lines[$n];
            utf8::decode($line);
            # the rows of a table may be wider
            next if $line =~ /^ +X\(/;
            complain($file, $n + 1, 'wider than ' . WIDE . ' columns') if length $line > WIDE;
            # a banner that goes on in words leaves its end to a later line
            complain($file, $n + 1, 'a banner is "/* ---- words ---…--- */", ' . WIDE . ' columns wide')
                if $line =~ m{^/\* ---} && ($line !~ m{^/\* ---- [^-].*? -+( \*/)?$} || length $line != WIDE);
        }
    }

    if ($is_c) {
        my $code = code_of($text, 1);
        complain($file, line_at($code, $-[0] + 1), 'config.h comes by itself, on the command line')
            if $code =~ /^[ \t]*#[ \t]*include[ \t]*[<"]config\.h/m;
        complain($file, line_at($code, $-[0] + 1), '_GNU_SOURCE is in config.h')
            if $code =~ /^[ \t]*#[ \t]*define[ \t]+_GNU_SOURCE/m;
        complain($file, undef, 'no comment at the head says what this file is for')
            if $file !~ m{^tests/} && $text !~ m{\A/\*[^\n]*SPDX[^\n]*\n(?:#pragma once|#ifndef \w+\n#define \w+)?\s*/\*|\A/\*[^\n]*SPDX[^\n]*(?<!\*/)\n};
        if ($file =~ m{^include/memclient/.*\.h$}) {
            complain($file, undef, 'an installed header needs an #ifndef guard') if $code !~ /^#ifndef\s+(\w+)\s*\n#define\s+\1\b/m;
            complain($file, undef, 'an installed header needs extern "C"') if $code !~ /extern "C(?:\+\+)?"/;
        } elsif ($file =~ /\.(h|hpp)$/) {
            complain($file, undef, 'no #pragma once') if $code !~ /^#pragma once$/m;
            complain($file, undef, 'the essay comes first, then #pragma once')
                if $text =~ m{\A/\*[^\n]*SPDX[^\n]*\*/\n#pragma once};
        }
        my $lines = ($text =~ tr/\n//);
        warn_about($file, "$lines lines; a sign that a family wants its own file") if $lines > LONG_FILE;
    }

    if ($is_am) {
        while ($text =~ /^(\w+_(CFLAGS|LDFLAGS|CPPFLAGS))\s*=\s*((?:[^\n\\]|\\\n|\\.)*)/mg) {
            my ($name, $kind, $value, $at) = ($1, $2, $3, $-[0]);
            next if $name =~ /^(AM|MEMORYD)_/ || $value =~ /\$\(AM_$kind\)/;
            complain($file, line_at($text, $at), "$name leaves out \$(AM_$kind), which carry the sanitizers");
        }
    }
}
finish();
