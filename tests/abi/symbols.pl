#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Three lists that must be one: the functions that the installed headers declare, the names in the version script,
# and what the built library exports. Each declaration has its documentation right above it, and the version in the
# header is the package's.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__) . '/../lint';
use Lint;

my $header = 'include/memclient/memclient.h';
my $script = 'client/libmemclient.sym';
my $library = ($ENV{builddir} // '.') . '/client/.libs/libmemclient.so';

my $text = slurp($header);
my %declared;
my $code = code_of($text, 0);
while ($code =~ /^MEMCLIENT_API\b[^;{]*?\b(\w+)\s*\([^;]*;/mg) {
    my ($name, $at) = ($1, $-[0]);
    $declared{$name} = 1;
    # a family may share one comment: then its members follow each other without a blank line
    (my $before = substr($text, 0, $at)) =~ s/(?:^MEMCLIENT_API\b[^;]*;[^\n]*\n)+\z//m;
    complain($header, line_at($code, $at), "$name has no comment right above it") if $before !~ m{\*/\n\z};
}
complain($header, undef, 'declares nothing with MEMCLIENT_API') if !%declared;

my %scripted;
my $nodes = slurp($script) =~ s{/\*.*?\*/|#[^\n]*}{}gsr;
while ($nodes =~ /(\w+)\s*\{(.*?)\}/gs) {
    my $body = $2;
    $scripted{$_} = 1 for map { /^\s*(\w+)\s*$/ ? $1 : () } split /;|\w+:/, $body;
    complain($script, undef, "a pattern exports what nobody declared: $_")
        for grep { $_ ne '*' } ($body =~ /([\w?\[\]]*\*[\w*]*)/g);
}
complain($script, undef, 'exports everything: "local: *" is missing') if $nodes !~ /local:\s*\*\s*;/;

my %exported;
for (`nm -D --defined-only '$library' 2>/dev/null`) {
    my ($type, $name) = /^[0-9a-f]+ (\w) (\S+)$/ or next;
    next if $type eq 'A';
    complain($library, undef, "$name has no version") if $name !~ s/@@?.*//;
    $exported{$name} = 1;
}
complain($library, undef, 'exports nothing, or is not built') if !%exported;

for my $name (sort keys %{ { %declared, %scripted, %exported } }) {
    complain($header, undef, "$name is not declared") if !$declared{$name};
    complain($script, undef, "$name is not listed") if !$scripted{$name};
    complain($library, undef, "$name is not exported") if !$exported{$name};
}

my ($version) = slurp('configure.ac') =~ /AC_INIT\(\[memoryd\], \[([\d.]+)\]/;
my $in_header = join '.', map { $text =~ /^#define MEMCLIENT_VERSION_$_ (\d+)$/m ? $1 : '?' } qw(MAJOR MINOR PATCH);
complain($header, undef, "says version $in_header, configure.ac says $version") if $in_header ne $version;
finish();
