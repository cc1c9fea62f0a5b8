#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# A release says the same everywhere: NEWS.md, configure.ac and debian/changelog have one version, and the first and the
# last of them one date. And NEWS.md names what a program's author looks for: each public name of the version before
# (names-0.1) that is gone, and each function of a library of ours that is new. A family may be named as memclient_heap_...
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__);
use Lint;

my $news = slurp('NEWS.md');
my ($heading) = $news =~ /^## (.*)$/m;
my ($version, $date) = ($heading // '') =~ /^(\S+) \((\d{4}-\d\d-\d\d)\)$/;
complain('NEWS.md', undef, 'its first heading is no version with a date, like "## 0.2.0 (2026-11-28)"') if !$date;

my ($configured) = slurp('configure.ac') =~ /^AC_INIT\(\[\w+\],\s*\[([^\]]+)\]/m;
my ($packaged, $day) = slurp('debian/changelog') =~ /\A\w+ \(([^)]+)\).*?\n -- [^\n]*>  \w+, (\d+ \w+ \d+)/s;
my %months = map { (qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec))[$_ - 1] => $_ } 1 .. 12;
$day = sprintf('%04d-%02d-%02d', $3, $months{$2} // 0, $1) if ($day // '') =~ /^(\d+) (\w+) (\d+)$/;
complain('configure.ac', undef, 'has version ' . ($configured // 'none') . ", and NEWS.md $version")
    if defined $version && ($configured // '') ne $version;
complain('debian/changelog', undef, 'has ' . ($packaged // 'no version') . ' of ' . ($day // 'no day') . ", and NEWS.md $version of $date")
    if defined $date && (($packaged // '') ne $version || ($day // '') ne $date);

# the newest version's part, and the families in it
my ($part) = $news =~ /^(## .*?)(?=^## |\z)/ms;
$part //= '';
my @families = $part =~ /\b([A-Za-z]\w*_)\.\.\./g;

my @libraries = qw(client/libmemclient.sym client/libmemclient-nbla.sym client/libmemclient-opencl.sym);
my $public = join("\n", map { slurp($_) } @libraries, grep { m{^include/memclient/[^/]+\.h$} } files());
my %had;
for my $name (split ' ', slurp('tests/lint/names-0.1')) {
    $had{$name} = 1;
    complain('NEWS.md', undef, "does not say what became of $name")
        if $public !~ /\b\Q$name\E\b/ && $part !~ /\b\Q$name\E\b/;
}
for my $file (@libraries) {
    my $symbols = slurp($file);
    while ($symbols =~ /^ +(\w+);$/mg) {
        my $name = $1;
        next if $had{$name} || $part =~ /\b\Q$name\E\b/ || grep { index($name, $_) == 0 } @families;
        complain('NEWS.md', undef, "does not name $name, which is new in $file");
    }
}

finish();
