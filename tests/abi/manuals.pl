#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The manuals as a reader has them, rendered: what is marked as bold or underlined has no mark left, no name has lost an
# underscore by it, and examples are what their source says. What they name of ours is in a header. memclient(3) names
# all functions that the library exports, and no others, below the page of their family. That page has each in its NAME,
# by which man finds it, declares it as the header does, and names each error that the header's comment of it names.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__) . '/../lint';
use Lint;

sub skip {
    print "@_\n";
    exit 77;
}
skip('groff is missing') if system('command -v groff >/dev/null 2>&1') != 0;
my $built = $ENV{builddir} // '.';

# A name is not broken at the end of a line: lines are long, and words are not hyphenated.
my %rendered;
sub rendered {
    my ($page) = @_;
    return $rendered{$page} if $rendered{$page};
    skip("the manuals were not made: $page is missing") if !-e "$built/$page";
    my $text = `groff -t -man -Tutf8 -P-cbou -rLL=400n -rHY=0 '$built/$page'`;
    complain($page, undef, 'groff fails') if $? != 0 || $text eq '';
    return $rendered{$page} = $text;
}

# What is left of scdoc's marks in a text: * and _ at the edges of words, and \ before what it protects.
sub unmarked {
    my ($text) = @_;
    $text =~ s/\\(.)/sprintf '<%d>', ord $1/ge;
    $text =~ s/\*//g;
    $text =~ s/(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])//g;
    $text =~ s/<(\d+)>/chr $1/ge;
    return $text;
}

sub spaced {
    my ($line) = @_;
    return $line =~ s/\s+/ /gr =~ s/^ | $//gr;
}

# each name that a header has
my %known = map { $_ => 1 } map { slurp($_) =~ /\b(\w+)\b/g } grep { m{^include/memclient/} } files();

for my $source (grep { /\.scd$/ } files()) {
    my $page = rendered($source =~ s/\.scd$//r);
    my %lines = map { spaced($_) => 1 } split /\n/, $page;
    my ($n, $is_example, $prose, %examples) = (0, 0, '');

    for my $line (split /\n/, slurp($source)) {
        $n++;
        if ($line =~ /^```/) {
            $is_example = !$is_example;
        } elsif ($is_example) {
            complain($source, $n, 'a \ in an example is written \\\\') if $line =~ s/\\\\//gr =~ /\\/;
            my $there = spaced($line =~ s/\\\\/\\/gr);
            $examples{$there} = 1;
            complain($source, $n, "the page has this line otherwise: $there") if !$lines{$there} && $there ne '';
        } elsif ($line !~ /^;/) {
            $prose .= unmarked($line) . "\n";
        }
    }
    my $shown = join "\n", grep { !/^ {8}/ || !$examples{spaced($_)} } split /\n/, $page;
    for my $name ($prose =~ /\b[A-Za-z]\w*_\w*[A-Za-z0-9]\b/g) {
        complain($source, undef, "the page does not have $name") if $shown !~ /\b\Q$name\E\b/;
    }
    for my $name ($prose =~ /\b(MEMCLIENT_\w*[A-Z0-9]|memclient_\w*[a-z0-9](?=\(\)))/g) {
        complain($source, undef, "no header has $name") if !$known{$name};
    }
    # what configure puts in for @folder@ may have underscores of its own
    my $filled = join '|', map { join '\S*', map { quotemeta } split /\@\w+\@/, $_, -1 } grep { /\@\w+\@/ } split ' ', $prose;
    for my $word (split ' ', $shown) {
        next if index($prose, $word) >= 0 || $filled ne '' && $word =~ /^($filled)$/;
        complain($source, undef, "a mark of scdoc's is left in $word") if $word =~ /__|\\|\*|\b_|_(?!\w)/;
    }
}

# ---- memclient(3) and its families -------------------------------------------------------------------------------

sub section {
    my ($page, $name) = @_;
    my ($text) = rendered($page) =~ /^$name\n(.*?)^(?=\S)/ms;
    complain("$page.scd", undef, "has no section $name") if !defined $text;
    return $text // '';
}

sub compare {
    my ($page, $what, $named, $are) = @_;
    my %named = map { $_ => 1 } @$named;
    my %are = map { $_ => 1 } @$are;
    complain("$page.scd", undef, "does not name the $what $_") for grep { !$named{$_} } sort keys %are;
    complain("$page.scd", undef, "there is no $what $_") for grep { !$are{$_} } sort keys %named;
    complain('include/memclient/memclient.h', undef, "no ${what}s found") if !%are;
}

# A declaration without blanks, and what the comment above it says; several may share one. A header besides memclient.h
# has the page of its name.
my @pages = map { m{^(client/\w+/memclient_\w+\.3)\.scd$} ? $1 : () } files();
my @headers = map { 'include/memclient/' . (basename($_, '.3') =~ s/^memclient_//r) . '.h' } @pages;
my $header = join '', map { slurp($_) } 'include/memclient/memclient.h', grep { -e root() . "/$_" } @headers;
my (%declared, %errors);
while ($header =~ m{^/\*((?:(?!\*/).)*)\*/\n((?:MEMCLIENT_API\b[^;]*;[^\n]*\n)+)}gms) {
    my ($comment, $group) = ($1, $2);
    while ($group =~ /^MEMCLIENT_API\s+([^;]*?\b(memclient_\w+)\s*\([^;]*);/gm) {
        my ($text, $name) = ($1, $2);
        $declared{$name} = $text =~ s/\s+//gr;
        $errors{$name} = [$comment =~ /-(E[A-Z0-9]{3,})\b/g];
    }
}
compare('client/api/memclient.3', 'function', [section('client/api/memclient.3', 'FUNCTIONS') =~ /\b(memclient_\w+)\(\)/g], [keys %declared]);

my %page_of;
for my $page (@pages) {
    my ($names) = section($page, 'NAME') =~ /^\s*(.*?)\s-\s/s;
    my @named = split /,\s*/, $names // '';
    my ($synopsis, $whole) = (section($page, 'SYNOPSIS') =~ s/\s+//gr, rendered($page));

    for my $name (@named) {
        complain("$page.scd", undef, "$name is also in $page_of{$name}") if $page_of{$name};
        $page_of{$name} = $page;
        next if !$declared{$name};
        complain("$page.scd", undef, "$name is not declared as in the header")
            if index($synopsis, "$declared{$name};") < 0;
        for my $error (@{$errors{$name}}) {
            complain("$page.scd", undef, "does not name $error of $name") if $whole !~ /\b$error\b/;
        }
    }
    section($page, $_) for qw(ERRORS THREADS FORK EXAMPLE);
    complain('client/api/memclient.3.scd', undef, "$page is not among the pages of FUNCTIONS")
        if section('client/api/memclient.3', 'FUNCTIONS') !~ /^\s*\Q@{[basename($page, '.3')]}\E\(3\)/m;
}
compare('client/*/memclient_*.3', 'function', [keys %page_of], [keys %declared]);

my ($events) = code_of($header, 0) =~ /enum memclient_event_kind \{(.*?)\}/s;
compare('client/api/memclient_event.3', 'event', [section('client/api/memclient_event.3', 'DESCRIPTION') =~ /\b(MEMCLIENT_EVENT_[A-Z]+)\b/g],
        [($events // '') =~ /\b(MEMCLIENT_EVENT_[A-Z]+)\b/g]);
finish();
