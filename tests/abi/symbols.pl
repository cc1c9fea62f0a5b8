#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Of each library, three lists that must be one: the functions that its installed headers declare, the names in its
# version script, and what the built library exports. Each declaration has its documentation right above it, and the
# version in the header is the package's.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__) . '/../lint';
use Lint;

# Of installed headers and folders/ of them, those that mark anything so.
sub headers_with {
    my ($mark, @paths) = @_;
    my $wanted = join '|', map { quotemeta "include/memclient/$_" } @paths;
    return grep { /^(?:$wanted).*(?<=\.h)\z/ && slurp($_) =~ /^$mark\b/m } files();
}

# library => how its headers mark what it exports, which headers those are, its version script
my %libraries = (
    'libmemclient' => ['MEMCLIENT_API', 'client/libmemclient.sym', map { "include/memclient/$_.h" } qw(heap memclient)],
    'libmemclient-hsa' => ['HSA_API', 'client/libmemclient-hsa.sym',
                           map { "include/memclient/hsa/hsa/$_.h" } qw(hsa hsa_kernels hsa_ext_amd hsa_ext_amd_gpu
                                                                hsa_ext_memoryd)],
    'libmemclient-nbla' => ['MEMCLIENT_NBLA_API', 'client/libmemclient-nbla.sym', 'include/memclient/nbla.h'],
    'libmemclient-umf' => ['UMF_API', 'client/libmemclient-umf.sym', headers_with('UMF_API', 'umf/')],
    'libmemclient-umf-provider' => ['MEMCLIENT_UMF_API', 'client/libmemclient-umf-provider.sym',
                                    'include/memclient/umf_provider.h'],
    'libmemclient-opencl' => ['MEMCLIENT_API', 'client/libmemclient-opencl.sym', 'include/memclient/svm.h'],
);

# The functions that a header declares with the mark.
sub declared {
    my ($header, $mark) = @_;
    my $text = slurp($header);
    my $code = code_of($text, 0);
    my @names;
    while ($code =~ /^$mark\b[^;{]*?\b(\w+)\s*\([^;]*;/mg) {
        my ($name, $at) = ($1, $-[0]);
        push @names, $name;
        # a family may share one comment: then its members follow each other without a blank line
        (my $before = substr($text, 0, $at)) =~ s/(?:^$mark\b[^;]*;[^\n]*\n)+\z//m;
        complain($header, line_at($code, $at), "$name has no comment right above it") if $before !~ m{\*/\n\z};
    }
    complain($header, undef, "declares nothing with $mark") if !@names;
    return @names;
}

sub scripted {
    my ($script) = @_;
    my %names;
    my $nodes = slurp($script) =~ s{/\*.*?\*/|#[^\n]*}{}gsr;
    while ($nodes =~ /([\w.]+)\s*\{(.*?)\}/gs) {
        my $body = $2;
        $names{$_} = 1 for map { /^\s*(\w+)\s*$/ ? $1 : () } split /;|\w+:/, $body;
        complain($script, undef, "a pattern exports what nobody declared: $_")
            for grep { $_ ne '*' } ($body =~ /([\w?\[\]]*\*[\w*]*)/g);
    }
    complain($script, undef, 'exports everything: "local: *" is missing') if $nodes !~ /local:\s*\*\s*;/;
    return keys %names;
}

# What a library has for others than those who include its headers: it is declared elsewhere.
my %of_others = ('libmemclient-opencl' => qr/^cl(?:GetLayerInfo|InitLayer)\z/);

sub exported {
    my ($library) = @_;
    my @names;
    for (`nm -D --defined-only '$library' 2>/dev/null`) {
        my ($type, $name) = /^[0-9a-f]+ (\w) (\S+)$/ or next;
        next if $type eq 'A';
        my $version = $name =~ s/@@?(.*)// ? $1 : '';
        complain($library, undef, "$name has no version") if $version eq '';
        # where programs that are linked with other HSA runtimes look for it
        complain($library, undef, "$name is in $version, not in ROCR_1") if $name =~ /^hsa_/ && $version ne 'ROCR_1';
        # what is UMF's, and what is ours of that
        complain($library, undef, "$name is in $version, not in UMF_0.9")
            if $name =~ /^umf(?!Memoryd)/ && $version ne 'UMF_0.9';
        push @names, $name;
    }
    complain($library, undef, 'exports nothing, or is not built') if !@names;
    return @names;
}

# the same with another name, if this build has it
my $alias = 'libhsa-runtime64';
$libraries{$alias} = $libraries{'libmemclient-hsa'} if -e ($ENV{builddir} // '.') . "/client/$alias.la";

for my $library_name (sort keys %libraries) {
    my ($mark, $script, @headers) = @{ $libraries{$library_name} };
    my $library = ($ENV{builddir} // '.') . "/client/.libs/$library_name.so";
    my %declared = map { $_ => 1 } map { declared($_, $mark) } @headers;
    my %scripted = map { $_ => 1 } scripted($script);
    my %exported = map { $_ => 1 } exported($library);

    $declared{$_} = 1 for grep { $of_others{$library_name} && /$of_others{$library_name}/ } keys %scripted;
    for my $name (sort keys %{ { %declared, %scripted, %exported } }) {
        complain("@headers", undef, "$name is not declared") if !$declared{$name};
        complain($script, undef, "$name is not listed") if !$scripted{$name};
        complain($library, undef, "$name is not exported") if !$exported{$name};
    }
}

my $header = 'include/memclient/memclient.h';
my $text = slurp($header);
my ($version) = slurp('configure.ac') =~ /AC_INIT\(\[memoryd\], \[([\d.]+)\]/;
my $in_header = join '.', map { $text =~ /^#define MEMCLIENT_VERSION_$_ (\d+)$/m ? $1 : '?' } qw(MAJOR MINOR PATCH);
complain($header, undef, "says version $in_header, configure.ac says $version") if $in_header ne $version;
finish();
