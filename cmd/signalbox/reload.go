package main

import (
	"errors"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"
)

// lookEvery is how often the file is looked at. A change counts when two looks
// see the same, so that no half-written file is read.
const lookEvery = time.Second

// fileStamp tells two states of a file apart. The file may be a symbolic link
// that is pointed elsewhere, as that of a mounted ConfigMap is.
type fileStamp struct {
	info os.FileInfo
	gone bool
}

func stamp(path string) fileStamp {
	info, err := os.Stat(path)
	return fileStamp{info, err != nil}
}

func (f fileStamp) same(o fileStamp) bool {
	if f.gone || o.gone {
		return f.gone == o.gone
	}
	return os.SameFile(f.info, o.info) && f.info.ModTime().Equal(o.info.ModTime()) && f.info.Size() == o.info.Size()
}

// watch reloads the servers when the file changes or SIGHUP comes.
func (a *app) watch(began *serveCmd, again reparse) (stop func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		loaded := stamp(began.Config)
		seen := loaded
		for {
			select {
			case <-end:
				return
			case <-hup:
				loaded = stamp(began.Config)
				a.reload(began, again)
			case <-tick.C:
				now := stamp(began.Config)
				settled := now.same(seen)
				seen = now
				if settled && !now.same(loaded) {
					loaded = now
					a.reload(began, again)
				}
			}
		}
	})
	return func() {
		signal.Stop(hup)
		close(end)
		wg.Wait()
	}
}

// hangups is watch where there is no file: SIGHUP, which would end the process
// otherwise, does what it can.
func (a *app) hangups() (stop func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-hup:
				a.renew()
			}
		}
	})
	return func() {
		signal.Stop(hup)
		close(end)
		wg.Wait()
	}
}

// renew reads the keys again and opens the audit log anew.
func (a *app) renew() {
	if err := a.auth.Reload(); err != nil {
		a.log.Error("the keys of before stay valid", "err", err)
	}
	if err := a.audit.Reopen(); err != nil {
		a.log.Error("the audit log of before stays in use", "err", err)
	}
}

// reload makes the servers of the file those that are offered. A file that is
// wrong changes nothing.
func (a *app) reload(began *serveCmd, again reparse) {
	next, err := again()
	var specs []spec
	if err == nil {
		specs, err = next.check()
	}
	if err == nil && next.file == nil {
		err = errors.New("the file is no longer named")
	}
	if err != nil {
		a.log.Error("configuration not reloaded, what was loaded before stays in force", "file", began.Config, "err", err)
		return
	}
	next.warn(specs, a.log)
	if fixed := restartNeeded(began, next); len(fixed) > 0 {
		a.log.Warn("these settings have changed and need a restart", "settings", strings.Join(fixed, ", "))
	}
	a.renew()
	changed := a.offer(specs)
	a.log.Info("configuration reloaded", "file", began.Config, "count", len(specs), "changed", changed)
}

// restartNeeded names the settings that differ and are not a server's.
func restartNeeded(old, next *serveCmd) []string {
	return differing(reflect.ValueOf(*old), reflect.ValueOf(*next))
}

// differing looks into the groups of flags, too.
func differing(x, y reflect.Value) (list []string) {
	for i := range x.NumField() {
		f := x.Type().Field(i)
		switch {
		case f.Name == "SessionIdle", f.Name == "SessionMaxAge", f.Name == "Isolation", f.Name == "limitFlags": // the defaults of servers
		case f.Anonymous:
			list = append(list, differing(x.Field(i), y.Field(i))...)
		case f.IsExported() && !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()):
			list = append(list, flagName(f.Name))
		}
	}
	return list
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// flagName is AdminListen as admin-listen, and TLSCert as tls-cert.
func flagName(field string) string {
	var b strings.Builder
	for i, c := range field {
		after := i+1 < len(field) && isLower(field[i+1])
		if i > 0 && !isLower(byte(c)) && (isLower(field[i-1]) || after) {
			b.WriteByte('-')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}
