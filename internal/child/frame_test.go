package child

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// cut feeds a stream to a framer in chunks whose sizes repeat, and records what comes.
func cut(stream []byte, maxLine int, chunks []byte) []string {
	var got []string
	f := framer{
		max:  maxLine,
		line: func(line []byte) { got = append(got, "line "+string(line)) },
		oversize: func(head, tail []byte, size int64) {
			got = append(got, fmt.Sprintf("over %d %q %q", size, head, tail))
		},
	}
	for i := 0; len(stream) > 0; i++ {
		space := f.space()
		if len(space) == 0 {
			panic("no space")
		}
		n := min(len(space), len(stream))
		if len(chunks) > 0 {
			n = min(n, 1+int(chunks[i%len(chunks)]))
		}
		copy(space, stream[:n])
		f.filled(n)
		stream = stream[n:]
	}
	return append(got, "rest "+string(f.partial()))
}

// naive says what the framer should, from the whole stream.
func naive(stream []byte, maxLine int) []string {
	var got []string
	pieces := bytes.Split(stream, []byte{'\n'})
	for i, line := range pieces[:len(pieces)-1] {
		if i == 0 {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		edge := min(len(line), edgeBytes)
		switch {
		case len(line) > maxLine:
			got = append(got, fmt.Sprintf("over %d %q %q", len(line), line[:edge], line[len(line)-edge:]))
		case len(bytes.Trim(line, " \t\n\v\f\r")) > 0:
			got = append(got, "line "+string(line))
		}
	}
	return got
}

func checkFraming(t *testing.T, stream []byte, maxLine int, chunks []byte) {
	t.Helper()
	want := naive(stream, maxLine)
	got := cut(stream, maxLine, chunks)
	if lines := got[:len(got)-1]; len(lines)+len(want) > 0 && !reflect.DeepEqual(lines, want) {
		t.Fatalf("max %d, chunks %v, stream %q:\n got %q\nwant %q", maxLine, chunks, stream, lines, want)
	}
	if whole := cut(stream, maxLine, nil); maxLine > partialMax && !reflect.DeepEqual(got, whole) {
		t.Fatalf("rest differs by chunks: %q, %q", got[len(got)-1], whole[len(whole)-1])
	}
}

func FuzzFraming(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n  \r\n\xEF\xBB\xBFc\nrest"), uint16(100), []byte{0, 1, 2})
	f.Add([]byte("\xEF\xBB\xBF{}\r\n\r\r\n"), uint16(2), []byte{0})
	f.Add([]byte("\xEF\xBB\xBF\n123\r\n1234\r\n12345\r\n"), uint16(3), []byte{3})
	f.Add(bytes.Repeat([]byte("0123456789abcdef"), 1000), uint16(0), []byte{255})
	f.Fuzz(func(t *testing.T, stream []byte, maxLine uint16, chunks []byte) {
		checkFraming(t, stream, int(maxLine), chunks)
	})
}

func TestFramingSizes(t *testing.T) {
	for _, size := range []int{1, 4095, 4096, 4097, 16<<10 - 1, 16 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 256 << 10, 600_000, 9 << 20} {
		stream := []byte("before\n" + string(pattern(size)) + "\nafter\n")
		checkFraming(t, stream, 16<<20, nil)
		checkFraming(t, stream, 5000, nil)
		if size < 1<<20 {
			checkFraming(t, stream, size, []byte{255, 0, 17})
			checkFraming(t, stream, size-1, []byte{255, 0, 17})
		}
	}
}

func TestFramingLinesAreFresh(t *testing.T) {
	var lines [][]byte
	f := framer{max: 1 << 20, line: func(line []byte) { lines = append(lines, line) }}
	for i := range 10 {
		n := copy(f.space(), strings.Repeat(fmt.Sprint(i), 100)+"\n")
		f.filled(n)
	}
	for i, line := range lines {
		if want := strings.Repeat(fmt.Sprint(i), 100); string(line) != want || cap(line) > 128 {
			t.Fatalf("line %d is %q, capacity %d", i, line, cap(line))
		}
	}
}

func TestFramingHugeLineIsLinear(t *testing.T) { // not parallel: it counts what is allocated
	const size = 32 << 20
	var got int
	f := framer{max: size, line: func(line []byte) { got = len(line) }}
	chunk := pattern(64 << 10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for left := size; left > 0; {
		n := copy(f.space(), chunk[:min(left, len(chunk))])
		f.filled(n)
		left -= n
	}
	f.space()[0] = '\n'
	f.filled(1)
	runtime.ReadMemStats(&after)
	if got != size {
		t.Fatalf("line of %d bytes", got)
	}
	// The parts and the line: in all that was allocated, freed or not.
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 2*size+2*readLargest {
		t.Errorf("%d bytes allocated for a line of %d", bytes, size)
	}
}
