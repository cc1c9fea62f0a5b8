#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The tree is formatted as .clang-format says. Versions of clang-format differ in what they make of the same file, so
# only version 14 counts; without it the check is skipped. `clang-format -i FILE` mends what it complains about.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__);
use Lint;

use constant AT_ONCE => 50;

my ($program) = grep { (`$_ --version 2>/dev/null` // '') =~ /version 14\./ } 'clang-format-14', 'clang-format';
if (!$program) {
    print "no clang-format of version 14\n";
    exit 77;
}
my @files = grep { /\.(c|h|cpp|hpp)$/ && !m{/corpus/} && !-l root() . "/$_" } files();
chdir root() or die root() . ": $!";
-e '.clang-format' or die "no .clang-format in " . root() . "\n";
while (my @some = splice @files, 0, AT_ONCE) {
    open(my $output, '-|', "$program --style=file --dry-run @some 2>&1") or die "$program: $!";
    my %seen;
    while (<$output>) {
        complain($1, $2, "$program would format this otherwise")
            if /^(\S+?):(\d+):\d+: warning: .*clang-format-violations/ && !$seen{$1}++;
    }
    close $output or $! == 0 or die "$program: $!";
    complain('.clang-format', undef, "$program fails") if $?;
}
finish();
