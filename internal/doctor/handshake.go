package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// way leads to a server, on whichever transport.
type way interface {
	asker
	// tell sends a notification.
	tell(ctx context.Context, method string) error
	// negotiated says which revision the rest is spoken in.
	negotiated(r mcp.Revision)
}

// handshake opens a session and looks around in it. A nil error means that all
// is well.
func (x *exam) handshake(w way, limit time.Duration) error {
	err := x.open(w, limit)
	if err != nil || !slices.Contains(x.r.Capabilities, "tools") {
		return err
	}
	return x.tools(w, "")
}

// open opens a session.
func (x *exam) open(w way, limit time.Duration) error {
	began := time.Now()
	ctx, cancel := x.wait("initialize", limit)
	defer cancel()
	msg, err := w.ask(ctx, "initialize", `{"protocolVersion":"`+string(mcp.NewestHandshake)+`","capabilities":{},"clientInfo":`+clientInfo(x.o.Version)+"}")
	if err != nil {
		return err
	}
	if err := x.accept(w, &msg, time.Since(began)); err != nil {
		return err
	}
	return w.tell(ctx, "notifications/initialized")
}

// accept reads the answer to initialize.
func (x *exam) accept(w way, msg *wire.Message, took time.Duration) error {
	if msg.Error.Present() {
		return x.refused(msg)
	}
	var result struct {
		ProtocolVersion any                        `json:"protocolVersion"`
		Capabilities    map[string]json.RawMessage `json:"capabilities"`
		ServerInfo      serverInfo                 `json:"serverInfo"`
	}
	version := ""
	if err := json.Unmarshal(msg.Bytes(msg.Result), &result); err == nil {
		version, _ = result.ProtocolVersion.(string)
	}
	r := mcp.Revision(version)
	switch {
	case version == "":
		return &Finding{"no-version", "it answers initialize without a protocolVersion, so it is no MCP server, or a broken one: it said " +
			x.quote(string(msg.Bytes(msg.Result))) + "; check that this is the right program"}
	case !r.Handshake():
		return &Finding{"version", fmt.Sprintf("it answers initialize with the protocol version %s, which is none of the handshake era (%s); use another version of the server",
			x.quote(version), knownVersions())}
	}
	w.negotiated(r)
	x.learn(handshake, []mcp.Revision{r}, result.ServerInfo, result.Capabilities, took)
	return nil
}

// learn notes who the server is.
func (x *exam) learn(era string, versions []mcp.Revision, info serverInfo, can map[string]json.RawMessage, took time.Duration) {
	x.r.Eras = append(x.r.Eras, era)
	for _, v := range versions {
		if !slices.Contains(x.r.Revisions, string(v)) {
			x.r.Revisions = append(x.r.Revisions, string(v))
		}
	}
	if x.r.Name == "" {
		x.r.Name, x.r.Version = x.veil.text(info.Name, maxQuote), x.veil.text(info.Version, maxQuote)
	}
	if x.r.Capabilities == nil {
		for _, name := range slices.Sorted(maps.Keys(can)) {
			x.r.Capabilities = append(x.r.Capabilities, x.veil.text(name, maxQuote))
		}
	}
	if x.r.StartMillis == 0 {
		x.r.StartMillis = max(1, took.Milliseconds())
	}
}

func knownVersions() string {
	var list []string
	for _, r := range mcp.Handshakes() {
		list = append(list, string(r))
	}
	slices.Reverse(list)
	return strings.Join(list, ", ")
}

// rpcError is the error of a response.
type rpcError struct {
	Code    json.Number `json:"code"`
	Message string      `json:"message"`
	Data    struct {
		Supported []string `json:"supported"`
	} `json:"data"`
}

func readError(msg *wire.Message) (e rpcError) {
	raw := msg.Bytes(msg.Error)
	if json.Unmarshal(raw, &e) != nil { // data may be anything
		var short struct {
			Code    json.Number `json:"code"`
			Message string      `json:"message"`
		}
		_ = json.Unmarshal(raw, &short)
		e = rpcError{Code: short.Code, Message: short.Message}
	}
	return e
}

// refused is for an error in answer to initialize.
func (x *exam) refused(msg *wire.Message) *Finding {
	e := readError(msg)
	said := fmt.Sprintf("%s %s", e.Code, x.quote(e.Message))
	lower := strings.ToLower(e.Message)
	if e.Code.String() == fmt.Sprint(mcp.CodeUnsupportedVersion) || strings.Contains(lower, "version") && strings.Contains(lower, "protocol") {
		if len(e.Data.Supported) > 0 {
			said += ", it speaks " + x.veil.text(strings.Join(e.Data.Supported, ", "), maxQuote)
		}
		return &Finding{"version", "it refuses the protocol version " + string(mcp.NewestHandshake) + " instead of answering with one of its own (" + said + "); use a newer version of the server"}
	}
	return &Finding{"refused", "it answers initialize with an error (" + said + "); that is the server's own reason, so look into its configuration"}
}

// tools reads the list of tools; meta is the _meta member, or empty.
func (x *exam) tools(w asker, meta string) error {
	found := &Tools{Names: []string{}}
	seen := make(map[string]bool)
	twice, nameless := "", false
	cursor := ""
	for page := 1; ; page++ {
		next, names, err := x.page(w, meta, cursor)
		if err != nil {
			return err
		}
		for _, name := range names {
			found.Count++
			if nameless = nameless || name == ""; seen[name] {
				twice = name
			}
			seen[name] = true
			if len(found.Names) < maxNames {
				found.Names = append(found.Names, x.veil.text(name, maxQuote))
			}
		}
		if next == "" {
			break
		}
		if next == cursor || page == maxPages {
			x.note("tools-endless", fmt.Sprintf("its list of tools does not end: page %d still leads to another one; clients may ask for ever", page))
			break
		}
		cursor = next
	}
	x.r.Tools = found
	switch {
	case nameless:
		x.note("tools-nameless", "it has a tool without a name, which nobody can call")
	case twice != "":
		x.note("tools-twice", "it lists the tool "+x.quote(twice)+" twice, and clients may refuse its whole list")
	}
	return nil
}

// page reads one page of tools/list.
func (x *exam) page(w asker, meta, cursor string) (next string, names []string, err error) {
	var params []string
	if cursor != "" {
		params = append(params, `"cursor":`+string(wire.AppendQuote(nil, cursor)))
	}
	if meta != "" {
		params = append(params, meta)
	}
	ctx, cancel := x.wait("tools/list", listWait)
	defer cancel()
	msg, err := w.ask(ctx, "tools/list", "{"+strings.Join(params, ",")+"}")
	if err != nil {
		return "", nil, err
	}
	if msg.Error.Present() {
		e := readError(&msg)
		return "", nil, &Finding{"tools-error", fmt.Sprintf("it declares tools and answers tools/list with an error (%s %s); the server has to be mended", e.Code, x.quote(e.Message))}
	}
	var result struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		NextCursor *string `json:"nextCursor"`
	}
	if err := json.Unmarshal(msg.Bytes(msg.Result), &result); err != nil || result.Tools == nil {
		return "", nil, &Finding{"tools-shape", "it answers tools/list without a list of tools: it said " + x.quote(string(msg.Bytes(msg.Result))) + "; the server has to be mended"}
	}
	for _, tool := range result.Tools {
		names = append(names, tool.Name)
	}
	if result.NextCursor != nil {
		next = *result.NextCursor
	}
	return next, names, nil
}
