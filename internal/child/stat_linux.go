package child

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// proc is what one needs to know of a process.
type proc struct {
	pid, ppid, pgrp, session int
	state                    byte
	start                    string // clock ticks since boot; with pid, an identity
}

// processes reads the process table.
func processes() ([]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	procs := make([]proc, 0, len(names))
	buf := make([]byte, 1024)
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		n, err := readStat("/proc/"+name+"/stat", buf)
		if err != nil {
			continue // gone meanwhile
		}
		if p, ok := parseStat(string(buf[:n])); ok {
			procs = append(procs, p)
		}
	}
	return procs, nil
}

// readStat reads a small file with as few system calls as can be: this is done for
// every process on the machine. What parseStat needs lies in the first 1024 bytes.
func readStat(name string, buf []byte) (int, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, buf)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

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
