package front

import "time"

// now is zero where nobody asks for times.
func (f *Front) now() time.Time {
	if !f.cfg.Timed {
		return time.Time{}
	}
	return time.Now()
}

// arrived is when a request would have arrived whose body came at once: when it
// was read, less the time from began to asked, which was spent on it before
// its body was read.
func (f *Front) arrived(began time.Time, body received) time.Time {
	if !f.cfg.Timed {
		return time.Time{}
	}
	return body.at.Add(began.Sub(body.asked))
}

// refuse counts a request that is answered with an error of Signalbox itself.
func (m *Metrics) refuse(reason string) {
	m.refused.WithLabelValues(reason).Inc()
	if m.Refused != nil {
		m.Refused(reason)
	}
}
