#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Calls that are banned, calls that belong into one place, and descriptors that would survive an exec.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__);
use Lint;

my %banned = (
    (map { $_ => 'unbounded; use snprintf or memcpy with a checked size' }
        qw(sprintf vsprintf strcpy strcat stpcpy gets)),
    (map { $_ => 'does not end what it cuts off; use snprintf or memcpy' } qw(strncpy strncat)),
    (map { $_ => 'stack that depends on input' } qw(alloca strdupa strndupa)),
    (map { $_ => 'ignores what it cannot read; use strtoull and check' } qw(atoi atol atoll atof sscanf)),
    (map { $_ => 'has hidden state; use the _r form' } qw(strtok asctime ctime localtime gmtime)),
    (map { $_ => 'racy; use mkstemp or mkdtemp' } qw(mktemp tmpnam tempnam)),
    (map { $_ => 'predictable; use getrandom' } qw(rand srand random srandom drand48)),
    (map { $_ => 'runs a shell' } qw(system popen)),
    signal => 'use sigaction',
    select => 'breaks at the 1025th descriptor; use poll',
    getenv => 'use secure_getenv',
    accept => 'use accept4 with SOCK_CLOEXEC',
    pipe => 'use pipe2 with O_CLOEXEC',
    dup => 'use fcntl with F_DUPFD_CLOEXEC',
    mkstemp => 'use mkostemp with O_CLOEXEC',
    creat => 'use open with O_CLOEXEC',
    epoll_create => 'use epoll_create1 with EPOLL_CLOEXEC',
    inotify_init => 'use inotify_init1 with IN_CLOEXEC',
);

# what programs that are only tests may do as well
my %fine_in_tests = map { $_ => 1 } qw(getenv dup pipe mkstemp signal sscanf system popen random srandom rand srand);

# function => files and modules that may call it; the rest of daemon, client and proto may not
my %confined = (
    (map { $_ => ['proto/sockio.c'] }
        qw(recvmsg recvmmsg sendmmsg recvfrom sendto recv send)),
    # to clients and between processes; to the journal; and to see what the kernel refuses
    sendmsg => ['proto/sockio.c', 'daemon/log/log.c', 'client/memctl/kernel.c'],
);
# the same, for the daemon only
my %confined_daemon = map { $_ => ['daemon/sys/'] }
    qw(memfd_create mmap mmap64 munmap mremap mprotect madvise process_madvise mlock mlock2
       mbind set_mempolicy get_mempolicy move_pages fallocate posix_fallocate pwrite pwritev ftruncate pidfd_open syscall);

# function => the flag that one of its arguments must hold
my %cloexec = (
    open => qr/O_CLOEXEC/, openat => qr/O_CLOEXEC/, socket => qr/SOCK_CLOEXEC/, socketpair => qr/SOCK_CLOEXEC/,
    accept4 => qr/SOCK_CLOEXEC/, pipe2 => qr/O_CLOEXEC/, dup3 => qr/O_CLOEXEC/, memfd_create => qr/MFD_CLOEXEC/,
    eventfd => qr/EFD_CLOEXEC/, timerfd_create => qr/TFD_CLOEXEC/, signalfd => qr/SFD_CLOEXEC/,
    epoll_create1 => qr/EPOLL_CLOEXEC/, inotify_init1 => qr/IN_CLOEXEC/, fopen => qr/"[^"]*e[^"]*"\s*$/,
    mkostemp => qr/O_CLOEXEC/,
);

sub allowed {
    my ($file, $places) = @_;
    return grep { $file eq $_ || (m{/$} && index($file, $_) == 0) } @$places;
}

for my $file (grep { /\.(c|h|hpp|cpp)$/ } files()) {
    my $is_test = $file =~ m{^tests/};
    my $text = slurp($file);
    my $code = code_of($text, 1);
    my $bare = code_of($text, 0);
    while ($bare =~ /(?<![\w.>])([a-z_][a-z0-9_]*)\s*\(/g) {
        my ($name, $offset, $after) = ($1, $-[1], $+[0]);
        my $line = line_at($bare, $offset);
        # a declaration ("int dup(") is as bad as a call: the name is taken
        if ($banned{$name} && !($is_test && $fine_in_tests{$name})) {
            complain($file, $line, "$name: $banned{$name}");
        }
        next if $is_test;
        my $places = $confined{$name} // ($file =~ m{^daemon/} ? $confined_daemon{$name} : undef);
        complain($file, $line, "$name may be called in @$places only") if $places && !allowed($file, $places);

        if ($cloexec{$name} || $name eq 'fcntl') {
            my ($depth, $end) = (1, $after);
            while ($depth && $end < length $bare) {
                my $c = substr($bare, $end++, 1);
                $depth++ if $c eq '(';
                $depth-- if $c eq ')';
            }
            my $arguments = substr($code, $after, $end - $after - 1);
            if ($name eq 'fcntl') {
                complain($file, $line, 'fcntl: use F_DUPFD_CLOEXEC') if $arguments =~ /\bF_DUPFD\b/;
            } elsif ($arguments !~ $cloexec{$name} && $arguments !~ /\bflags\b/) {
                complain($file, $line, "$name: the descriptor is not close-on-exec from birth");
            }
        }
    }
}
finish();
