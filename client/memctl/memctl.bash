# SPDX-License-Identifier: Apache-2.0
# bash completion for memctl(1): commands, options, and the names, ids and pools that the broker knows.

_memctl_ask() {
    # a listing of the broker that the command line is about; nothing if there is none
    memctl "${socket[@]}" "$@" 2>/dev/null | awk 'NR > 1'
}

_memctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local commands='status nodes pools buffers leaks sessions reservations names tokens check
        alloc share open cat fill publish move rm upgrade doctor'
    local command='' word i socket=()

    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${COMP_WORDS[i - 1]} == --socket ]]; then
            socket=(--socket "$word")
        elif [[ $word != -* && -z $command ]]; then
            command=$word
        fi
    done

    case $prev in
    --socket)
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --pool)
        mapfile -t COMPREPLY < <(compgen -W "$(_memctl_ask pools | awk '{ print $1 }')" -- "$cur")
        return
        ;;
    --pages)
        mapfile -t COMPREPLY < <(compgen -W 'base thp hugetlb' -- "$cur")
        return
        ;;
    --claim)
        mapfile -t COMPREPLY < <(compgen -W 'shared exclusive' -- "$cur")
        return
        ;;
    --placement)
        mapfile -t COMPREPLY < <(compgen -W 'bind preferred interleave split local' -- "$cur")
        return
        ;;
    --uid)
        mapfile -t COMPREPLY < <(compgen -u -- "$cur")
        return
        ;;
    --gid | --group)
        mapfile -t COMPREPLY < <(compgen -g -- "$cur")
        return
        ;;
    --size | --name | --keep-for | --others | --node | --page-size | --part-size | --weights | --align | --wait | \
        --rights | --uses | --expires | --pid)
        return
        ;;
    esac

    if [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands --json --socket --help --version" -- "$cur")
        return
    fi
    if [[ $cur == -* ]]; then
        local options='--json --socket --help'

        case $command in
        alloc)
            options+=' --size --name --keep-for --group --others --pool --node --pages --page-size --placement
                --part-size --weights --align --publishable --wait'
            ;;
        share) options+=' --rights --keeping --uses --expires --uid --gid --pid' ;;
        open) options+=' --rights --claim' ;;
        publish) options+=' --future-only' ;;
        move) options+=' --node' ;;
        rm) options+=' --force' ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        return
    fi
    case $command in
    share | open | cat | fill | publish | move | rm)
        if [[ $cur == '#'* || $cur == '\#'* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_memctl_ask buffers | awk '{ print "\\" $1 }')" -- "\\${cur#\\}")
        else
            mapfile -t COMPREPLY < <(compgen -W "$(_memctl_ask names | awk '{ print $1 }')" -- "$cur")
        fi
        ;;
    esac
}

complete -F _memctl memctl
