#compdef memctl
# SPDX-License-Identifier: Apache-2.0
# zsh completion for memctl(1): commands, options, and the names, ids and pools that the broker knows. memctl itself says
# what there is, one word a line, so that nothing here is of an older version than that. zsh quotes what is offered.

local command='' previous=${(Q)words[CURRENT-1]} word i
local -a socket

_memctl_ask() {
    # of the broker that the command line is about; nothing if there is none
    command memctl $socket __complete "$@" 2>/dev/null
}
_memctl_offer() {
    local -a candidates=(${(f)1})
    compadd -a candidates
}

for ((i = 2; i < CURRENT; i++)); do
    word=${(Q)words[i]}
    if [[ ${(Q)words[i - 1]} == --socket ]]; then
        socket=(--socket "$word")
    elif [[ $word == --socket=* ]]; then
        socket=(--socket "${word#*=}")
    elif [[ $word != -* && -z $command ]]; then
        command=$word
    fi
done
# --pool=node0 like --pool node0
if [[ ${words[CURRENT]} == --*=* ]]; then
    previous=${words[CURRENT]%%=*}
    compset -P '*='
fi

case $previous in
--socket) _files ;;
--pool) _memctl_offer "$(_memctl_ask pools)" ;;
--pages) compadd base thp hugetlb ;;
--kind) _memctl_offer "$(_memctl_ask kinds)" ;;
--view) compadd buffers processes users ;;
--sort) compadd bytes holds oldest newest rate requests waiting ;;
--filter) compadd -S '' uid: pid: session: pool: ;;
--replay) _files ;;
--claim) compadd shared exclusive ;;
--placement) compadd bind preferred interleave split local ;;
--uid) _users ;;
--gid) _groups ;;
--group) _groups -S : ;;
--size | --name | --keep-for | --others | --node | --page-size | --part-size | --weights | --align | --wait | \
    --rights | --uses | --expires | --pid | --since | --rows | --interval) ;;
*)
    case $command,${words[CURRENT]} in
    *,-*) _memctl_offer "$(_memctl_ask options "$command" | sed 's/=$//')" ;;
    ,* | help,*) _memctl_offer "$(_memctl_ask commands)" ;;
    doctor,*) compadd opencl ;;
    holders,*) _memctl_offer "$(_memctl_ask holders | sort -u)" ;;
    events,* | share,* | open,* | cat,* | fill,* | publish,* | move,* | rm,*) _memctl_offer "$(_memctl_ask buffers)" ;;
    esac
    ;;
esac
