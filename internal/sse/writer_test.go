package sse

import (
	"testing"
	"time"
)

func TestAppend(t *testing.T) {
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"event", AppendEvent(nil, "s-1", "message", []byte(`{"id":1}`)),
			"id: s-1\nevent: message\ndata: {\"id\":1}\n\n"},
		{"event, data only", AppendEvent(nil, "", "", []byte("x")), "data: x\n\n"},
		{"event after others", AppendEvent([]byte("data: a\n\n"), "", "", []byte("b")), "data: a\n\ndata: b\n\n"},
		{"line breaks in data", AppendEvent(nil, "", "", []byte("{\r\n\"a\":\n1\r}")), "data: {  \"a\": 1 }\n\n"},
		{"line breaks in id and type", AppendEvent(nil, "a\nb\r\n", "c\r\ndata: d\x00", nil),
			"id: ab\nevent: cdata: d\ndata: \n\n"},
		{"nothing but line breaks in id and type", AppendEvent(nil, "\n", "\r", nil), "data: \n\n"},
		{"priming", AppendPriming(nil, "s-0"), "id: s-0\ndata: \n\n"},
		{"comment", AppendComment(nil, "keep-alive"), ": keep-alive\n\n"},
		{"comment with line breaks", AppendComment(nil, "a\ndata: b\r"), ": a data: b \n\n"},
		{"retry", AppendRetry(nil, 1500*time.Millisecond), "retry: 1500\n\n"},
		{"negative retry", AppendRetry(nil, -time.Second), "retry: 0\n\n"},
	}
	for _, tt := range tests {
		if string(tt.got) != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

// The data of the caller stays as it is, also where dst has room for more.
func TestAppendEventLeavesDataAlone(t *testing.T) {
	data := []byte("a\nb")
	AppendEvent(make([]byte, 0, 100), "", "", data)
	if string(data) != "a\nb" {
		t.Errorf("data became %q", data)
	}
}

func TestAppendEventDoesNotAllocate(t *testing.T) {
	buf, data := make([]byte, 0, 200), []byte("{\n}")
	n := testing.AllocsPerRun(100, func() { buf = AppendEvent(buf[:0], "id", "message", data) })
	if n != 0 {
		t.Errorf("AppendEvent allocates %v times into a buffer with room", n)
	}
}

func TestStartAndEndAreAnEvent(t *testing.T) {
	whole := AppendEvent(nil, "7", "message", []byte("{}"))
	parts := append(append(AppendStart(nil, "7", "message"), "{}"...), End...)
	if string(whole) != string(parts) {
		t.Errorf("in parts %q, whole %q", parts, whole)
	}
}
