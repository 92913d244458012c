package main

import (
	"fmt"
	"strings"
)

// zshCompletion is a function for each command. The script may be sourced, or
// lie as _signalbox in a folder of fpath.
func zshCompletion(commands []completion) string {
	var b strings.Builder
	b.WriteString("#compdef signalbox\n# zsh completion for signalbox: source <(signalbox completion zsh)\n")
	for _, c := range commands {
		function := zshFunction(c.path)
		fmt.Fprintf(&b, "\n%s() {\n", function)
		if len(c.names) > 0 {
			zshBranch(&b, c, function)
		} else {
			b.WriteString("\t_arguments -S")
			zshFlags(&b, c.flags)
			switch {
			case c.runs:
				b.WriteString(" \\\n\t\t'(-)1:command: _command_names -e' '*::arguments: _normal'")
			case c.words != nil:
				fmt.Fprintf(&b, " \\\n\t\t'1:shell:(%s)'", strings.Join(c.words, " "))
			}
			b.WriteString("\n")
		}
		b.WriteString("}\n")
	}
	b.WriteString("\nif [[ ${funcstack[1]} == _signalbox ]]; then\n\t_signalbox \"$@\"\nelse\n\tcompdef _signalbox signalbox\nfi\n")
	return b.String()
}

func zshFunction(path []string) string {
	return strings.Join(append([]string{"_signalbox"}, path...), "_")
}

// zshBranch is the body of a command that has commands below it.
func zshBranch(b *strings.Builder, c completion, function string) {
	b.WriteString("\tlocal curcontext=$curcontext state ret=1\n\tlocal -a names\n\tnames=(\n")
	for _, w := range c.names {
		fmt.Fprintf(b, "\t\t%s\n", quoted(w.name+":"+w.help))
	}
	b.WriteString("\t)\n\t_arguments -C")
	zshFlags(b, c.flags)
	b.WriteString(" \\\n\t\t'1: :->name' '*:: :->below' && ret=0\n\tcase $state in\n\tname) _describe -t commands command names && ret=0 ;;\n\tbelow)\n\t\tcase $words[1] in\n")
	for _, w := range c.names {
		fmt.Fprintf(b, "\t\t%s) %s_%s && ret=0 ;;\n", w.name, function, w.name)
	}
	b.WriteString("\t\tesac ;;\n\tesac\n\treturn ret\n")
}

var zshText = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`)

func zshFlags(b *strings.Builder, flags []completionFlag) {
	for _, f := range flags {
		spec := "--" + f.name
		if f.value != "" {
			spec += "="
		}
		spec += "[" + zshText.Replace(f.help) + "]"
		if f.repeats {
			spec = "*" + spec
		}
		if f.value != "" {
			spec += ":" + strings.ReplaceAll(f.value, ":", `\:`) + ":"
		}
		switch {
		case f.words != nil:
			spec += "(" + strings.Join(f.words, " ") + ")"
		case f.file:
			spec += "_files"
		case f.dir:
			spec += "_files -/"
		}
		fmt.Fprintf(b, " \\\n\t\t%s", quoted(spec))
	}
}
