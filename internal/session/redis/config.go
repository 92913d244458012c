package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Defaults of Config.
const (
	DefaultPrefix  = "signalbox"
	DefaultTimeout = 2 * time.Second
	defaultCache   = 64 << 20
)

// quietFor is how long a connection may say nothing before it is asked.
const quietFor = time.Second

// Config is what Open needs. URL and Key are required.
type Config struct {
	// URL tells where Redis is; user and password in it are percent-encoded.
	//
	//	redis://[USER:PASSWORD@]HOST[:PORT][/DB]
	//	redis+sentinel://[USER:PASSWORD@]HOST[:PORT],.../MASTER[/DB]
	//	redis+cluster://[USER:PASSWORD@]HOST[:PORT],...
	//
	// rediss instead of redis is TLS in each of them. User and password are those
	// of the Redis servers; Sentinels are asked without.
	URL string
	// Prefix begins each key; "" is DefaultPrefix. Replicas that share sessions
	// have the same one. No braces, spaces or control characters.
	Prefix string
	// Key seals the records: at least 32 bytes, the same for all replicas. OldKeys
	// still open what was sealed before Key was changed.
	Key     []byte
	OldKeys [][]byte
	// Timeout bounds every call; 0 is DefaultTimeout.
	Timeout time.Duration
	// TLS, where not nil, is used for URLs with rediss.
	TLS *tls.Config
	// CacheBytes bounds the copies of records held here; 0 is 64 MiB.
	CacheBytes int
	// Log gets a line for each change of the store's state; nil is none.
	Log *slog.Logger
	// Metrics, where not nil, counts.
	Metrics *Metrics
}

// withDefaults returns c with its defaults filled in, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if bad := strings.IndexFunc(c.Prefix, func(r rune) bool { return r <= ' ' || r == '{' || r == '}' || r == 0x7f }); bad >= 0 {
		return c, fmt.Errorf("redis: prefix %q: no braces, spaces or control characters may be in it", c.Prefix)
	}
	if c.Timeout < 0 || c.CacheBytes < 0 {
		return c, errors.New("redis: timeout and cache size must not be negative")
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = defaultCache
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	return c, nil
}

// options returns how rueidis is to connect.
func (c Config) options(t target, invalidate func([]rueidis.RedisMessage)) rueidis.ClientOption {
	o := rueidis.ClientOption{
		InitAddress: t.addrs,
		Username:    t.user,
		Password:    t.password,
		SelectDB:    t.db,
		// Not all servers know it, and it is only for show.
		ClientSetInfo: rueidis.DisableClientSetInfo,
		// One connection for each server, and in use from the start: a key's
		// invalidation then follows the reply that it makes old.
		PipelineMultiplex: -1,
		AlwaysPipelining:  true,
		// What was sent may have been done.
		DisableRetry:     true,
		Dialer:           net.Dialer{Timeout: c.Timeout, KeepAlive: quietFor},
		ConnWriteTimeout: c.Timeout,
		// Tracks all that is read, scripts included; not the rest.
		ClientTrackingOptions: []string{},
		OnInvalidations:       invalidate,
		ForceSingleClient:     t.mode == single,
		ClusterOption:         rueidis.ClusterOption{ShardsRefreshInterval: 10 * time.Second, MaxMovedRedirections: 5},
	}
	if t.tls {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if c.TLS != nil {
			o.TLSConfig = c.TLS.Clone()
		}
	}
	if t.mode == sentinel {
		o.Sentinel = rueidis.SentinelOption{
			MasterSet: t.master, Dialer: o.Dialer, TLSConfig: o.TLSConfig,
			TopologyRefreshInterval: 5 * time.Second,
		}
	}
	return o
}
