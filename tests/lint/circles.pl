#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# No more than four .c files of a folder call each other in a circle: a reader of one of them would have to know all.
# A file calls another if it names a function that is defined there and not static. client/core and client/api count
# as one folder.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__);
use Lint;

my $most = 4;

my (%text, %folder, %local, %defined_in);
for my $file (grep { m{^(daemon|client|proto)/.*\.c$} } files()) {
    ($folder{$file} = dirname($file)) =~ s{^client/api$}{client/core};
    ($text{$file} = code_of(slurp($file))) =~ s/__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)//g;
    # name(...) in the first column or behind a type, over any number of lines, and then { in the first
    while ($text{$file} =~ /^((?:[A-Za-z_][\w \t*]*?[\s*])?)([A-Za-z_]\w*)\([^;{}]*\)\s*\n\{/mg) {
        my ($before, $name) = ($1, $2);
        $local{$file}{$name} = 1;
        push @{$defined_in{$folder{$file}}{$name}}, $file if $before !~ /\bstatic\b/;
    }
}

my %calls;
for my $file (keys %text) {
    # members of structs may have any name
    my %words = map { $_ => 1 } $text{$file} =~ /(?<![.>\w])([A-Za-z_]\w*)/g;
    for my $name (grep { !$local{$file}{$_} } keys %words) {
        $calls{$file}{$_}{$name} = 1 for @{$defined_in{$folder{$file}}{$name} // []};
    }
}

# Tarjan's: the circles of the graph, which end on the stack together
my (%order, %low, @stack, %on_stack, @circles);
my $visited = 0;
sub visit {
    my ($file) = @_;
    $order{$file} = $low{$file} = $visited++;
    push @stack, $file;
    $on_stack{$file} = 1;
    for my $other (sort keys %{$calls{$file}}) {
        visit($other) if !defined $order{$other};
        $low{$file} = $low{$other} if $on_stack{$other} && $low{$other} < $low{$file};
    }
    return if $low{$file} != $order{$file};
    my @circle;
    do {
        push @circle, pop @stack;
        delete $on_stack{$circle[-1]};
    } while ($circle[-1] ne $file);
    push @circles, [sort @circle];
}
no warnings 'recursion';
for (sort keys %text) { visit($_) if !defined $order{$_} }

for my $circle (@circles) {
    my $folder = $folder{$circle->[0]};
    my $n = @$circle;
    next if $n <= $most;
    complain($folder, undef, "$n files call each other, and no more than $most should");
    my %inside = map { $_ => 1 } @$circle;
    for my $file (@$circle) {
        for my $other (sort grep { $inside{$_} } keys %{$calls{$file}}) {
            print "    $file calls $other: ", join(' ', sort keys %{$calls{$file}{$other}}), "\n";
        }
    }
}
finish();
