package sse

import (
	"bytes"
	"fmt"
	"testing"
)

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{200, 80 << 10, 4 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			stream := string(AppendEvent(nil, "1", "message", bytes.Repeat([]byte("x"), size)))
			cut := cutEvery(stream, 4<<10)
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(&pieces{left: append([]string(nil), cut...)}, size)
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
