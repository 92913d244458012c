package config

import "strings"

// Nearest is the known word that word was probably meant to be, "" if none is
// near. Case, hyphens and underscores do not count. Near is a few typing
// mistakes, one for each three letters, or else a word that begins the other.
func Nearest(word string, known []string) string {
	w := plain(word)
	if w == "" || len(w) > 64 { // longer than any key; distances are quadratic
		return ""
	}
	best, least := "", max(1, min(3, len(w)/3))+1
	for _, k := range known {
		if d := distance(w, plain(k)); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return best
	}
	least = 64
	for _, k := range known {
		p := plain(k)
		short, long := min(len(p), len(w)), max(len(p), len(w))
		if short >= 3 && p[:short] == w[:short] && long-short < least {
			best, least = k, long-short
		}
	}
	return best
}

func plain(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// distance counts the letters to put in, take out, change, or swap with the
// next (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
