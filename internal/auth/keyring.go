package auth

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	keysPoll = time.Second
	// youngFile: within this time of its last change a file is read again even
	// if it looks the same, for a clock of a file system may be that coarse.
	youngFile = 3 * time.Second
)

// keyring is the static keys of a file, read anew when it changes. A file that
// cannot be read changes nothing.
type keyring struct {
	path string // "" for no file
	log  *slog.Logger
	keys atomic.Pointer[map[digest]*Principal]

	mu   sync.Mutex
	seen fs.FileInfo // of the last read, nil if it failed
	read time.Time
	last string // the last error, so that it is logged once
}

// find returns whose key has this SHA-256, or nil. A map look-up suffices: the
// time it takes can tell nothing of use, since nobody chooses a digest.
func (k *keyring) find(sum digest) *Principal {
	keys := k.keys.Load()
	if keys == nil {
		return nil
	}
	return (*keys)[sum]
}

// reload reads the file whether or not it changed.
func (k *keyring) reload() error {
	if k.path == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.loadLocked()
}

func (k *keyring) loadLocked() error {
	k.seen, k.read = nil, time.Now()
	info, err := os.Stat(k.path) // before it is opened, for opening a pipe may wait for ever
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("key file %s: not a regular file", k.path)
	}
	f, err := os.Open(k.path)
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	defer f.Close()
	k.seen = info
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	keys, err := parseKeyFile(text)
	if err != nil {
		return fmt.Errorf("key file %s: %w", k.path, err)
	}
	k.keys.Store(&keys)
	return nil
}

// watch reads the file when it changed, until ctx ends.
func (k *keyring) watch(ctx context.Context) {
	ticker := time.NewTicker(keysPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.poll()
		}
	}
}

func (k *keyring) poll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.path)
	if err == nil && k.seen != nil && os.SameFile(info, k.seen) && info.Size() == k.seen.Size() &&
		info.ModTime().Equal(k.seen.ModTime()) && k.read.Sub(info.ModTime()) > youngFile {
		return
	}
	before := k.keys.Load()
	err = k.loadLocked()
	switch {
	case err != nil && err.Error() != k.last:
		k.last = err.Error()
		k.log.Error("the key file is not taken; the keys of before stay valid", "err", err)
	case err == nil && k.last != "":
		k.last = ""
		k.log.Info("the key file is good again", "count", len(*k.keys.Load()))
	case err == nil && !sameKeys(*before, *k.keys.Load()):
		k.log.Info("the key file was read anew", "count", len(*k.keys.Load()))
	}
}

// sameKeys tells whether nothing changed but perhaps scopes.
func sameKeys(a, b map[digest]*Principal) bool {
	if len(a) != len(b) {
		return false
	}
	for sum, p := range a {
		if q := b[sum]; q == nil || q.Subject != p.Subject {
			return false
		}
	}
	return true
}
