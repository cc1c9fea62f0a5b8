# SPDX-License-Identifier: Apache-2.0
#
# What the checks of this folder share: the list of source files, C code without its comments, and complaints
# that make the check fail at its end. A check takes the root of the tree as its argument, $srcdir by default, so
# that selftest.sh can show each one a tree with a mistake in it.
package Lint;
use strict;
use warnings;
use Exporter 'import';
our @EXPORT = qw(root files slurp code_of complain warn_about finish module_of line_at);

my $root = $ARGV[0] // $ENV{srcdir} // '.';
my $complaints = 0;

sub root { return $root }

# Every file of the tree that we wrote, relative to the root: what git tracks where there is git, else all that is
# there, less what a build leaves behind.
sub files {
    my @all;
    if (-e "$root/.git" && grep { -x "$_/git" } split /:/, $ENV{PATH}) {
        @all = split /\0/, `git -C '$root' ls-files -z --cached --others --exclude-standard 2>/dev/null`;
        @all = grep { -e "$root/$_" } @all;
    }
    if (!@all) {
        my @todo = ('');
        while (defined(my $dir = shift @todo)) {
            opendir(my $handle, "$root/$dir") or die "$root/$dir: $!";
            for my $name (sort readdir $handle) {
                next if $name =~ /^\.\.?$|^\.(git|deps|libs)$|^(autom4te\.cache|build-aux|_build|_inst)$/;
                my $path = $dir eq '' ? $name : "$dir/$name";
                if (-d "$root/$path") { push @todo, $path }
                else { push @all, $path }
            }
        }
        @all = grep { !/\.(o|lo|la|so|log|trs|pb-c\.[ch])$|^(configure|aclocal\.m4|config\.(h.*|log|status)|Makefile(\.in)?|libtool|stamp-h1|m4\/(lib|lt).*)$/ } @all;
    }
    return sort @all;
}

sub slurp {
    my ($path) = @_;
    open(my $handle, '<', "$root/$path") or die "$root/$path: $!";
    local $/;
    return scalar(<$handle>) // '';
}

# C text with comments made blank, and the contents of strings too unless asked to keep them. Lines stay lines.
sub code_of {
    my ($text, $keep_strings) = @_;
    my $blank = sub { (my $s = $_[0]) =~ s/[^\n]/ /g; $s };
    $text =~ s{(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')}{
        defined $1 ? $blank->($1)
        : $keep_strings || substr($2, 0, 1) eq "'" ? $2
        : '"' . $blank->(substr($2, 1, -1)) . '"'}gse;
    return $text;
}

sub line_at {
    my ($text, $offset) = @_;
    return 1 + (substr($text, 0, $offset) =~ tr/\n//);
}

# daemon/va for daemon/va/arena.c: the deepest folder above the file whose local.am has a "Uses:" line.
# include/ has two modules.
sub module_of {
    my ($path) = @_;
    return "include/$1" if $path =~ m{^include/(base|memclient)/};
    while ($path =~ s{/[^/]*$}{}) {
        return $path if -e "$root/$path/local.am" && slurp("$path/local.am") =~ /^# Uses:/m;
    }
    return '';
}

sub complain {
    my ($path, $line, $text) = @_;
    print $path, (defined $line ? ":$line" : ''), ": $text\n";
    $complaints++;
}

sub warn_about {
    my ($path, $text) = @_;
    print "$path: (only a warning) $text\n";
}

sub finish {
    print $complaints ? "$complaints mistakes\n" : "no mistakes\n";
    exit($complaints ? 1 : 0);
}

1;
