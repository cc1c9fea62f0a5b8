#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# What programs that are compiled already rely on: the functions of each library with their types, what is where in the
# structs that they are given, and the values of constants. tests/abi/LIBRARY.abi has it, a fact a line. What is gone or
# is otherwise now breaks those programs, and fails; what was added passes, is told, and is put in by `make abi`. A struct
# that begins with its size may become larger.
#
# The facts are those that libabigail's abidw finds in the debug information of the built library, made into text that a
# reviewer can read. Values of constants are not in there where nothing uses the enum, so the compiler is asked. GCC's
# debug information is what counts: of functions that are one and the same code it has only one, and Clang's has all.
#
# usage: abi.pl [--write]
use strict;
use warnings;
use File::Basename;
use File::Find;
use File::Temp;

my $srcdir = $ENV{srcdir} // '.';
my $built = $ENV{builddir} // '.';
my $cc = $ENV{CC} // 'cc';
my $writes = @ARGV && $ARGV[0] eq '--write';
my $is_gcc = `$cc -v 2>&1` =~ /^gcc version/m;
my $scratch = File::Temp->newdir;

# library => the headers whose constants are its own
my %libraries = (
    'libmemclient' => [grep { $_ ne 'svm.h' && slurp("$srcdir/include/memclient/$_") =~ /^MEMCLIENT_API\b/m }
                       map { basename($_) } glob "$srcdir/include/memclient/*.h"],
    'libmemclient-hsa' => ['hsa/hsa/hsa_ext_memoryd.h'],
    'libmemclient-nbla' => ['nbla.h'],
    'libmemclient-opencl' => ['svm.h', 'cl_svm_memoryd.h'],
    'libmemclient-umf' => ['umf/umf/providers/provider_memoryd.h'],
    'libmemclient-umf-provider' => ['umf_provider.h'],
    'libmemclient-umf-proxy' => [], # what it has are the C library's functions
);
# Types that are ours to keep. Others, like OpenCL's, are only named.
my $ours = qr/^(?:memclient|nbla|umf|hsa|cl_svm)/;

sub skip {
    print "@_\n";
    exit 77;
}

sub slurp {
    my ($path) = @_;
    open(my $handle, '<', $path) or return '';
    local $/;
    return scalar(<$handle>) // '';
}

# ---- abidw's description ---------------------------------------------------------------------------------------------

my (%types, @functions, @symbols);

sub attributes {
    my ($text) = @_;
    my %found = $text =~ /([\w-]+)='([^']*)'/g;
    return \%found;
}

# A tag a line; what belongs to a type or a function is between its tag and the tag that ends it.
sub read_description {
    my ($text) = @_;
    my ($current, $offset);

    %types = @functions = @symbols = ();
    for my $line (split /\n/, $text) {
        my ($tag, $rest) = $line =~ /^\s*<([\w-]+)(.*)>$/ or next;
        my $a = attributes($rest);
        if ($tag =~ /^(class-decl|union-decl|enum-decl|typedef-decl|type-decl|pointer-type-def|qualified-type-def|array-type-def|function-type)$/) {
            $current = {%$a, tag => $tag};
            # a declaration and the definition may both be there
            $types{$a->{id}} = $current if !$types{$a->{id}} || $types{$a->{id}}{'is-declaration-only'};
        } elsif ($tag eq 'function-decl') {
            $current = {%$a, tag => $tag};
            push @functions, $current if $a->{'elf-symbol-id'};
        } elsif ($tag eq 'elf-symbol') {
            push @symbols, $a->{version} ? "$a->{name} of $a->{version}" : $a->{name};
        } elsif ($tag eq 'data-member') {
            $offset = $a->{'layout-offset-in-bits'} // 0; # a union's have none
        } elsif ($tag eq 'var-decl' && defined $offset) {
            push @{$current->{members}}, {%$a, offset => $offset};
            $offset = undef;
        } elsif ($tag eq 'enumerator') {
            push @{$current->{values}}, $a;
        } elsif ($tag eq 'subrange') {
            push @{$current->{lengths}}, $a->{length};
        } elsif ($tag eq 'parameter') {
            push @{$current->{parameters}}, $a;
        } elsif ($tag eq 'return') {
            $current->{return} = $a->{'type-id'};
        }
    }
}

my (%facts, %seen);

sub parameters {
    my ($function) = @_;
    return join(', ', map { $_->{'is-variadic'} ? '...' : name_of($_->{'type-id'}) } @{$function->{parameters} // []}) || 'void';
}

# A type's name, nearly as in C. What it consists of becomes facts.
sub name_of {
    my ($id) = @_;
    my $type = $types{$id // ''} or return 'void';
    my $tag = $type->{tag};

    if ($tag eq 'pointer-type-def') {
        my $to = $types{$type->{'type-id'}};
        return name_of($to->{return}) . ' (*)(' . parameters($to) . ')' if $to && $to->{tag} eq 'function-type';
        return name_of($type->{'type-id'}) =~ s/(?<!\*)\z/ /r . '*';
    }
    if ($tag eq 'qualified-type-def') {
        my $what = join ' ', grep { $type->{$_} } qw(const volatile restrict);
        my $name = name_of($type->{'type-id'});
        return $name =~ /\*$/ ? "$name$what" : "$what $name";
    }
    return name_of($type->{'type-id'}) . join('', map { "[$_]" } @{$type->{lengths} // []}) if $tag eq 'array-type-def';
    return name_of($type->{return}) . ' (' . parameters($type) . ')' if $tag eq 'function-type';
    return $type->{name} if $tag eq 'type-decl';
    if ($tag eq 'typedef-decl') {
        if ($type->{name} =~ $ours && !$seen{$id}++) {
            my $is = name_of($type->{'type-id'});
            $facts{"typedef $type->{name}: $is"} = 1;
        }
        return $type->{name};
    }

    my $word = $tag eq 'union-decl' ? 'union' : $tag eq 'enum-decl' ? 'enum' : 'struct';
    my $is_anonymous = ($type->{'is-anonymous'} // '') eq 'yes';
    return "$word {" . join('; ', members($type)) . '}' if $is_anonymous && $word ne 'enum';
    describe($type, "$word $type->{name}") if ($is_anonymous || $type->{name} =~ $ours) && !$seen{$id}++;
    return "$word $type->{name}";
}

sub members {
    my ($type) = @_;
    return map { $_->{offset} / 8 . ' ' . name_of($_->{'type-id'}) . ($_->{name} && " $_->{name}") } @{$type->{members} // []};
}

# What programs see the inside of. abidw tells private types by the names of files, which others may have as well.
my $headers;
find(sub { $headers .= slurp($_) if /\.h$/ }, "$srcdir/include/memclient");

sub describe {
    my ($type, $name) = @_;

    $facts{"$name: $_->{name} = $_->{value}"} = 1 for @{$type->{values} // []};
    return if $type->{tag} eq 'enum-decl' || $type->{'is-declaration-only'};
    my @members = members($type);
    # what it leads to, programs may see for other reasons
    return if $type->{name} =~ $ours && $headers !~ /\b\Q$name\E\s*\{/;
    $facts{"$name: at $_"} = 1 for @members;
    my $grows = @members && $members[0] eq '0 size_t size' ? ' or more' : '';
    $facts{"$name: " . $type->{'size-in-bits'} / 8 . " bytes$grows"} = 1;
}

# ---- constants -------------------------------------------------------------------------------------------------------

# The enumerators of a header, and its macros that are numbers.
sub constants {
    my ($header) = @_;
    my $text = slurp("$srcdir/include/memclient/$header") =~ s{/\*.*?\*/}{}gsr;
    my @names = map { /\b([A-Z]\w+)\s*(?:=|,|$)/g } $text =~ /\benum\b[^{;()]*\{(.*?)\}/gs;
    push @names, $text =~ /^#define ([A-Z]\w+)[ \t]+(?:\d\w*|UINT64_MAX)[ \t]*$/mg;
    return if !@names;

    open(my $program, '>', "$scratch/constants.c") or die "$scratch: $!";
    print $program "#include <stdio.h>\n#include <memclient/$header>\nint main(void)\n{\n";
    print $program "printf(\"constant $_ = %lld\\n\", (long long)$_);\n" for @names;
    print $program "return 0;\n}\n";
    close $program or die "$scratch: $!";
    my $roots = join ' ', map { "-I'$srcdir/include$_'" } '', '/memclient/hsa', '/memclient/umf';
    system("$cc -w $roots -o $scratch/constants $scratch/constants.c") == 0 or die "constants of $header\n";
    $facts{$_} = 1 for grep { !/ MEMCLIENT_VERSION_/ } split /\n/, `$scratch/constants`;
}

# ---- a library -------------------------------------------------------------------------------------------------------

sub facts_of {
    my ($library) = @_;
    my $options = join ' ', qw(--drop-private-types --exported-interfaces-only --drop-undefined-syms --no-elf-needed
        --no-show-locs --no-corpus-path --no-comp-dir-path --no-parameter-names);
    my $description = `abidw --headers-dir '$srcdir/include/memclient' $options '$built/client/.libs/$library.so'`;

    die "abidw fails on $library.so\n" if $? != 0;
    %facts = %seen = ();
    read_description($description);
    for my $function (@functions) {
        my $is = name_of($function->{return}) . ' (' . parameters($function) . ')';
        $facts{"function $function->{name}: $is"} = 1;
    }
    $facts{"symbol $_"} = 1 for @symbols;
    skip("$library.so has no debug information") if !@functions;
    my ($soname) = $description =~ /^<abi-corpus .*\bsoname='([^']*)'/;
    $facts{"library $soname"} = 1;
    constants($_) for @{$libraries{$library}};
    # numbers by their values
    my %order = map { $_ => s/(\d+)/sprintf '%020d', $1/ger } keys %facts;
    return sort { $order{$a} cmp $order{$b} } keys %facts;
}

# Is it a struct's size, which has only grown?
sub has_grown {
    my ($was, @is) = @_;
    my ($name, $size) = $was =~ /^(.*): (\d+) bytes or more$/ or return 0;
    return grep { /^\Q$name\E: (\d+) bytes or more$/ && $1 > $size } @is;
}

skip('abidw is missing: Debian has it in abigail-tools') if system('command -v abidw >/dev/null 2>&1') != 0;
skip('the descriptions are of x86-64') if `$cc -dumpmachine` !~ /^x86_64.*linux/;
skip('sanitizers change the libraries') if ($ENV{SANITIZERS} // 'no') ne 'no';
die "make abi wants GCC\n" if $writes && !$is_gcc;
my ($broken, $added) = (0, 0);
for my $library (sort keys %libraries) {
    my @is = facts_of($library);
    my $file = "tests/abi/$library.abi";

    if ($writes) {
        open(my $handle, '>', "$srcdir/$file") or die "$srcdir/$file: $!\n";
        print $handle map { "$_\n" } @is;
        close $handle or die "$srcdir/$file: $!\n";
        next;
    }
    my %was = map { $_ => 1 } split /\n/, slurp("$srcdir/$file");
    my %is = map { $_ => 1 } @is;
    for (sort grep { !$is{$_} && !has_grown($_, @is) } keys %was) {
        print "$file: gone or changed: $_\n";
        $broken++;
    }
    for (grep { !$was{$_} && $is_gcc } @is) {
        print "$file: added: $_\n";
        $added++;
    }
}
print "$added facts are new: `make abi` adds them\n" if $added && !$broken;
print "programs that are compiled already would break. If nobody has such programs, `make abi`\n" if $broken;
exit($broken ? 1 : 0);
