package cluster

import (
	"context"
	"time"
)

// Registry keeps one small value per replica under a lease, by the clock of the
// store.
//
// All methods may be called by any goroutine at any time; they may block for as
// long as ctx allows. Each gives session.ErrUnavailable where the store cannot
// tell or did not carry out (it may have all the same). From the moment a lease
// is over its value is not there, for no method; a store may be late by a
// second, never early. Values are copied on their way in and out.
type Registry interface {
	// Put sets the value of id, and starts its lease (> 0) anew.
	Put(ctx context.Context, id string, value []byte, lease time.Duration) error
	// Get returns the value of id. session.ErrNotFound when its lease is over or
	// it never was there.
	Get(ctx context.Context, id string) ([]byte, error)
	// List returns the values of all ids that live.
	List(ctx context.Context) (map[string][]byte, error)
	// Left returns how much is left of the lease of id. session.ErrNotFound as Get.
	Left(ctx context.Context, id string) (time.Duration, error)
	// Remove drops the value of id at once; none there is no error.
	Remove(ctx context.Context, id string) error
}
