//go:build !unix

package box

import "os"

func terminate(p *os.Process) error { return p.Kill() }
