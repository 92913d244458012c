package main

import (
	"fmt"
	"strings"
)

// bashCompletion works in bash from 3.2 on, with and without the package
// bash-completion.
func bashCompletion(commands []completion) string {
	var paths []string
	var values, words strings.Builder
	for _, c := range commands {
		path := strings.Join(c.path, " ")
		if path != "" {
			paths = append(paths, quoted(path))
		}
		for _, f := range c.flags {
			action := "return"
			switch {
			case f.value == "":
				continue
			case f.words != nil:
				action = "_signalbox_words " + quoted(strings.Join(f.words, " ")) + "; return"
			case f.file:
				action = "_signalbox_files -f; return"
			case f.dir:
				action = "_signalbox_files -d; return"
			}
			fmt.Fprintf(&values, "\t%s) %s ;;\n", quoted(path+" --"+f.name), action)
		}
		fmt.Fprintf(&words, "\t%s) words=%s flags=%s ;;\n", quoted(path), quoted(c.next()), quoted(c.typed()))
	}
	return fmt.Sprintf(bashScript, strings.Join(paths, "|"), values.String(), words.String())
}

const bashScript = `# bash completion for signalbox: source <(signalbox completion bash)

_signalbox_words() {
	local IFS=$' \t\n'
	COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

_signalbox_files() {
	local IFS=$'\n'
	compopt -o filenames 2>/dev/null
	COMPREPLY=($(compgen "$1" -- "$cur"))
}

_signalbox() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= words= flags= i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -- ]] && break
		case "${path:+$path }${COMP_WORDS[i]}" in
		%s) path="${path:+$path }${COMP_WORDS[i]}" ;;
		esac
	done
	if ((i < COMP_CWORD)); then # behind --: the server's command
		if declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
		elif ((i + 1 == COMP_CWORD)); then
			_signalbox_files -c
		else
			_signalbox_files -f
		fi
		return
	fi
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	case "$path $prev" in
%s	esac
	case $path in
%s	esac
	[[ $cur == -* || -z $words ]] && words=$flags
	_signalbox_words "$words"
}

complete -F _signalbox signalbox
`
