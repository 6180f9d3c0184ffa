# Completion of tilescope for bash, which asks the program what could come next.
_tilescope() {
    # Bash takes KEY=VALUE for three words, and the program takes it for one.
    local words=() prefix="" rest=$COMP_LINE at last word trimmed
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        trimmed=${rest#"${rest%%[![:space:]]*}"}
        if ((at == 0)) || [[ $trimmed != "$rest" ]]; then
            words+=("")
        fi
        rest=${trimmed#"$word"}
        last=$((${#words[@]} - 1))
        if ((at == COMP_CWORD)); then
            prefix=${words[last]}
            # What is in front of the cursor; a sign that parts words is in front of it, too.
            case $word in
                [=:]) prefix+=$word ;;
                *) word=$2 ;;
            esac
        fi
        words[last]+=$word
    done
    # Bash puts what is chosen in the place of the part behind the sign.
    local candidate
    COMPREPLY=()
    while IFS= read -r candidate || [[ -n $candidate ]]; do
        COMPREPLY+=("${candidate#"$prefix"}")
    done < <(
        _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$last TILESCOPE_COMPLETE=bash \
            tilescope -- "${words[@]}" 2>/dev/null
    )
    # A key is followed by its value, a directory by what is in it.
    compopt +o nospace 2>/dev/null
    if [[ ${COMPREPLY[0]-} =~ [=/:]$ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
# Versions before 4.4 sort, whatever is asked.
complete -o nospace -o bashdefault -o nosort -F _tilescope tilescope 2>/dev/null ||
    complete -o nospace -o bashdefault -F _tilescope tilescope
