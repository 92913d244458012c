package main

import (
	"fmt"
	"strings"
)

// fishCompletion is a line for each word and flag, each with the command that
// it belongs to.
func fishCompletion(commands []completion) string {
	var paths []string
	var rules strings.Builder
	for _, c := range commands {
		path := strings.Join(c.path, " ")
		if path != "" {
			paths = append(paths, quoted(path))
		}
		at := fmt.Sprintf("complete -c signalbox -n %s", quoted(`__signalbox_at "`+path+`"`))
		for _, w := range c.names {
			fmt.Fprintf(&rules, "%s -a %s -d %s\n", at, w.name, quoted(w.help))
		}
		if c.words != nil {
			fmt.Fprintf(&rules, "%s -a %s\n", at, quoted(strings.Join(c.words, " ")))
		}
		for _, f := range c.flags {
			value := ""
			switch {
			case f.value == "":
			case f.words != nil:
				value = " -x -a " + quoted(strings.Join(f.words, " "))
			case f.file:
				value = " -r -F"
			case f.dir:
				value = " -x -a '(__fish_complete_directories)'"
			default:
				value = " -x"
			}
			fmt.Fprintf(&rules, "%s -l %s%s -d %s\n", at, f.name, value, quoted(f.help))
		}
		if c.runs {
			fmt.Fprintf(&rules, "complete -c signalbox -n %s -a '(__signalbox_server)'\n", quoted(`__signalbox_at "`+path+` --"`))
		}
	}
	return fmt.Sprintf(fishScript, strings.Join(paths, " "), rules.String())
}

const fishScript = `# fish completion for signalbox: signalbox completion fish | source

# __signalbox_at tells whether the words before the cursor are of this command.
function __signalbox_at
	set -l path
	for word in (commandline -opc)[2..-1]
		if test "$word" = --
			set path $path --
			break
		end
		contains -- "$(string join ' ' -- $path $word)" %s
		and set path $path $word
	end
	test "$(string join ' ' -- $path)" = "$argv[1]"
end

# __signalbox_server completes the server's command, behind --.
function __signalbox_server
	set -l words (commandline -opc)
	set -e words[1..(contains -i -- -- $words)]
	complete -C "$(string join ' ' -- (string escape -- $words) (commandline -ct))"
end

complete -c signalbox -f
%s`
