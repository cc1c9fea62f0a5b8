#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Is there a test for everything that HSA's documents and our headers promise? COVERAGE says which one it is, line by
# line. This fails
#
#   * where a document lists something (the lines with "=") or a header declares it (each function's parameters, the
#     statuses in its comment, each enumerator of what can be asked), and COVERAGE has no line for it;
#   * where a line names no test, or one that its file does not have or never runs;
#   * where that test, its comment included, does not name the function and the parameter, status or attribute.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__) . '/../../lint';
use Lint;

my $folder = 'tests/unit/hsa';
my @headers = map { "include/memclient/hsa/$_.h" } qw(hsa hsa_ext_amd hsa_ext_memoryd);

# They work without hsa_init(), or say so in another way.
my %without_init = map { $_ => 1 } qw(hsa_init hsa_status_string memclient_hsa_set_profile);
# They tell the truth: this is not possible here.
my %never_succeed = map { $_ => 1 } qw(hsa_isa_get_info_alt hsa_amd_memory_pool_can_migrate hsa_amd_memory_migrate);

# function => { what => 1 }, from the headers
sub declared {
    my (%functions, %attributes);
    for my $header (@headers) {
        my $text = slurp($header);
        while ($text =~ m{((?:/\*(?:(?!\*/).)*\*/\n)?)HSA_API (\w+) (\w+)\(((?:[^()]|\([^()]*\))*?)\);}sg) {
            my ($comment, $type, $name, $parameters) = ($1, $2, $3, $4);
            my %what;
            $parameters =~ s/\(\*(\w+)\)\([^()]*\)/$1/g;
            /(\w+)\s*(?:\[\])?$/ && ($what{$1} = 1) for grep { $_ ne 'void' } split /\s*,\s*/s, $parameters;
            if ($type eq 'hsa_status_t') {
                $what{"HSA_STATUS_ERROR_$1"} = 1 while $comment =~ /^ \*     ([A-Z][A-Z_]{4,})(?= |$)/mg;
                $what{HSA_STATUS_SUCCESS} = 1 if !$never_succeed{$name};
                $what{HSA_STATUS_ERROR_NOT_INITIALIZED} = 1 if !$without_init{$name};
            }
            $functions{$name} = \%what;
        }
        while ($text =~ /^typedef enum[^{;]*\{([^}]*)\} \w*_info_t;/mg) {
            my $body = code_of($1);
            $attributes{$1} = 1 while $body =~ /\b(HSA_\w+)\s*=/g;
        }
    }
    return (\%functions, \%attributes);
}

my %tests; # file => { test => its text }
sub test_of {
    my ($file, $name) = @_;
    my $path = "$folder/$file.c";
    if (!$tests{$path}) {
        return "there is no $path" if !-e root() . "/$path";
        my $text = slurp($path);
        my $table = join '', $text =~ /struct CMUnitTest \w+\[\] = \{(.*?)\};/sg;
        $tests{$path} = {};
        while ($text =~ m{((?:/\*(?:(?!\*/).)*\*/\n)?static void (\w+)\(void \*\*state\)\n\{.*?\n\})}sg) {
            my ($all, $test) = ($1, $2);
            $tests{$path}{$test} = $all if $table =~ /\(\Q$test\E[,)]/;
        }
    }
    return undef if $tests{$path}{$name};
    return "$path does not run a test $name";
}

my %lines; # function => { what => line }
my @wanted; # [line, function, what], of the documents
my $n = 0;
for my $line (split /\n/, slurp("$folder/COVERAGE")) {
    $n++;
    next if $line =~ /^#|^$/;
    my ($document, $function, $what, $test) = split /\s*\|\s*/, $line;
    if (!defined $what || $what !~ /^(= )?\w/ || $document !~ /^(core|vmem|header)$/) {
        complain("$folder/COVERAGE", $n, 'a line is: document | function | what | test');
        next;
    }
    if ($what =~ s/^= //) {
        push @wanted, [$n, $function, $_] for map { /^(\d+) sentences?$/ ? 1 .. $1 : $_ } split /\s*,\s*/, $what;
        next;
    }
    my ($thing) = $what =~ /^(\w+)/;
    complain("$folder/COVERAGE", $n, "twice: $function | $thing") if $lines{$function}{$thing};
    $lines{$function}{$thing} = $n;
    if (!defined $test || $test !~ /^([\w-]+):(\w+)$/) {
        complain("$folder/COVERAGE", $n, "names no test: $function | $thing");
        next;
    }
    my ($file, $name) = ($1, $2);
    my $problem = test_of($file, $name);
    if (defined $problem) {
        complain("$folder/COVERAGE", $n, $problem);
        next;
    }
    my $text = $tests{"$folder/$file.c"}{$name};
    for my $word ($function, $thing =~ /^\d/ ? () : $thing) {
        complain("$folder/COVERAGE", $n, "$file:$name does not name $word") if $text !~ /\b\Q$word\E\b/;
    }
}

for my $row (@wanted) {
    my ($at, $function, $what) = @$row;
    complain("$folder/COVERAGE", $at, "the document has it, and there is no line: $function | $what")
        if !$lines{$function}{$what};
}

my ($functions, $attributes) = declared();
for my $function (sort keys %$functions) {
    for my $what (sort keys %{$functions->{$function}}) {
        complain("$folder/COVERAGE", undef, "the header has it, and there is no line: $function | $what")
            if !$lines{$function}{$what};
    }
    complain("$folder/COVERAGE", undef, "the header has it, and there is no line: $function")
        if !$lines{$function};
}
my %covered = map { $_ => 1 } map { keys %$_ } values %lines;
for my $attribute (sort keys %$attributes) {
    complain("$folder/COVERAGE", undef, "the header has it, and there is no line: $attribute") if !$covered{$attribute};
}
complain($folder, undef, 'the headers have no functions') if keys %$functions < 50;
finish();
