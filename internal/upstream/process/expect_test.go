package process

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing/synctest"
)

// expand puts ROUTEs in for their names.
func (s *script) expand(line string) string {
	return routeName.ReplaceAllStringFunc(line, func(name string) string {
		route, ok := s.routes[name]
		if !ok {
			s.t.Fatalf("step %q: %s was not seen before", s.step, name)
		}
		return route
	})
}

var routeName = regexp.MustCompile(`\$[a-z]+[0-9]*`)

const aRoute = `([A-Za-z0-9_-]{22}\.[0-9a-z]+)`

// expect compares what came, in order; only calls that end together do so in
// any order.
func (s *script) expect(who string, got, want []string) {
	s.t.Helper()
	got, want = sortEnds(got), sortEnds(want)
	for i := 0; i < len(got) || i < len(want); i++ {
		switch {
		case i == len(got):
			s.t.Fatalf("step %q: %s should also get\n\t%s", s.step, who, want[i])
		case i == len(want):
			s.t.Fatalf("step %q: %s also got\n\t%s", s.step, who, got[i])
		case !s.matches(got[i], want[i]):
			s.t.Fatalf("step %q: %s got\n\t%s\nwant\n\t%s", s.step, who, got[i], want[i])
		}
	}
}

// sortEnds sorts each run of errors.
func sortEnds(lines []string) []string {
	lines = slices.Clone(lines)
	for from := 0; from < len(lines); from++ {
		to := from
		for to < len(lines) && isEnd.MatchString(lines[to]) {
			to++
		}
		slices.Sort(lines[from:to])
		from = max(from, to-1)
	}
	return lines
}

var isEnd = regexp.MustCompile(`^#[0-9]+ error `)

// matches compares a line and gives ROUTEs that are new their names.
func (s *script) matches(got, want string) bool {
	var unknown []string
	pattern := regexp.QuoteMeta(want)
	for _, name := range routeName.FindAllString(want, -1) {
		quoted := regexp.QuoteMeta(name)
		if route, ok := s.routes[name]; ok {
			pattern = strings.Replace(pattern, quoted, regexp.QuoteMeta(route), 1)
		} else {
			unknown = append(unknown, name)
			pattern = strings.Replace(pattern, quoted, aRoute, 1)
		}
	}
	m := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(got)
	if m == nil {
		return false
	}
	for i, name := range unknown {
		if old, again := s.routes[name]; again && old != m[i+1] {
			return false
		}
		for other, route := range s.routes {
			if route == m[i+1] && other != name {
				s.t.Fatalf("step %q: %s and %s are one ROUTE", s.step, name, other)
			}
		}
		s.routes[name] = m[i+1]
	}
	return true
}

func (s *script) checkDrops(body []string) {
	s.t.Helper()
	now := s.w.dropped()
	var got []string
	for _, reason := range slices.Sorted(maps.Keys(now)) {
		if n := now[reason] - s.drops[reason]; n > 0 {
			got = append(got, fmt.Sprintf("%s %d", reason, n))
		}
	}
	s.drops = now
	s.expect("the counters", got, body)
}

// sentinels proves that nothing came but what the transcript shows: on every
// stream the next thing is the sentinel.
func (s *script) sentinels() {
	s.step = "sentinel"
	for _, c := range s.clients {
		if c.ended || c.hub() == nil || c.conn.(*conn).ended {
			s.expect("client "+c.name, c.got, nil)
			continue
		}
		n := len(c.sinks)
		s.send(c, `{"jsonrpc":"2.0","id":"last","method":"x/sentinel"}`)
		synctest.Wait()
		s.runServer([]string{"gets"}, []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":"$%slast|s:last","method":"x/sentinel"}`, c.name)})
		s.runServer([]string{"says"}, []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":"$%slast|s:last","result":"sentinel"}`, c.name)})
		c.events.set(true)
		s.runServer([]string{"says"}, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`})
		s.expect("client "+c.name, c.got, []string{
			fmt.Sprintf(`#%d reply {"jsonrpc":"2.0","id":"last","result":"sentinel"}`, n),
			`events loose {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		})
		c.got = nil
		// It came to all sessions of a shared process; each is looked at in turn.
		for _, other := range s.clients {
			if m := len(other.got); m > 0 && other != c && strings.HasSuffix(other.got[m-1], `"notifications/tools/list_changed"}`) {
				other.got = other.got[:m-1]
			}
		}
	}
}
