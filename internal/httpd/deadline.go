package httpd

import "time"

// deadline is one of the two deadlines of a connection. It is set on the
// connection only before something that may wait, and stays there while it is
// at most slack late: to move it for each part of a stream costs more than the
// part. So a timeout may come up to a thirty-second of its length late.
//
// All is guarded by conn.mu.
type deadline struct {
	set   func(time.Time) error // of the net.Conn
	want  time.Time             // zero: none
	armed time.Time             // what the connection has
	slack time.Duration
	busy  bool // somebody is in Read, or Write, for which changes matter at once
}

const slackPart = 32

// move sets what is wanted from now on.
func (d *deadline) move(t time.Time) {
	d.want = t
	if d.busy {
		d.apply()
	}
}

// apply makes the connection have what is wanted.
func (d *deadline) apply() {
	if d.want.IsZero() {
		if !d.armed.IsZero() {
			d.armed = time.Time{}
			_ = d.set(d.armed)
		}
		return
	}
	if late := d.armed.Sub(d.want); !d.armed.IsZero() && late >= 0 && late <= d.slack {
		return
	}
	d.slack = max(time.Until(d.want), 0) / slackPart
	d.armed = d.want.Add(d.slack)
	_ = d.set(d.armed) // one that cannot be set shows when the connection is used
}
