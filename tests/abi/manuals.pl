#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The manuals as a reader has them, rendered: what is marked as bold or underlined has no mark left, no name has lost an
# underscore by it, and examples are what their source says. memclient(3) names all functions that the library exports
# and all kinds of events, and no others.
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
sub rendered {
    my ($page) = @_;
    skip("the manuals were not made: $page is missing") if !-e "$built/$page";
    my $text = `groff -t -man -Tutf8 -P-cbou -rLL=400n -rHY=0 '$built/$page'`;
    complain($page, undef, 'groff fails') if $? != 0 || $text eq '';
    return $text;
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
    # what configure puts in for @folder@ may have underscores of its own
    my $filled = join '|', map { join '\S*', map { quotemeta } split /\@\w+\@/, $_, -1 } grep { /\@\w+\@/ } split ' ', $prose;
    for my $word (split ' ', $shown) {
        next if index($prose, $word) >= 0 || $filled ne '' && $word =~ /^($filled)$/;
        complain($source, undef, "a mark of scdoc's is left in $word") if $word =~ /__|\\|\*|\b_|_(?!\w)/;
    }
}

# ---- memclient(3) -----------------------------------------------------------------------------------------------

my $memclient = rendered('client/api/memclient.3');
sub section {
    my ($name) = @_;
    my ($text) = $memclient =~ /^$name\n(.*?)^(?=\S)/ms;
    complain('client/api/memclient.3.scd', undef, "has no section $name") if !defined $text;
    return $text // '';
}

sub compare {
    my ($what, $named, $are) = @_;
    my %named = map { $_ => 1 } @$named;
    my %are = map { $_ => 1 } @$are;
    complain('client/api/memclient.3.scd', undef, "does not name the $what $_") for grep { !$named{$_} } sort keys %are;
    complain('client/api/memclient.3.scd', undef, "there is no $what $_") for grep { !$are{$_} } sort keys %named;
    complain('include/memclient/memclient.h', undef, "no ${what}s found") if !%are;
}

my $header = code_of(slurp('include/memclient/memclient.h'), 0);
my ($events) = $header =~ /enum memclient_event_kind \{(.*?)\}/s;
compare('function', [section('FUNCTIONS') =~ /\b(memclient_\w+)\(\)/g],
        [$header =~ /^MEMCLIENT_API\b[^;{]*?\b(\w+)\s*\(/mg]);
compare('event', [section('EVENTS') =~ /\b(MEMCLIENT_EVENT_[A-Z]+)\b/g], [($events // '') =~ /\b(MEMCLIENT_EVENT_[A-Z]+)\b/g]);
finish();
