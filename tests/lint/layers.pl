#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The include law: a file includes its own module and those that the "Uses:" line of the module's local.am names, and
# third-party headers stay in the modules that are there to hide them.
use strict;
use warnings;
use File::Basename;
use lib dirname(__FILE__);
use Lint;

# third-party and kernel headers => the modules (or files) that may include them
my @confined = (
    [qr{^event2?/|^event\.h$|^evhttp}, qw(daemon/net daemon/observe daemon/app)],
    [qr{^protobuf-c/|\.pb-c\.h$}, qw(proto daemon/rpc client/rpc)],
    [qr{^numa(if)?\.h$}, qw(daemon/sys/numa.c)],
    [qr{^systemd/}, qw(daemon/log daemon/app daemon/keeper)],
    [qr{^syslog\.h$}, qw(daemon/log)],
    [qr{^ini\.h$}, qw(daemon/config)],
    # uthash ends the process where there is no memory; base/hash.h does not
    [qr{^uthash\.h$}, qw(include/base/hash.h)],
    [qr{^seccomp\.h$}, qw(daemon/sandbox/make-filters.c)],
    [qr{^sys/(socket|un)\.h$}, qw(proto daemon/sandbox/make-filters.c daemon/sys daemon/config/listen.c daemon/config/listen.h daemon/net daemon/observe daemon/app daemon/door daemon/keeper daemon/log client/rpc client/memctl/kernel.c)],
);

my %uses;
sub uses {
    my ($module) = @_;
    if (!$uses{$module}) {
        my ($line) = slurp("$module/local.am") =~ /^# Uses:(.*(?:\n#   +\S.*)*)/m;
        $line =~ s/\n#/ /g;
        $uses{$module} = { map { $_ => 1 } split ' ', $line };
    }
    return $uses{$module};
}

# The file of the tree that #include "$name" means in $from, by the order of the include roots.
sub resolve {
    my ($name, $from) = @_;
    # installed headers, and what setup.py compiles, are found wherever they are: by their neighbours
    return dirname($from) . "/$name" if $from =~ m{^(include/memclient|client/python)/} && -e root() . '/' . dirname($from) . "/$name";
    my @roots = $from =~ m{^(tests/unit/)?(client|hsa|memctl|nbla|opencl|umf)} ? ('include/', '', 'client/', 'daemon/')
                                                  : ('include/', '', 'daemon/', 'client/');
    for my $dir (@roots) {
        return "$dir$name" if -e root() . "/$dir$name";
    }
    return undef;
}

for my $file (grep { /\.(c|h|hpp|cpp)$/ } files()) {
    # tests of a module see what the module sees, and the module
    my $tested = $file =~ m{^tests/unit/([^/]+)/} ? $1 : undef;
    next if $file =~ m{^tests/} && !defined $tested;
    my $module = defined $tested
        ? ($tested eq 'base' ? 'include/base' : $tested eq 'proto' ? 'proto'
           : $tested eq 'client' ? 'client' : $tested =~ m{^(hsa|memctl|nbla|opencl|umf)$} ? "client/$tested" : "daemon/$tested")
        : module_of($file);
    next if $module eq 'client' && defined $tested;

    my $text = code_of(slurp($file), 1);
    while ($text =~ /^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]/mg) {
        my ($style, $name, $line) = ($1, $2, line_at($text, $-[0] + 1));
        for my $rule (@confined) {
            my ($pattern, @allowed) = @$rule;
            next if $name !~ $pattern || defined $tested;
            complain($file, $line, "only @allowed may include $name")
                if !grep { $file eq $_ || index($file, "$_/") == 0 } @allowed;
        }
        if ($style eq '<') {
            next if $name !~ m{^memclient/};
        }
        next if $name =~ m{\.pb-c\.h$|^sandbox/filters\.h$}; # made by the build
        my $target = resolve($name, $file);
        if (!defined $target) {
            complain($file, $line, "\"$name\" is not found from an include root; name its folder")
                if !defined $tested;
            next;
        }
        complain($file, $line, "\"$name\" is included through its full path; leave out the root")
            if $target eq $name && $name =~ m{^(daemon|client|include)/};
        my $other = module_of($target);
        next if $other eq $module || $other eq '';
        if ($module eq '') {
            complain($file, $line, 'this file is in no module: its local.am has no "Uses:" line');
            next;
        }
        my $allowed = $module =~ m{^include/} ? {} : uses($module);
        # what a "Uses:" line calls it: base, memclient, proto or proto/FILE, or a module of the same tree
        my ($side) = $module =~ m{^(daemon|client)};
        (my $short = $other) =~ s{^include/}{};
        $short =~ s{^$side/}{} if defined $side;
        next if $allowed->{$short} || $allowed->{"$short/" . basename($target)};
        complain($file, $line, "$module may not use $other (\"$name\")");
    }
}

# "rpc/x.h" must mean one file
for my $file (files()) {
    complain($file, undef, 'client/ has a file of the same name, so "..." would be ambiguous')
        if $file =~ m{^daemon/(.+\.h)$} && -e root() . "/client/$1";
}
finish();
