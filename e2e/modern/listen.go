package modern

import (
	"context"
	"slices"
)

// Filter is what a client listens to.
type Filter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitempty"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitempty"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitempty"`
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitempty"`
}

// listener is one subscriptions/listen.
type listener struct {
	call   *Call
	events chan notification // room for what is published while one is written
}

// listen serves a subscription until the client leaves. The acknowledgement comes first.
func (s *Server) listen(ctx context.Context, c *Call) (Result, error) {
	l := &listener{call: c, events: make(chan notification, 100)}
	s.mu.Lock()
	if s.listeners == nil {
		s.listeners = make(map[*listener]bool)
	}
	s.listeners[l] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, l)
	}()
	c.notify("notifications/subscriptions/acknowledged", map[string]any{"notifications": c.Params.Notifications, "_meta": l.meta()})
	for {
		select {
		case n := <-l.events:
			c.send(n)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// meta names the subscription, as everything on it does.
func (l *listener) meta() map[string]any {
	return map[string]any{metaPrefix + "subscriptionId": l.call.ID}
}

// ToolsChanged tells those who listen to it.
func (s *Server) ToolsChanged() {
	s.publish("notifications/tools/list_changed", nil, func(f Filter) bool { return f.ToolsListChanged })
}

// PromptsChanged tells those who listen to it.
func (s *Server) PromptsChanged() {
	s.publish("notifications/prompts/list_changed", nil, func(f Filter) bool { return f.PromptsListChanged })
}

// ResourceUpdated tells those who listen to this URI.
func (s *Server) ResourceUpdated(uri string) {
	s.publish("notifications/resources/updated", map[string]any{"uri": uri}, func(f Filter) bool {
		return slices.Contains(f.ResourceSubscriptions, uri)
	})
}

func (s *Server) publish(method string, params map[string]any, wanted func(Filter) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		if !wanted(l.call.Params.Notifications) {
			continue
		}
		all := map[string]any{"_meta": l.meta()}
		for name, value := range params {
			all[name] = value
		}
		select {
		case l.events <- notification{JSONRPC: "2.0", Method: method, Params: all}:
		default: // a client so slow reads the list anew anyway
		}
	}
}
