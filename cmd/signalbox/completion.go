package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCmd prints a script that makes a shell complete signalbox's
// commands, flags and values. All of it is read from the command line's own
// grammar.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) run(app *kong.Application, std streams) {
	script := map[string]func([]completion) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	fmt.Fprint(std.out, script(completions(app.Node, nil)))
}

// completion is what can be completed behind one command.
type completion struct {
	path  []string         // of the command: nil for signalbox itself, [key new]
	names []completionWord // of the commands below
	flags []completionFlag
	words []string // that its argument may be
	runs  bool     // its arguments are a command of their own
}

type completionWord struct{ name, help string }

// completionFlag is a flag, and what its value may be.
type completionFlag struct {
	name, help string
	value      string   // a name for its value; "": it takes none
	words      []string // that the value may be; nil: anything
	file, dir  bool     // the value is a path
	repeats    bool
}

// completions lists a node of the command line, then all nodes below it.
func completions(n *kong.Node, path []string) []completion {
	c := completion{path: path}
	for _, f := range n.Flags {
		if !f.Hidden {
			c.flags = append(c.flags, completionOf(f))
		}
	}
	for _, p := range n.Positional {
		c.words = append(c.words, enumOf(p)...)
		c.runs = c.runs || p.Passthrough
	}
	var below []completion
	for _, child := range n.Children {
		if !child.Hidden {
			c.names = append(c.names, completionWord{child.Name, oneLine(child.Help)})
			below = append(below, completions(child, append(slices.Clone(path), child.Name))...)
		}
	}
	return append([]completion{c}, below...)
}

func completionOf(f *kong.Flag) completionFlag {
	c := completionFlag{name: f.Name, help: oneLine(f.Help), words: enumOf(f.Value), repeats: f.IsSlice()}
	if f.IsBool() {
		return c
	}
	c.value, c.file, c.dir = f.PlaceHolder, f.PlaceHolder == "FILE", f.PlaceHolder == "DIR"
	if c.value == "" {
		c.value = f.Name
	}
	return c
}

func enumOf(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

// oneLine is a help text without what follows its main clause: shells have one
// short line for it.
func oneLine(help string) string {
	for _, end := range []string{": signalbox ", "; "} {
		help, _, _ = strings.Cut(help, end)
	}
	return strings.TrimSuffix(help, ".")
}

// typed are the flags as they are typed.
func (c completion) typed() string {
	var list []string
	for _, f := range c.flags {
		list = append(list, "--"+f.name)
	}
	return strings.Join(list, " ")
}

// next are the words that may follow: commands, or an argument's values.
func (c completion) next() string {
	list := slices.Clone(c.words)
	for _, w := range c.names {
		list = append(list, w.name)
	}
	return strings.Join(list, " ")
}

// quoted is a string as a shell's single-quoted word.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
