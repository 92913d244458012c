//go:build !linux

package child

// reaper has nothing to do here: orphans do not fall to this process.
type reaper struct{}

func (r *reaper) prepare() error { return nil }

func (s *Supervisor) reap() { <-s.quit }
