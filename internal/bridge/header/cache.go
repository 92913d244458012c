package header

import (
	"container/list"
	"sync"
	"time"
)

// Cache remembers the schemas of tools for a minute, by scope: a server and for
// whom it lists them. The zero Cache is ready for use, by several goroutines at once.
type Cache struct {
	mu     sync.Mutex
	scopes recent[*recent[entry]]
}

type entry struct {
	schema  Schema
	learned time.Time
}

const (
	maxAge    = time.Minute
	maxScopes = 256
	maxTools  = 1024 // to a scope
)

// Learn takes the schemas of a page of tools/list, as ParseTools does. A tool with
// invalid annotations is known as one without any.
func (c *Cache) Learn(scope string, list []byte) {
	tools := parseTools(list)
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.scopes.get(scope)
	if !ok {
		if len(tools) == 0 {
			return
		}
		s = new(recent[entry])
		c.scopes.put(scope, s, maxScopes)
	}
	now := time.Now()
	for i := len(tools) - 1; i >= 0; i-- { // of one name the first one counts
		if len(tools[i].name) <= maxName {
			s.put(tools[i].name, entry{tools[i].schema, now}, maxTools)
		}
	}
}

// Get is what is known of a tool; false: its list has to be asked for.
func (c *Cache) Get(scope, tool string) (Schema, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.scopes.get(scope)
	if !ok {
		return Schema{}, false
	}
	e, ok := s.get(tool)
	if !ok || time.Since(e.learned) >= maxAge {
		return Schema{}, false
	}
	return e.schema, true
}

// Forget drops a scope: its list has changed, or its server has said that a header
// is wrong.
func (c *Cache) Forget(scope string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scopes.drop(scope)
}

// recent is a map that drops what was not used for the longest time.
type recent[V any] struct {
	at    map[string]*list.Element
	order list.List // of *pair[V], the last used one first
}

type pair[V any] struct {
	key   string
	value V
}

func (r *recent[V]) get(key string) (v V, ok bool) {
	e, ok := r.at[key]
	if !ok {
		return v, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*pair[V]).value, true
}

func (r *recent[V]) put(key string, v V, most int) {
	if e, ok := r.at[key]; ok {
		e.Value.(*pair[V]).value = v
		r.order.MoveToFront(e)
		return
	}
	if r.at == nil {
		r.at = make(map[string]*list.Element)
	}
	r.at[key] = r.order.PushFront(&pair[V]{key, v})
	if len(r.at) > most {
		r.drop(r.order.Back().Value.(*pair[V]).key)
	}
}

func (r *recent[V]) drop(key string) {
	if e, ok := r.at[key]; ok {
		r.order.Remove(e)
		delete(r.at, key)
	}
}
