package config

// Filter says which tools of a server are offered. In a pattern * stands for
// any characters and ? for one; all else stands for itself.
type Filter struct {
	Allow []string // empty: all
	Deny  []string // wins
}
