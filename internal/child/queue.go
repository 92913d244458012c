package child

import "sync"

const (
	batchBytes = 256 << 10 // small lines joined for one write
	largeLine  = 16 << 10  // from here on a line is written where it lies
	ticketCost = 64        // what a waiting line costs beside its bytes
)

// Ticket stands for one line given to Write, for Withdraw.
type Ticket struct {
	queue      *queue
	line       []byte // nil once taken by the writer
	size       int
	state      ticketState
	prev, next *Ticket
}

type ticketState uint8

const (
	ticketWaiting ticketState = iota
	ticketDropped             // the process was gone first
	ticketTaken               // by the writer, or withdrawn
)

// queue holds the lines that wait for stdin: a linked list, so that a line
// withdrawn from the middle leaves nothing behind.
type queue struct {
	bound int
	wake  chan struct{} // one token: the writer has something to look at

	mu         sync.Mutex
	head, tail *Ticket
	bytes      int
	refusing   bool // nothing more is let in
	sealed     bool // and the writer ends when the list is empty
}

func newQueue(bound int) *queue {
	return &queue{bound: bound, wake: make(chan struct{}, 1)}
}

func (q *queue) push(line []byte) (*Ticket, error) {
	t := &Ticket{queue: q, line: line, size: len(line) + ticketCost}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusing {
		return nil, ErrGone
	}
	if q.head != nil && q.bytes+t.size > q.bound {
		return nil, ErrBusy
	}
	t.prev = q.tail
	if q.tail != nil {
		q.tail.next = t
	} else {
		q.head = t
	}
	q.tail = t
	q.bytes += t.size
	q.rouse()
	return t, nil
}

func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default: // a token is already there
	}
}

func (q *queue) withdraw(t *Ticket) bool {
	if t == nil || t.queue != q {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch t.state {
	case ticketWaiting:
		q.unlinkLocked(t)
	case ticketTaken:
		return false
	}
	t.state = ticketTaken
	t.line = nil
	return true
}

func (q *queue) unlinkLocked(t *Ticket) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		q.head = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		q.tail = t.prev
	}
	t.prev, t.next = nil, nil
	q.bytes -= t.size
}

// take moves what one write can carry from the queue to lines: one large line, or
// small ones up to batchBytes. With nothing to take, open says whether more may come.
func (q *queue) take(lines [][]byte) (batch [][]byte, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	total := 0
	for t := q.head; t != nil; t = q.head {
		total += len(t.line) + 1
		if len(lines) > 0 && (total > batchBytes || len(t.line) >= largeLine) {
			break
		}
		q.unlinkLocked(t)
		lines = append(lines, t.line)
		t.state, t.line = ticketTaken, nil
		if len(lines[len(lines)-1]) >= largeLine {
			break
		}
	}
	return lines, !q.sealed
}

// refuse lets nothing more in.
func (q *queue) refuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusing = true
}

// seal lets nothing more in and has the writer end after what waits.
func (q *queue) seal() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusing, q.sealed = true, true
	q.rouse()
}

// drop is seal, and forgets what waits.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusing, q.sealed = true, true
	for t := q.head; t != nil; t = q.head {
		q.unlinkLocked(t)
		t.state, t.line = ticketDropped, nil
	}
	q.rouse()
}
