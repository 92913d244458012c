package redis

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

func TestRecordKeepsUnknownFields(t *testing.T) {
	r := session.Record{Principal: "p", Created: time.Unix(1, 2), Version: 3}
	newer := append(appendHead(nil, 99, 2), "xy"...)
	newer = append(newer, appendHead(nil, 1000, 0)...)
	got, unknown, err := parseRecord(appendRecord(nil, r, newer))
	if err != nil || !bytes.Equal(unknown, newer) || got.Principal != "p" {
		t.Fatalf("record %#v, unknown %q, error %v", got, unknown, err)
	}
	got.Principal = "q"
	got, unknown, err = parseRecord(appendRecord(nil, got, unknown))
	if err != nil || !bytes.Equal(unknown, newer) || got.Principal != "q" || got.Version != 3 || !got.Created.Equal(r.Created) {
		t.Errorf("written back: record %#v, unknown %q, error %v", got, unknown, err)
	}
}

func TestRecordMalformed(t *testing.T) {
	field := func(n uint64, v string) string { return string(append(appendHead(nil, n, len(v)), v...)) }
	created, version := field(fieldCreated, "\x02\x03"), field(fieldVersion, "\x01")
	if _, _, err := parseRecord([]byte(created + version)); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]string{
		"empty":              "",
		"no version":         created,
		"no time":            version,
		"field 0":            created + version + field(0, "x"),
		"number cut":         created + version + "\x80",
		"size missing":       created + version + "\x01",
		"value cut":          created + version + "\x01\x05abc",
		"huge size":          created + version + "\x01" + string(binary.AppendUvarint(nil, 1<<63)),
		"twice":              created + version + version,
		"time cut":           field(fieldCreated, "\x02") + version,
		"time too long":      field(fieldCreated, "\x02\x03\x04") + version,
		"time empty":         field(fieldCreated, "") + version,
		"nanoseconds":        field(fieldCreated, "\x02"+string(binary.AppendUvarint(nil, 1e9))) + version,
		"version empty":      created + field(fieldVersion, ""),
		"version too long":   created + field(fieldVersion, "\x01\x01"),
		"version overflowed": created + field(fieldVersion, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
	} {
		if r, _, err := parseRecord([]byte(in)); !errors.Is(err, ErrSealed) {
			t.Errorf("%s: %#v, error %v, want ErrSealed", name, r, err)
		}
	}
}

// What can be read is written as something that reads the same.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendRecord(nil, session.Record{Principal: "p", Subscriptions: []string{"", "x"}, Created: time.Unix(-5, 7), Version: 1 << 60}, nil))
	f.Add(appendRecord(nil, session.Record{Initialize: []byte("{}"), Created: time.Unix(5, 0)}, append(appendHead(nil, 77, 1), 'x')))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, unknown, err := parseRecord(in)
		if err != nil {
			if !errors.Is(err, ErrSealed) {
				t.Fatalf("error %v is no ErrSealed", err)
			}
			return
		}
		out := appendRecord(nil, r, unknown)
		again, unknown2, err := parseRecord(out)
		if err != nil {
			t.Fatalf("%q reads, but written back as %q not: %v", in, out, err)
		}
		if !bytes.Equal(unknown, unknown2) || !bytes.Equal(out, appendRecord(nil, again, unknown2)) {
			t.Fatalf("%q changes on its way: %q", in, out)
		}
	})
}

func FuzzSeen(f *testing.F) {
	f.Add("100 5 6")
	f.Add("100 -62135596800 0")
	f.Add("x")
	f.Fuzz(func(t *testing.T, in string) {
		idle, seen, err := parseSeen(in)
		if err != nil {
			return
		}
		idle2, seen2, err := parseSeen(millis(idle) + " " + formatSeen(seen))
		if err != nil || idle2 != idle || !seen2.Equal(seen) {
			t.Fatalf("%q is %v, %v; written back %v, %v, %v", in, idle, seen, idle2, seen2, err)
		}
	})
}
