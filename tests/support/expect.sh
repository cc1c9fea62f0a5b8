# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For scripts that run one command after the other and look at what it says. Whoever sources this has sourced
# broker.sh; what the last command printed is in $dir/out and $dir/err.
: >"$dir/out" >"$dir/err"

# the line named is the script's, however deep the function was that failed
fail() {
    echo "${0##*/}: line ${BASH_LINENO[$((${#FUNCNAME[@]} - 2))]}: $*" >&2
    for part in out err log; do
        [ ! -e "$dir/$part" ] || { echo "--- $part"; head -c 4000 "$dir/$part" | cat -v; } >&2
    done
    exit 1
}

# expect STATUS COMMAND...: the command ends with that
expect() {
    local want=$1 got
    shift
    "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ "$got" = "$want" ] || fail "$*: exit status $got instead of $want"
}

# patterns are grep -E's
said() { grep -qE -- "$1" "$dir/err" || fail "stderr lacks: $1"; }
shows() { grep -qE -- "$1" "$dir/out" || fail "stdout lacks: $1"; }
json() { jq -e "$1" "$dir/out" >"$dir/jq" || fail "not so: $1"; }
