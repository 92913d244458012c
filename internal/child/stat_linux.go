package child

import (
	"strconv"
	"strings"
)

// parseStat reads a line of /proc/PID/stat. The command's name stands in
// parentheses and may hold any byte, parentheses among them; numbers follow.
func parseStat(line string) (proc, bool) {
	open := strings.IndexByte(line, '(')
	end := strings.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return proc{}, false
	}
	fields := strings.Fields(line[end+1:])
	const startField = 19 // the 22nd of the line
	if len(fields) <= startField || len(fields[0]) != 1 {
		return proc{}, false
	}
	p := proc{state: fields[0][0], start: fields[startField]}
	numbers := []struct {
		text string
		to   *int
	}{
		{strings.TrimSpace(line[:open]), &p.pid},
		{fields[1], &p.ppid},
		{fields[2], &p.pgrp},
		{fields[3], &p.session},
	}
	for _, n := range numbers {
		v, err := strconv.Atoi(n.text)
		if err != nil {
			return proc{}, false
		}
		*n.to = v
	}
	return p, true
}
