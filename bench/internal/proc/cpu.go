package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc; 100 Hz on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// CPU is the processor time that pid and its living descendants have used.
func CPU(pid int) (time.Duration, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	parent, used := map[int]int{}, map[int]time.Duration{} // both by pid
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		// The name in parentheses may hold anything; state is the first field behind it.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) < 13 {
			continue
		}
		parent[id], _ = strconv.Atoi(f[1])
		user, _ := strconv.ParseInt(f[11], 10, 64)
		system, _ := strconv.ParseInt(f[12], 10, 64)
		used[id] = time.Duration(user+system) * tick
	}
	if _, ok := used[pid]; !ok {
		return 0, fmt.Errorf("no process %d", pid)
	}
	var sum time.Duration
	for id, t := range used {
		at := id
		for at != pid && at > 1 {
			at = parent[at]
		}
		if at == pid {
			sum += t
		}
	}
	return sum, nil
}
