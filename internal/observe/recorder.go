package observe

import "time"

// Recorder keeps what happened in this process. All methods may be called by
// several goroutines at once; those of a nil Recorder keep nothing.
type Recorder struct {
	series    series
	incidents incidents
}

// New makes an empty Recorder.
func New() *Recorder { return &Recorder{} }

// On tells whether anything is kept.
func (r *Recorder) On() bool { return r != nil }

// Called counts a call that is over.
func (r *Recorder) Called(now time.Time) {
	if r != nil {
		r.series.at(now).calls.Add(1)
	}
}

// Added notes what Signalbox itself has added to the time of one call.
func (r *Recorder) Added(now time.Time, d time.Duration) {
	if r != nil {
		r.series.at(now).add(d)
	}
}

// Refused notes a request that Signalbox answered with an error of its own.
func (r *Recorder) Refused(now time.Time, i Incident) { r.note(now, Refused, i) }

// Dropped notes a message that was not passed on.
func (r *Recorder) Dropped(now time.Time, i Incident) { r.note(now, Dropped, i) }

func (r *Recorder) note(now time.Time, what What, i Incident) {
	if r == nil {
		return
	}
	i.What, i.First, i.Last, i.Count = what, now, now, 1
	r.incidents.add(i)
}

// Series returns the buckets of the last 15 minutes, oldest first, the one that
// is being filled last. There are always Buckets of them.
func (r *Recorder) Series(now time.Time) []Bucket {
	if r == nil {
		return nil
	}
	return r.series.last(now)
}

// Incidents returns the last refusals and drops, newest first.
func (r *Recorder) Incidents() []Incident {
	if r == nil {
		return nil
	}
	return r.incidents.list()
}
