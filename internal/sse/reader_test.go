package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// data is an event with nothing but data.
func data(s string) Event {
	return Event{Data: []byte(s), HasData: true, Retry: -1}
}

func TestReader(t *testing.T) {
	tests := []struct {
		name   string
		stream string
		want   []Event
	}{
		{"empty", "", nil},
		{"blank lines", "\n\r\n\r\r\n\n", nil},
		{"LF", "data: a\n\ndata: b\n\n", []Event{data("a"), data("b")}},
		{"CR", "data: a\r\rdata: b\r\r", []Event{data("a"), data("b")}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []Event{data("a"), data("b")}},
		{"mixed line ends", "data: a\r\ndata: b\n\rdata: c\r\n\n", []Event{data("a\nb"), data("c")}},
		{"multi-line data (field case 121)",
			"data: {\ndata: \"jsonrpc\":\"2.0\",\"id\":1,\ndata: \"result\":{}}\n\n",
			[]Event{data("{\n\"jsonrpc\":\"2.0\",\"id\":1,\n\"result\":{}}")}},
		{"comments (field case 123)",
			": keepalive\n\n:\n\ndata: {\n: between\ndata: }\n\n",
			[]Event{data("{\n}")}},
		{"event of another type (field case 123)", "event: ping\ndata: now\n\n",
			[]Event{{Type: "ping", Data: []byte("now"), HasData: true, Retry: -1}}},
		{"priming (field case 124)", "id: 1\ndata:\n\nid: 2\ndata: \n\nid: 3\n\n",
			[]Event{
				{ID: "1", HasID: true, HasData: true, Retry: -1},
				{ID: "2", HasID: true, HasData: true, Retry: -1},
				{ID: "3", HasID: true, Retry: -1},
			}},
		{"an id is not carried over", "id: 1\ndata: a\n\ndata: b\n\n",
			[]Event{{ID: "1", HasID: true, Data: []byte("a"), HasData: true, Retry: -1}, data("b")}},
		{"reset of the id", "id\n\nid:\n\n",
			[]Event{{HasID: true, Retry: -1}, {HasID: true, Retry: -1}}},
		{"id with NUL", "id: a\x00b\ndata: x\n\nid: y\nid: \x00\n\n",
			[]Event{data("x"), {ID: "y", HasID: true, Retry: -1}}},
		{"type without data is forgotten", "event: ping\n\ndata: a\n\n", []Event{data("a")}},
		{"last field wins", "event: a\nevent: b\nid: 1\nid: 2\ndata: x\n\n",
			[]Event{{ID: "2", HasID: true, Type: "b", Data: []byte("x"), HasData: true, Retry: -1}}},
		{"one space is stripped", "data:a\n\ndata:  b\n\ndata:\tc\n\ndata :d\n\n data: e\n\n",
			[]Event{data("a"), data(" b"), data("\tc")}},
		{"data without colon", "data\n\ndata\ndata\n\n", []Event{data(""), data("\n")}},
		{"unknown fields and case", "Data: a\nfoo: b\ndataset: c\n:data: d\ndata: e\n\n", []Event{data("e")}},
		{"colons in the value", "data: a: b:c\n\n", []Event{data("a: b:c")}},
		{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []Event{data("a")}},
		{"one byte order mark only", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", []Event{data("b")}},
		{"half a byte order mark", "\xEF\xBBdata: a\n\ndata: b\n\n", []Event{data("b")}},
		{"byte order mark before a comment", "\xEF\xBB\xBF: a\ndata: b\n\n", []Event{data("b")}},
		{"byte order mark alone", "\xEF\xBB\xBF", nil},
		{"unfinished event", "data: a\n\ndata: b\n", []Event{data("a")}},
		{"unfinished line", "data: a\n\ndata: b", []Event{data("a")}},
		{"not UTF-8", "data: \xFF\xC0\n\n", []Event{data("\xFF\xC0")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 5, 1 << 20} {
				got, err := readAll(&pieces{left: cutEvery(tt.stream, n)}, 1<<20)
				if err != io.EOF {
					t.Fatalf("cut every %d: error %v, want EOF", n, err)
				}
				mustEqual(t, got, tt.want)
			}
			// An EOF that comes with the last bytes loses none of them.
			got, err := readAll(iotest.DataErrReader(strings.NewReader(tt.stream)), 1<<20)
			if err != io.EOF {
				t.Fatalf("error %v, want EOF", err)
			}
			mustEqual(t, got, tt.want)
			mustEqual(t, reference(tt.stream), tt.want)
		})
	}
}

func TestReaderRetry(t *testing.T) {
	const none = -1
	tests := []struct {
		value string
		want  time.Duration
	}{
		{"0", 0},
		{"1500", 1500 * time.Millisecond},
		{"007", 7 * time.Millisecond},
		{"", none},
		{"-1", none},
		{"+1", none},
		{"1.5", none},
		{"1s", none},
		{" 1", none}, // the second space
		{"١", none},
		{strings.Repeat("9", 40), math.MaxInt64 / time.Millisecond * time.Millisecond},
	}
	for _, tt := range tests {
		got, _ := readAll(strings.NewReader("retry: "+tt.value+"\n\n"), 100)
		if tt.want == none {
			mustEqual(t, got, nil)
			continue
		}
		mustEqual(t, got, []Event{{Retry: tt.want}})
	}
}

// An event is delivered by its blank line and not by the byte that follows it or
// the end of the stream (field case 125).
func TestReaderReadsNoFurther(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n", "\n\r"} {
		src := &pieces{left: []string{"data: a" + end}}
		src.drained = func() { t.Errorf("%q: reads on before the event is delivered", end) }
		ev, err := NewReader(src, 100).Next()
		if err != nil {
			t.Fatal(err)
		}
		mustEqual(t, []Event{ev}, []Event{data("a")})
	}
}

func TestReaderReadsEachChunkOnce(t *testing.T) {
	src := &pieces{left: []string{"data: a\n\ndata: b\n\nda", "ta: c\n\n"}}
	r := NewReader(src, 100)
	for i, wantLeft := range []int{1, 1, 0} {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if len(src.left) != wantLeft {
			t.Fatalf("after event %d %d pieces are left, want %d", i, len(src.left), wantLeft)
		}
	}
}

// 80 KiB in 4 KiB pieces, with the cut at each place of a line end once (field
// case 126).
func TestReaderLargeEvent(t *testing.T) {
	large := strings.Repeat("x", 80<<10)
	want := []Event{data(large), data(large + "\n" + large), data("end")}
	for _, nl := range []string{"\n", "\r", "\r\n"} {
		stream := "data: " + large + nl + nl +
			"data: " + large + nl + "data: " + large + nl + nl +
			"data: end" + nl + nl
		for first := range 8 {
			cut := append([]string{stream[:first]}, cutEvery(stream[first:], 4<<10)...)
			got, err := readAll(&pieces{left: cut}, 2*len(large)+1)
			if err != io.EOF {
				t.Fatalf("error %v, want EOF", err)
			}
			mustEqual(t, got, want)
		}
	}
}

func TestReaderTooLarge(t *testing.T) {
	x := strings.Repeat("x", 100)
	tests := []struct {
		name    string
		stream  string
		tooLong bool
	}{
		{"at the limit", "data: " + x + "\n\n", false},
		{"at the limit without space", "data:" + x + "\n\n", false},
		{"above", "data: " + x + "x\n\n", true},
		{"above without space", "data:" + x + "x\n\n", true},
		{"above, unfinished", "data: " + x + "x", true},
		{"lines at the limit", "data: " + x[1:] + "\ndata:\n\n", false},
		{"lines above", "data: " + x[1:] + "\ndata: x\n\n", true},
		{"empty lines above", strings.Repeat("data\n", 102) + "\n", true},
		{"long type", "event: " + x + x + "\ndata: a\n\n", true},
		{"long unknown field", x + x + "\n\n", true},
		{"comment above", ":" + x + x + "\ndata: a\n\n", false},
		{"long comment", ":" + strings.Repeat(x, 1000) + "\ndata: a\n\n", false},
		{"events do not add up", strings.Repeat("data: "+x+"\n\n", 5), false},
	}
	for _, tt := range tests {
		for _, n := range []int{1, 7, 1 << 20} {
			t.Run(fmt.Sprint(tt.name, n), func(t *testing.T) {
				r := NewReader(&pieces{left: cutEvery(tt.stream, n)}, len(x))
				var err error
				for err == nil {
					_, err = r.Next()
				}
				want := io.EOF
				if tt.tooLong {
					want = ErrTooLarge
				}
				if err != want {
					t.Fatalf("error %v, want %v", err, want)
				}
				if _, again := r.Next(); again != err {
					t.Fatalf("then error %v, want %v again", again, err)
				}
			})
		}
	}
}

// A line that never ends does not take more memory than the limit.
func TestReaderEndless(t *testing.T) {
	endless := iotest.ErrReader(nil) // 0 bytes, no error, forever
	if _, err := NewReader(endless, 10).Next(); err != io.ErrNoProgress {
		t.Errorf("silent source: error %v, want ErrNoProgress", err)
	}
	src := io.MultiReader(strings.NewReader("data: "), zeros{})
	if _, err := NewReader(src, 1<<20).Next(); err != ErrTooLarge {
		t.Errorf("endless line: error %v, want ErrTooLarge", err)
	}
	src = io.MultiReader(strings.NewReader(": "), io.LimitReader(zeros{}, 64<<20), strings.NewReader("\ndata: a\n\n"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := NewReader(src, 100).Next(); err != nil {
		t.Errorf("long comment: %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("a long comment takes %d bytes", n)
	}
}

func TestReaderKeepsNoLargeLine(t *testing.T) {
	large := strings.Repeat("x", 3*windowSize)
	r := NewReader(strings.NewReader("data: a\ndata: "+large+"\n\n"), 1<<20)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if cap(r.line) > windowSize {
		t.Errorf("%d bytes are kept of a line that was delivered", cap(r.line))
	}
}

func TestReaderLimits(t *testing.T) {
	got, err := readAll(strings.NewReader("data: a\n\n"), math.MaxInt)
	if err != io.EOF {
		t.Errorf("no limit: error %v, want EOF", err)
	}
	mustEqual(t, got, []Event{data("a")})
	for _, limit := range []int{0, -1, math.MinInt} {
		got, err := readAll(strings.NewReader("data:\n\ndata: a\n\n"), limit)
		if err != ErrTooLarge {
			t.Errorf("limit %d: error %v, want ErrTooLarge", limit, err)
		}
		mustEqual(t, got, []Event{data("")})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestReaderSourceError(t *testing.T) {
	broken := errors.New("connection reset")
	got, err := readAll(&pieces{left: []string{"data: a\n\ndata: b\n"}, err: broken}, 100)
	if err != broken {
		t.Errorf("error %v, want %v", err, broken)
	}
	mustEqual(t, got, []Event{data("a")})
}

func TestReaderDataIsFresh(t *testing.T) {
	large := strings.Repeat("y", 3*windowSize)
	got, _ := readAll(strings.NewReader("data: a\n\ndata: "+large+"\n\ndata: b\n\n"), len(large))
	for i := range got {
		got[i].Data = append(got[i].Data[:0], bytes.Repeat([]byte("z"), cap(got[i].Data))...)
	}
	for i, ev := range got {
		if strings.Trim(string(ev.Data), "z") != "" {
			t.Errorf("event %d shares its data", i)
		}
	}
}
