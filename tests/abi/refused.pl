#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# memclient-hsa(3) lists by name what the library declares and refuses. The lists, the functions that
# client/hsa/refused.c defines, and the version script are one: a function that the manual lists is in the library, and
# no function is refused that the manual does not list.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__) . '/../lint';
use Lint;

my $manual = 'client/hsa/memclient-hsa.3.scd';
my $script = 'client/libmemclient-hsa.sym';
my $source = 'client/hsa/refused.c';

# hsa_amd_register_system_event_handler() is with them, and succeeds: the manual says so.
my %succeeds = map { $_ => 1 } qw(hsa_amd_register_system_event_handler);

my ($section) = slurp($manual) =~ /^# WHAT IS REFUSED\n(.*?)^# /ms;
my (%listed, %defined);
if (!defined $section) {
    complain($manual, undef, 'has no section WHAT IS REFUSED');
    finish();
}
# the lists are paragraphs of nothing but names
for my $paragraph (split /\n\n+/, $section) {
    next if $paragraph !~ /\A(?:\*\w+\*\(\)[,.]\s*)+\z/;
    for my $name ($paragraph =~ /\*(\w+)\*\(\)/g) {
        complain($manual, undef, "twice: $name") if $listed{$name}++;
    }
}
my $code = code_of(slurp($source), 0);
$defined{$1} = 1 while $code =~ /^(?!static\b)\w[\w ]*?\**(hsa_\w+)\((?:[^()]|\([^()]*\))*\)\n\{/mg;
$defined{$1} = 1 while $code =~ /^[A-Z][A-Z0-9_]*\((hsa_\w+)[,)]/mg; # a row
complain($source, undef, 'nothing is refused') if keys %defined < 10;

my %exported = map { $_ => 1 } slurp($script) =~ /^\s+(hsa_\w+);/mg;
# no instruction set is found, which is answered elsewhere
my %elsewhere = map { $_ => 1 } qw(hsa_agent_iterate_isas hsa_isa_get_info_alt);
for my $name (sort keys %listed) {
    complain($manual, undef, "$name is listed as refused, and $source does not define it")
        if !$defined{$name} && !$elsewhere{$name};
    complain($manual, undef, "$name is listed as refused, and is not exported") if !$exported{$name};
}
for my $name (sort keys %defined) {
    complain($source, undef, "$name is refused, and the manual does not list it")
        if !$listed{$name} && !$succeeds{$name};
    complain($source, undef, "$name is refused, and is not exported") if !$exported{$name};
}
finish();
