#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Is there a test for everything that a facade's document and our headers promise? tests/unit/FACADE/COVERAGE says which
# one it is, line by line. It begins with settings:
#
#   documents = NAME, ...    what the first column may say, beside "header"
#   headers = PATTERN, ...   the files that declare, below include/memclient
#   returns = TYPE           what most functions return
#   status = PREFIX          how its enumerators begin; comments leave that out, and ERROR_
#   everywhere = STATUS, ... every such function may return these
#   types = PATTERN          types and macros that need lines, by their names; all if there is no such setting
#
# and goes on with lines of four columns:
#
#   document | name | what | test file: test
#
# The name is a function's, a type's or a macro's. What: a parameter, a status, an enumerator or a field, or the number
# of a sentence that demands something; and behind a colon its gist. "= a, b, 3 sentences" is all that the document
# lists under that name; "- STATUS: reason" says that this one cannot be. This fails
#
#   * where a document lists something, or a header declares it (functions with their parameters and the statuses that
#     their comments name, enumerators, fields, types, macros), and there is no line for it;
#   * where a line is about what neither has;
#   * where a line names no test, or one that its file does not have, or that is never run;
#   * where that test, its comment included, does not name what the line is about (assert_success names SUCCESS).
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__) . '/../lint';
use Lint;

my $comment = qr{/\*(?:(?!\*/).)*\*/}s;

# ---- what headers declare ------------------------------------------------------------------------------------------

# "size_t size, void **ptr, umf_result_t (*call)(int)" => size, ptr, call; likewise with semicolons.
sub names_in {
    my ($list) = @_;
    $list =~ s/\b(?:struct|union)\s*\w*\s*\{|\}/;/g;
    $list =~ s/\(\*(\w+)\)\s*\([^()]*\)/ $1/g;
    $list =~ s/:\s*\d+//g;
    return map { /^\s*void\s*$/ ? () : /(\w+)\s*(?:\[[^\]]*\]\s*)*$/ } split /[,;]/, $list;
}

# { name => { what => 1 } } of the functions, types and macros that need lines, and { enumerator => 1 } of all enums.
sub declared {
    my ($set) = @_;
    my (%declared, %enumerators, %short);
    my $text = join "\n", map { slurp($_) } @{$set->{files}};
    my $code = code_of($text);
    my $add = sub {
        my ($name, @what) = @_;
        return if $name !~ /$set->{types}/;
        $declared{$name} //= {};
        $declared{$name}{$_} = 1 for @what;
    };

    while ($code =~ /^#define (\w+)(?:\(([^()]*)\))?[ \t]+\S/mg) {
        my ($name, $parameters) = ($1, $2 // '');
        $add->($name, names_in($parameters)) if $name !~ /_API$|_H$/;
    }
    $code =~ s/^#(?:[^\n]*\\\n)*[^\n]*//mg;
    while ($code =~ /\benum\s*(\w*)\s*\{([^}]*)\}\s*(\w*)\s*;/g) {
        my ($name, $body) = ($3 || $1, $2);
        my @all = $body =~ /(?:^|,)\s*(\w+)/g;
        $enumerators{$_} = 1 for @all;
        $add->($name, @all);
    }
    while ($code =~ /^(?:typedef )?struct\s*(\w*)\s*(\{(?:[^{}]|(?2))*\})\s*(\w*)\s*;/mg) {
        my ($name, $body) = ($3 || $1, $2);
        $add->($name, names_in(substr $body, 1, -1));
    }
    $add->($1) while $code =~ /^typedef [^{};]*?(\w+);/mg;

    /^\Q$set->{status}\E(?:ERROR_)?(\w+)$/ and $short{$1} = $_ for keys %enumerators;
    my $function = qr{(?:\w+_API|static\ inline)\ ([\w\s*]*?)(\w+)\(((?:[^()]|\([^()]*\))*?)\)(?:;|\n\{)};
    my $said = '';
    while ($text =~ /(?:($comment)\n|\G\n)?$function/g) {
        my ($type, $name, $parameters) = ($2, $3, $4);
        $said = $1 // '' if substr($&, 0, 1) ne "\n"; # or the one above is about this one as well
        my @what = (names_in($parameters), map { $short{$_} // () } $said =~ /\b([A-Z_]+)\b/g);
        push @what, $short{SUCCESS}, @{$set->{everywhere}} if $type =~ /^\Q$set->{returns}\E\s*$/;
        $declared{$name} = { map { $_ => 1 } @what };
    }
    return (\%declared, \%enumerators);
}

# ---- the tests -----------------------------------------------------------------------------------------------------

my %tests; # folder/file => { test => its text }

# The text of a test that is run, with its comment and the tables that it uses; or undef and what is wrong.
sub test_of {
    my ($folder, $file, $name) = @_;
    my $path = "$folder/$file";
    if (!$tests{$path}) {
        return (undef, "there is no $path.c") if !-e root() . "/$path.c";
        return (undef, "nothing builds $path") if slurp("$folder/local.am") !~ m{\Q$path\E(?![\w.-])};
        my $text = slurp("$path.c");
        my $table = join '', $text =~ /(?:struct CMUnitTest|CMUnitTestFunction) \w+\[\w*\] = \{(.*?)\};/sg;
        my %data = $text =~ /^static const [^;{]*?(\w+)\[\] = (\{.*?\n\});/msg;
        $tests{$path} = {};
        while ($text =~ m{((?:$comment\n)?static void (\w+)\(void \*\*state\)\n\{.*?\n\})}sg) {
            my ($all, $test) = ($1, $2);
            $all .= join '', map { $data{$_} // () } $all =~ /\b\w+\b/g;
            $tests{$path}{$test} = $all if $table =~ /[(\s]\Q$test\E[,)]/;
        }
    }
    return $tests{$path}{$name} // (undef, "$path.c does not run a test $name");
}

# ---- COVERAGE ------------------------------------------------------------------------------------------------------

sub settings {
    my ($path, $text) = @_;
    my %set = (documents => '', headers => '', returns => '', status => '', everywhere => '', types => '.');

    while ($text =~ /^(\w+) = (.*)$/mg) {
        complain($path, undef, "there is no such setting: $1") if !exists $set{$1};
        $set{$1} = $2;
    }
    $set{$_} = [split /,\s*/, $set{$_}] for qw(documents headers everywhere);
    for my $pattern (@{$set{headers}}) {
        my @found = grep { -e } glob root() . "/include/memclient/$pattern";
        complain($path, undef, "there are no headers $pattern") if !@found;
        push @{$set{files}}, map { substr $_, length(root()) + 1 } @found;
    }
    return \%set;
}

# Of the lines: { name => { what => number of the line } } of what has a test, what a document lists, what cannot be.
sub lines {
    my ($path, $text, $set) = @_;
    my $documents = join '|', 'header', @{$set->{documents}};
    my (%tested, %listed, %cannot);
    my $n = 0;

    for my $line (split /\n/, $text) {
        $n++;
        next if $line =~ /^#|^$|^\w+ = /;
        my ($document, $name, $what, $test) = split /\s*\|\s*/, $line;
        if (!defined $what || $what !~ /^([=-] )?\w/ || $document !~ /^(?:$documents)$/) {
            complain($path, $n, 'a line is: document | name | what | test');
        } elsif ($what =~ s/^= //) {
            $listed{$name}{$_} = $n for map { /^(\d+) sentences?$/ ? 1 .. $1 : $_ } split /\s*,\s*/, $what;
        } elsif ($what =~ /^- (\w+): \w/) {
            $cannot{$name}{$1} = $n;
        } else {
            my ($thing) = $what =~ /^(\w+)/;
            complain($path, $n, "twice: $name | $thing") if $tested{$name}{$thing};
            $tested{$name}{$thing} = $n;
            check_test($path, $n, $set, $name, $thing, $test // '');
        }
    }
    return (\%tested, \%listed, \%cannot);
}

sub check_test {
    my ($path, $n, $set, $name, $thing, $test) = @_;
    if ($test !~ /^([\w-]+):(\w+)$/) {
        complain($path, $n, "names no test: $name | $thing");
        return;
    }
    my ($text, $problem) = test_of(dirname($path), $1, $2);
    if (!defined $text) {
        complain($path, $n, $problem);
        return;
    }
    for my $word ($name, $thing =~ /^\d/ ? () : $thing) {
        my $short = $word =~ /^\Q$set->{status}\E(?:ERROR_)?(\w+)$/ ? $1 : $word;
        $short .= '|assert_success' if $short eq 'SUCCESS';
        complain($path, $n, "$test does not name $word") if $text !~ /\b(?:\Q$word\E|$short)\b/;
    }
}

# Calls a function for each line of { name => { what => line } }, in order.
sub each_of {
    my ($lines, $function) = @_;
    for my $name (sort keys %$lines) {
        $function->($name, $_, $lines->{$name}{$_}) for sort keys %{$lines->{$name}};
    }
}

sub check {
    my ($path) = @_;
    my $text = slurp($path);
    my $set = settings($path, $text);
    my ($declared, $enumerators) = declared($set);
    my ($tested, $listed, $cannot) = lines($path, $text, $set);
    my %asked_about = map { $_ => 1 } map { keys %$_ } values %$tested; # also with the function that takes it

    each_of($listed, sub {
        my ($name, $what, $n) = @_;
        complain($path, $n, "the document has it, and there is no line: $name | $what") if !$tested->{$name}{$what};
    });
    each_of($declared, sub {
        my ($name, $what) = @_;
        return if $tested->{$name}{$what} || $cannot->{$name}{$what};
        return if $enumerators->{$what} && $asked_about{$what} && $what !~ /^\Q$set->{status}\E/;
        complain($path, undef, "the header has it, and there is no line: $name | $what");
    });
    for my $name (sort keys %$declared) {
        complain($path, undef, "the header has it, and there is no line: $name") if !$tested->{$name};
    }
    each_of($tested, sub {
        my ($name, $what, $n) = @_;
        complain($path, $n, "neither a document nor a header has it: $name | $what")
            if $what !~ /^\d/ && !$declared->{$name}{$what} && !$listed->{$name}{$what} && !$enumerators->{$what};
    });
    each_of($cannot, sub {
        my ($name, $what, $n) = @_;
        complain($path, $n, "nobody says that it can be: $name | $what")
            if !$declared->{$name}{$what} || $tested->{$name}{$what};
    });
    complain($path, undef, 'the headers have no functions') if !grep { /^[a-z]\w*[a-z]$/ && !/_t$/ } keys %$declared;
}

my @paths = map { substr $_, length(root()) + 1 } glob root() . '/tests/unit/*/COVERAGE';
complain('tests/unit', undef, 'there is no COVERAGE') if !@paths;
check($_) for @paths;
finish();
