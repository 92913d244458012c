package observe

import (
	"sync"
	"time"
)

// MaxIncidents is how many refusals and drops are kept.
const MaxIncidents = 200

// What happened to a message.
type What string

const (
	Refused What = "refused" // answered with an error of Signalbox itself
	Dropped What = "dropped" // not passed on
)

// Incident is a refusal or a drop. Equal ones that follow each other are one.
type Incident struct {
	What    What
	Reason  string // of a fixed set: the metrics' label
	Server  string // "" where it was not known yet
	Session string // short hash; "" where there is none
	Detail  string // a method, or a name that the rules refused; a peer's text, cut to some 100 bytes
	First   time.Time
	Last    time.Time
	Count   int
}

type incidents struct {
	mu   sync.Mutex
	ring []Incident
	next int // in ring, once that is full: the oldest
}

func (l *incidents) add(i Incident) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.ring); n > 0 {
		newest := &l.ring[(l.next+n-1)%n]
		if i.sameAs(newest) {
			newest.Count++
			newest.Last = i.Last
			return
		}
	}
	if len(l.ring) < MaxIncidents {
		l.ring = append(l.ring, i)
		return
	}
	l.ring[l.next] = i
	l.next = (l.next + 1) % len(l.ring)
}

func (i *Incident) sameAs(o *Incident) bool {
	return i.What == o.What && i.Reason == o.Reason && i.Server == o.Server && i.Session == o.Session && i.Detail == o.Detail
}

func (l *incidents) list() []Incident {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.ring)
	list := make([]Incident, n)
	for k := range list {
		list[k] = l.ring[(l.next+n-1-k)%n]
	}
	return list
}
