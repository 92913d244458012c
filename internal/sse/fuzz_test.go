package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// pieces is a source that hands out one piece for each Read (more where the
// buffer is too small), and err after the last; nil err is io.EOF.
type pieces struct {
	left []string
	err  error
	// drained, if set, is called by the Read that finds nothing left.
	drained func()
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		if p.drained != nil {
			p.drained()
		}
		if p.err != nil {
			return 0, p.err
		}
		return 0, io.EOF
	}
	n := copy(b, p.left[0])
	if p.left[0] = p.left[0][n:]; p.left[0] == "" {
		p.left = p.left[1:]
	}
	return n, nil
}

// cutEvery cuts s into pieces of n bytes.
func cutEvery(s string, n int) []string {
	var out []string
	for len(s) > n {
		out, s = append(out, s[:n]), s[n:]
	}
	return append(out, s)
}

// readAll returns the events of src and the error that ended them.
func readAll(src io.Reader, maxEvent int) ([]Event, error) {
	r := NewReader(src, maxEvent)
	var evs []Event
	for {
		ev, err := r.Next()
		if err != nil {
			return evs, err
		}
		evs = append(evs, ev)
	}
}

func equalEvents(a, b []Event) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if !bytes.Equal(x.Data, y.Data) {
			return false
		}
		if x.ID != y.ID || x.HasID != y.HasID || x.Type != y.Type || x.HasData != y.HasData || x.Retry != y.Retry {
			return false
		}
	}
	return true
}

func mustEqual(t *testing.T, got, want []Event) {
	t.Helper()
	if !equalEvents(got, want) {
		t.Fatalf("events differ\n got %s\nwant %s", show(got), show(want))
	}
}

func show(evs []Event) string {
	var b strings.Builder
	for _, e := range evs {
		fmt.Fprintf(&b, "\n\tid %.40q %v type %.40q data[%d] %.80q %v retry %v",
			e.ID, e.HasID, e.Type, len(e.Data), e.Data, e.HasData, e.Retry)
	}
	return b.String()
}

// reference is the algorithm of WHATWG HTML 9.2.6 over a whole stream, written
// for likeness with its text and for nothing else.
func reference(stream string) []Event {
	stream = strings.TrimPrefix(stream, "\xEF\xBB\xBF")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	lines = lines[:len(lines)-1] // what follows the last line end is no line

	var evs []Event
	ev := Event{Retry: -1}
	for _, line := range lines {
		if line == "" {
			ev.Data = bytes.TrimSuffix(ev.Data, []byte("\n"))
			if ev.HasID || ev.HasData || ev.Retry >= 0 {
				evs = append(evs, ev)
			}
			ev = Event{Retry: -1}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "event":
			ev.Type = value
		case name == "data":
			ev.Data, ev.HasData = append(ev.Data, value+"\n"...), true
		case name == "id" && !strings.Contains(value, "\x00"):
			ev.ID, ev.HasID = value, true
		case name == "retry" && value != "" && strings.Trim(value, "0123456789") == "":
			var ms int64
			for _, c := range value {
				ms = min(ms*10+int64(c-'0'), math.MaxInt64/1_000_000)
			}
			ev.Retry = time.Duration(ms) * time.Millisecond
		}
	}
	return evs
}

func FuzzReaderCuts(f *testing.F) {
	for _, s := range []string{
		"data: {\"id\":1}\n\n",
		"\xEF\xBB\xBFid: 1\r\ndata:\r\n\r\ndata: x\r\rdata: y\n\r\n",
		": c\n\nevent: ping\ndata\ndata:  z\n\nretry: 10\n\nid\n\n",
		"data: a\r\r\n\ndata: b\n\n\xEF\xBB\xBFdata: c\n\n",
	} {
		f.Add([]byte(s), []byte{1}, uint8(255))
		f.Add([]byte(s), []byte{0, 3, 1, 2}, uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte, small uint8) {
		whole := string(stream)
		var left []string
		rest := whole
		for i := 0; rest != ""; i++ {
			n := 1 + i%windowSize
			if len(cuts) > 0 {
				n = max(int(cuts[i%len(cuts)]), i%2) // 0 is a Read of nothing
			}
			n = min(n, len(rest))
			left, rest = append(left, rest[:n]), rest[n:]
		}

		got, err := readAll(&pieces{left: left}, len(whole))
		if err != io.EOF {
			t.Fatalf("error %v, want EOF", err)
		}
		want, _ := readAll(strings.NewReader(whole), len(whole))
		mustEqual(t, got, want)
		mustEqual(t, got, reference(whole))

		// Under a small limit the events before the large one are the same too,
		// and so is the error.
		got, err = readAll(&pieces{left: cutEvery(whole, 1+len(cuts)%7)}, int(small))
		want, wantErr := readAll(strings.NewReader(whole), int(small))
		mustEqual(t, got, want)
		if !errors.Is(err, wantErr) {
			t.Fatalf("error %v cut, %v uncut", err, wantErr)
		}
		for _, ev := range got {
			if len(ev.Data) > int(small) {
				t.Fatalf("%d bytes of data above the limit of %d", len(ev.Data), small)
			}
		}
	})
}

func FuzzWriterReader(f *testing.F) {
	f.Add("1", "message", []byte(`{"jsonrpc":"2.0"}`), uint8(3))
	f.Add("", "", []byte("{\r\n\"a\":\n1}"), uint8(1))
	f.Add("a\nb", "x\r\ndata: y", []byte{}, uint8(9))
	f.Add(" a", " b", []byte(" c"), uint8(2))
	f.Fuzz(func(t *testing.T, id, typ string, data []byte, cut uint8) {
		block := string(AppendEvent([]byte("before"), id, typ, data))
		block, ok := strings.CutPrefix(block, "before")
		if !ok {
			t.Fatal("dst was changed")
		}
		block += string(AppendComment(nil, typ)) + string(AppendPriming(nil, "p"+id))

		strip := func(s string) string {
			return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(s)
		}
		want := []Event{
			{ID: strip(id), Type: strip(typ), HasData: true, Retry: -1},
			{ID: "p" + strip(id), HasID: true, HasData: true, Retry: -1},
		}
		want[0].HasID = want[0].ID != ""
		want[0].Data = []byte(strings.NewReplacer("\r", " ", "\n", " ").Replace(string(data)))

		// The limit counts data; an id or a type may be as long.
		limit := max(len(data), len(id), len(typ)) + 1
		got, err := readAll(&pieces{left: cutEvery(block, 1+int(cut))}, limit)
		if err != io.EOF {
			t.Fatalf("error %v, want EOF", err)
		}
		mustEqual(t, got, want)
	})
}
