package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// veil takes out of a text what must not be shown.
type veil struct{ known *strings.Replacer }

const (
	masked = "***"
	// leastSecret is the length from which a configured value is hidden wherever
	// it stands. A shorter one is no secret that could be kept, and its letters
	// stand in every other word.
	leastSecret = 4
	// longestText bounds what of a line is looked at; of that, no more than
	// maxQuote is shown.
	longestText = 64 << 10
)

// newVeil knows the secrets of s, in each spelling in which a server may repeat
// them.
func newVeil(s Server) *veil {
	var all []string
	add := func(values ...string) {
		for _, v := range values {
			for line := range strings.SplitSeq(v, "\n") { // of a key in PEM, each
				line = strings.TrimSpace(line)
				inJSON, _ := json.Marshal(line)
				for _, form := range []string{line, url.QueryEscape(line), url.PathEscape(line), strings.Trim(string(inJSON), `"`)} {
					if len(form) >= leastSecret {
						all = append(all, form)
					}
				}
			}
		}
	}
	add(s.Secrets...)
	for name, values := range s.Header {
		for _, v := range values {
			if name == "Host" {
				continue
			}
			_, token, _ := strings.Cut(v, " ") // without Bearer
			add(v, token)
		}
	}
	if s.URL != nil {
		for _, values := range s.URL.Query() {
			add(values...)
		}
	}
	add(secretArgs(s.Program.Args)...)
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, secret := range slices.Compact(all) {
		pairs = append(pairs, secret, masked)
	}
	return &veil{strings.NewReplacer(pairs...)}
}

var (
	secretName = regexp.MustCompile(`(?i)key|token|secret|passw|pwd|credential|auth|dsn`)
	// What looks like a secret, whether it is known or not.
	secretShapes = regexp.MustCompile(`\b(?:sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|npm_)[A-Za-z0-9_-]{8,}|\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*`)
	bearerShape  = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/_.~=-]{8,}`)
	namedShape   = regexp.MustCompile(`(?i)((?:api[_-]?key|token|secret|password|passwd|pwd|access[_-]?key)["']?\s*[=:]\s*["']?)([^\s"',;&]{6,})`)
	urlShape     = regexp.MustCompile(`\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>()]+`)
	escapes      = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)")
)

// secretArgs are the values of arguments whose name tells that they are secret.
func secretArgs(args []string) []string {
	var found []string
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case !secretName.MatchString(name) || strings.Contains(name, "/"):
		case joined:
			found = append(found, value)
		case strings.HasPrefix(arg, "-") && i+1 < len(args):
			found = append(found, args[i+1])
		}
	}
	return found
}

// mask takes secrets out, and changes nothing else.
func (v *veil) mask(s string) string {
	s = v.known.Replace(s)
	s = secretShapes.ReplaceAllString(s, masked)
	s = bearerShape.ReplaceAllString(s, "$1 "+masked)
	s = urlShape.ReplaceAllStringFunc(s, hideInURL)
	return namedShape.ReplaceAllStringFunc(s, func(m string) string {
		part := namedShape.FindStringSubmatch(m)
		if !strings.ContainsAny(part[2], "0123456789") {
			return m // a word of a sentence
		}
		return part[1] + masked
	})
}

// text is one line that may be shown: no secrets, no control characters, at most
// limit characters.
func (v *veil) text(s string, limit int) string {
	s = strings.ToValidUTF8(s[:min(len(s), longestText)], "\uFFFD")
	s = strings.ReplaceAll(s, "\x00", "") // of UTF-16, in which a secret would not be found
	s = v.mask(escapes.ReplaceAllString(s, ""))
	runes := make([]rune, 0, min(len(s), limit+1))
	for _, c := range s {
		if c == '\t' || c == '\n' || c == '\r' {
			c = ' '
		}
		if c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			c = '?'
		}
		if runes = append(runes, c); len(runes) > limit {
			return strings.TrimSpace(string(runes[:limit])) + "..."
		}
	}
	return strings.TrimSpace(string(runes))
}

// hideInURL takes the user and the values of the query out of a URL.
func hideInURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return s[:strings.Index(s, "://")+3] + masked
	}
	return shownURL(u)
}

// shownURL is u without its user, the values of its query, and its fragment.
func shownURL(u *url.URL) string {
	text := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.User != nil {
		text = u.Scheme + "://" + masked + "@" + u.Host + u.EscapedPath()
	}
	if u.RawQuery != "" {
		var names []string
		for name := range u.Query() {
			names = append(names, url.QueryEscape(name)+"="+masked)
		}
		slices.Sort(names)
		text += "?" + strings.Join(names, "&")
	}
	return text
}

// target is how a server is reached, without what may be a secret: arguments may
// be.
func target(s Server) string {
	if s.URL != nil {
		text := shownURL(s.URL)
		if s.Address != nil {
			text += " at " + s.Address.Host
		}
		return text
	}
	args := s.Program.Args
	if len(args) == 0 {
		return ""
	}
	name := firstWord(args[0])
	switch n := len(args) - 1; n {
	case 0:
		return name
	case 1:
		return name + ", 1 argument"
	default:
		return fmt.Sprintf("%s, %d arguments", name, n)
	}
}

// firstWord is the program of a command that may be a whole shell line, with
// secrets in it.
func firstWord(command string) string {
	word, rest, more := strings.Cut(command, " ")
	if !more {
		return word
	}
	if name, _, assigns := strings.Cut(word, "="); assigns {
		return name + "=" + masked
	}
	if rest == "" || path.IsAbs(word) && !strings.Contains(rest, " ") && !strings.Contains(rest, "-") {
		return command // a path with a blank in it
	}
	return word
}
