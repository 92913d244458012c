package buf

import "testing"

func TestPool(t *testing.T) {
	var p Pool
	for _, n := range []int{0, 1, 1 << 13, 1<<13 + 1, 1 << 14, 1<<14 + 1, 65536, 65537, 1 << 21, 1<<21 + 1} {
		b := p.Get(n)
		if len(b) != n {
			t.Errorf("Get(%d) has length %d", n, len(b))
		}
		p.Put(b)
		if again := p.Get(n); len(again) != n {
			t.Errorf("second Get(%d) has length %d", n, len(again))
		}
	}
}

// Little is wasted, and each size that Get makes is one that Put takes.
func TestSizes(t *testing.T) {
	for n := 1<<13 + 1; n <= 1<<21; n += 1 + n/97 {
		var p Pool
		b := p.Get(n)
		if c := cap(b); c < n || n > 1<<14 && c > n+n/4+1 {
			t.Errorf("Get(%d) has capacity %d", n, c)
		}
		class, size := classOf(cap(b))
		if size != cap(b) || class >= len(p.classes) {
			t.Errorf("capacity %d is that of class %d, whose size is %d", cap(b), class, size)
		}
	}
}

func TestPutRefusesParts(t *testing.T) {
	var p Pool
	b := p.Get(64 << 10)
	p.Put(b[1:])           // does not begin where the buffer does
	p.Put(b[:100:100])     // does not end where it does
	p.Put(make([]byte, 3)) // small
	for i := range p.classes {
		if p.classes[i].Get() != nil {
			t.Errorf("a part of a buffer got into class %d", i)
		}
	}
}
