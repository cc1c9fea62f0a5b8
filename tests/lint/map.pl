#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# ARCHITECTURE.md and CONTRIBUTING.md are true: every file and folder that they name exists, and every `file: function`
# is a function of that file. Every invariant that the tree cites is defined, and every folder of the daemon and the
# client has its line.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__);
use Lint;

my @maps = ('ARCHITECTURE.md', 'CONTRIBUTING.md');
my %text = map { $_ => slurp($_) } @maps;
my @files = files();

my %defined;
$defined{$1}++ while $text{'ARCHITECTURE.md'} =~ /^\* \*\*I(\d+) /mg;
for my $n (sort { $a <=> $b } keys %defined) {
    complain('ARCHITECTURE.md', undef, "I$n is defined more than once") if $defined{$n} > 1;
}
for my $file (grep { m{^(daemon|client|proto|include|tests)/.*\.(c|h|sh|pl|md)$} && !m{^tests/lint/} } @files) {
    my $source = slurp($file);
    while ($source =~ /(?<![A-Za-z0-9])I(\d)(?![0-9A-Za-z])/g) {
        complain($file, line_at($source, $-[0]), "I$1 is defined nowhere in ARCHITECTURE.md") if !$defined{$1};
    }
}

my %folders;
for (@files) {
    $folders{$1} = 1 if m{^((?:daemon|client)/[^/]+)/[^/]+\.c$};
}
for my $folder (sort keys %folders) {
    complain('ARCHITECTURE.md', undef, "does not name $folder") if index($text{'ARCHITECTURE.md'}, "`$folder`") < 0;
}

# lines are broken between a file and its function, too; figures are not looked at, and their fences are no quotes
for my $map (@maps) {
    $text{$map} =~ s/^```.*?^```$/"\n" x ($& =~ tr{\n}{})/gmse;
    while ($text{$map} =~ /`([^`]+)`/g) {
        my ($quoted, $line) = ($1, line_at($text{$map}, $-[0]));
        my ($path, $function) = $quoted =~ m{^([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+)(?::\s+(\w+))?$} or next;
        if (!-e root() . "/$path") {
            complain($map, $line, "there is no $path");
        } elsif (defined $function && code_of(slurp($path)) !~ /^[a-z][^;=\n]*\b\Q$function\E\(/m) {
            complain($map, $line, "$path has no function $function()");
        }
    }
}
finish();
