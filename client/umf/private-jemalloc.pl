#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Makes a private jemalloc of the distribution's archive of position independent objects:
#
#   private-jemalloc.pl AR LD OBJCOPY ARCHIVE OBJECT
#
# OBJECT has all of the archive except C++'s new and delete, and has no constructors. Only the functions that the pool
# uses can be linked, by names of our own, so neither the library's nor the process's malloc changes.
#
# jemalloc's thread variable (2.6 KB) uses the initial-exec model, so a library with these objects could be loaded only
# with the program, and not by dlopen(). Its references are changed to read the variable's offset from a word of ours,
# umf_je_tls_offset. The pool sets that if the offset is the same in all threads; otherwise there are no such pools.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);

my ($ar, $ld, $objcopy, $archive, $object) = @ARGV;
die "usage: $0 AR LD OBJCOPY ARCHIVE OBJECT\n" unless defined $object;

my @functions = qw(mallocx dallocx rallocx sallocx nallocx mallctl);
my $prefix = 'umf_je_';

# by machine: the relocations that read a thread variable's offset from the GOT, and those that read a word
my %references = (
    62 => {22 => 2},                # x86-64: GOTTPOFF; PC32
    183 => {541 => 275, 542 => 286} # AArch64: ADR_GOTTPREL_PAGE21, LD64_GOTTPREL_LO12_NC; ADR_PREL_PG_HI21, LDST64_ABS_LO12_NC
);
my %of_threads = (62 => [16 .. 23, 34 .. 36], 183 => [512 .. 573]);

sub run {
    system(@_) == 0 or die "$0: failed: @_\n";
}

my $dir = tempdir(CLEANUP => 1);
my $path = abs_path($archive);
# the commands may be several words
run("cd '$dir' && $ar x '$path' && rm -f jemalloc_cpp*");
run("$ld -r -o '$dir/all.o' '$dir'/*.o");

open(my $word, '>', "$dir/word") or die "$dir/word: $!\n";
print $word "\0" x 8;
close $word;
my @names = map { "--redefine-sym=$_=$prefix$_" } @functions;
run("$objcopy --remove-section=.init_array --remove-section=.rela.init_array " .
    "--redefine-sym=je_tsd_tls=${prefix}tsd_tls @names " .
    "--add-section=.data.tls_offset='$dir/word' --set-section-flags=.data.tls_offset=alloc,load,data,contents " .
    "--set-section-alignment=.data.tls_offset=8 " .
    "--add-symbol=${prefix}tls_offset=.data.tls_offset:0,global,object " .
    "'$dir/all.o' '$dir/named.o'");

# ---- references -----------------------------------------------------------------------------------------------

open(my $in, '<:raw', "$dir/named.o") or die "$dir/named.o: $!\n";
my $elf = do { local $/; <$in> };
close $in;
die "$0: only for 64-bit, little-endian ELF\n" unless substr($elf, 0, 6) eq "\x7fELF\x02\x01";

my $machine = unpack('S<', substr($elf, 18, 2));
my $changes = $references{$machine} or die "$0: not for machine $machine\n";
my ($section_offset) = unpack('Q<', substr($elf, 40, 8));
my ($section_size, $n_sections) = unpack('S<S<', substr($elf, 58, 4));
my @sections = map {
    my @of = unpack('L<L<Q<Q<Q<Q<L<L<Q<Q<', substr($elf, $section_offset + $_ * $section_size, 64));
    {type => $of[1], offset => $of[4], size => $of[5], link => $of[6]}
} 0 .. $n_sections - 1;

my ($symbols) = grep { $_->{type} == 2 } @sections;
my %number;
for my $i (0 .. $symbols->{size} / 24 - 1) {
    my ($name) = unpack('L<', substr($elf, $symbols->{offset} + $i * 24, 4));
    $name = unpack('Z*', substr($elf, $sections[$symbols->{link}]{offset} + $name, 64));
    $number{$name} = $i if $name =~ /^$prefix/;
}
my %is_of_threads = map { $_ => 1 } @{$of_threads{$machine}};
my $changed = 0;
for my $section (grep { $_->{type} == 4 } @sections) {
    for (my $at = $section->{offset}; $at < $section->{offset} + $section->{size}; $at += 24) {
        my ($type, $symbol) = unpack('L<L<', substr($elf, $at + 8, 8));

        next unless $is_of_threads{$type};
        die "$0: a thread's variable is referred to by relocation $type\n"
            unless $changes->{$type} && $symbol == $number{"${prefix}tsd_tls"};
        substr($elf, $at + 8, 8) = pack('L<L<', $changes->{$type}, $number{"${prefix}tls_offset"});
        $changed++;
    }
}
die "$0: no reference to a thread's variable\n" unless $changed;

open(my $out, '>:raw', "$dir/changed.o") or die "$dir/changed.o: $!\n";
print $out $elf;
close $out or die "$dir/changed.o: $!\n";

# ---- names ----------------------------------------------------------------------------------------------------

my @kept = map { "--keep-global-symbol=$prefix$_" } @functions, 'tsd_tls', 'tls_offset';
run("$objcopy @kept '$dir/changed.o' '$object'");
