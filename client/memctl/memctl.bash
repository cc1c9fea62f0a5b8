# SPDX-License-Identifier: Apache-2.0
# bash completion for memctl(1): commands, options, and the names, ids and pools that the broker knows. memctl itself
# says what there is, one word a line, so that nothing here is of an older version than that.
#
# Names are any text, with blanks, quotes and colons. So the line is read here as the shell reads it, and what is
# offered is quoted as the word that is being written is.

# Reads $1 up to its end, which is the cursor's place. Sets, in the caller:
#   words   the words before the one that is being written, without their quotes
#   word    what there is of that one, likewise
#   quote   the quote that is open in it: ', " or nothing
#   kept    how many characters of `word` readline keeps: it replaces what follows the last of its own word breaks
#           (COMP_WORDBREAKS, where they are not quoted) or the open quote
_memctl_read() {
    local line=$1 c i any=''
    words=() word='' quote='' kept=0
    for ((i = 0; i < ${#line}; i++)); do
        c=${line:i:1}
        if [[ $quote == "'" ]]; then
            if [[ $c == "'" ]]; then quote=''; else word+=$c; fi
        elif [[ $c == \\ && ($quote != '"' || ${line:i+1:1} == [\"\\\$\`]) ]]; then
            i=$((i + 1)) any=1
            word+=${line:i:1}
        elif [[ $quote == '"' ]]; then
            if [[ $c == '"' ]]; then quote=''; else word+=$c; fi
        elif [[ $c == [\'\"] ]]; then
            quote=$c any=1 kept=${#word}
        elif [[ $c == [[:blank:]] ]]; then
            [[ -z $any$word ]] || words+=("$word")
            word='' any='' kept=0
        else
            word+=$c
            [[ ${COMP_WORDBREAKS- } != *"$c"* ]] || kept=${#word}
        fi
    done
}

# Prints a word's rest as it must be written within the quote that is open.
_memctl_quote() {
    local text=$1 c out='' i
    for ((i = 0; i < ${#text}; i++)); do
        c=${text:i:1}
        case $quote$c in
        "''") out+="'\\''" ;;
        '"'[\"\\\$\`]) out+=\\$c ;;
        [\'\"]?) out+=$c ;;
        # outside of quotes: all of ASCII that may mean something to a shell
        [[:blank:]\"\'\\\$\`\;\&\|\<\>\(\)\{\}\[\]\*\?\!~#=^@]) out+=\\$c ;;
        *) out+=$c ;;
        esac
    done
    printf %s "$out"
}

# Offers those of the lines of standard input that begin with `word`, less what readline keeps. $1: what follows each.
_memctl_offer() {
    local candidate
    while IFS= read -r candidate; do
        [[ $candidate == "$word"* ]] || continue
        COMPREPLY+=("$(_memctl_quote "${candidate:kept}")$1")
    done
}

_memctl_ask() {
    # of the broker that the command line is about; nothing if there is none
    memctl "${socket[@]}" __complete "$@" 2>/dev/null
}

_memctl() {
    local words word quote kept command='' socket=() i previous=''

    _memctl_read "${COMP_LINE:0:COMP_POINT}"
    COMPREPLY=()
    # the first word is memctl itself, unless something is assigned before it
    for ((i = 0; i < ${#words[@]}; i++)); do
        [[ ${words[i]} == "${COMP_WORDS[0]}" || ${words[i]##*/} == memctl ]] && break
    done
    for ((i++; i < ${#words[@]}; i++)); do
        if [[ ${words[i - 1]} == --socket ]]; then
            socket=(--socket "${words[i]}")
        elif [[ ${words[i]} == --socket=* ]]; then
            socket=(--socket "${words[i]#*=}")
        elif [[ ${words[i]} != -* && -z $command ]]; then
            command=${words[i]}
        fi
        previous=${words[i]}
    done
    # --pool=node0 like --pool node0
    if [[ $word == --*=* ]]; then
        previous=${word%%=*}
        kept=$((kept > ${#previous} ? kept - ${#previous} - 1 : 0))
        word=${word#*=}
    fi

    case $previous in
    --socket) _memctl_offer '' < <(compgen -f -- "$word") ;;
    --pool) _memctl_offer '' < <(_memctl_ask pools) ;;
    --pages) _memctl_offer '' <<<$'base\nthp\nhugetlb' ;;
    --kind) _memctl_offer '' < <(_memctl_ask kinds) ;;
    --view) _memctl_offer '' <<<$'buffers\nprocesses\nusers' ;;
    --sort) _memctl_offer '' <<<$'bytes\nholds\noldest\nnewest\nrate\nrequests\nwaiting' ;;
    --filter)
        compopt -o nospace 2>/dev/null
        _memctl_offer '' <<<$'uid:\npid:\nsession:\npool:'
        ;;
    --replay) _memctl_offer '' < <(compgen -f -- "$word") ;;
    --claim) _memctl_offer '' <<<$'shared\nexclusive' ;;
    --placement) _memctl_offer '' <<<$'bind\npreferred\ninterleave\nsplit\nlocal' ;;
    --uid) _memctl_offer '' < <(compgen -u -- "$word") ;;
    --gid) _memctl_offer '' < <(compgen -g -- "$word") ;;
    --group)
        compopt -o nospace 2>/dev/null
        _memctl_offer : < <(compgen -g -- "$word")
        ;;
    --size | --name | --keep-for | --others | --node | --page-size | --part-size | --weights | --align | --wait | \
        --rights | --uses | --expires | --pid | --since | --rows | --interval) ;;
    *)
        case $command,$word in
        *,-*) _memctl_offer '' < <(_memctl_ask options "$command" | sed 's/=$//') ;;
        ,* | help,*) _memctl_offer '' < <(_memctl_ask commands) ;;
        doctor,*) _memctl_offer '' <<<opencl ;;
        holders,*) _memctl_offer '' < <(_memctl_ask holders | sort -u) ;;
        events,* | share,* | open,* | cat,* | fill,* | publish,* | move,* | rm,*) _memctl_offer '' < <(_memctl_ask buffers) ;;
        esac
        ;;
    esac
}

complete -F _memctl memctl
