package header

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Cache
		know := func(scope, tool string, params int) {
			t.Helper()
			s, known := c.Get(scope, tool)
			if known != (params >= 0) || len(s.params) != max(params, 0) {
				t.Errorf("%s of %s: %v %v", tool, scope, s, known)
			}
		}
		know("s", "good", -1)
		c.Learn("s", fmt.Appendf(nil, page, good+","+bad+`,{"name":"good"}`))
		time.Sleep(40 * time.Second)
		c.Learn("s", fmt.Appendf(nil, page, none)) // another page
		know("s", "good", 1)
		know("s", "bad", 0)
		know("s", "none", 0)
		know("s", "other", -1)
		know("t", "good", -1)
		time.Sleep(20 * time.Second)
		know("s", "good", -1)
		know("s", "none", 0)
		c.Learn("s", fmt.Appendf(nil, page, good+","+bad))
		c.Learn("t", fmt.Appendf(nil, page, good))
		know("s", "good", 1)
		c.Forget("s")
		c.Forget("u")
		know("s", "good", -1)
		know("s", "none", -1)
		know("t", "good", 1)
	})
}

// What was used last stays.
func TestCacheIsBounded(t *testing.T) {
	var c Cache
	one := fmt.Appendf(nil, page, good)
	for i := range maxScopes + 10 {
		c.Learn(strconv.Itoa(i), one)
		c.Get("0", "good")
	}
	for scope, want := range map[string]bool{"0": true, "1": false, "10": false, "11": true, strconv.Itoa(maxScopes + 9): true} {
		if _, known := c.Get(scope, "good"); known != want {
			t.Errorf("scope %s is known: %v", scope, known)
		}
	}
	c = Cache{}
	c.Learn("s", []byte(`{"tools":[`+good+`]}`))
	for i := range maxTools {
		c.Learn("s", fmt.Appendf(nil, `{"tools":[{"name":"%d"}]}`, i))
		c.Get("s", "good")
	}
	for tool, want := range map[string]bool{"good": true, "0": false, "1": true} {
		if _, known := c.Get("s", tool); known != want {
			t.Errorf("tool %s is known: %v", tool, known)
		}
	}
	if n := len(c.scopes.at["s"].Value.(*pair[*recent[entry]]).value.at); n != maxTools {
		t.Errorf("%d tools are kept", n)
	}
}

func TestCacheAtOnce(t *testing.T) {
	var c Cache
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				scope := strconv.Itoa(j % 5)
				c.Learn(scope, fmt.Appendf(nil, page, good))
				if s, known := c.Get(scope, "good"); known && len(s.params) != 1 {
					t.Errorf("got %v", s)
				}
				if i == 0 {
					c.Forget(scope)
				}
			}
		})
	}
	wg.Wait()
}
