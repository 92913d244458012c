package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/signalbox-mcp/signalbox/internal/admin"
)

// sessionsCmd lists the sessions of a running signalbox, or ends one.
type sessionsCmd struct {
	List listSessionsCmd `cmd:"" default:"withargs" help:"List the sessions; what sessions alone does."`
	End  endSessionCmd   `cmd:"" help:"End a session."`
}

type listSessionsCmd struct {
	adminFlags
	JSON bool `name:"json" help:"Print what the API says, as JSON."`
}

type endSessionCmd struct {
	adminFlags
	Hash string `arg:"" help:"The session as it stands in the list and in logs: eight hex digits."`
}

// serversCmd lists the servers of a running signalbox.
type serversCmd struct {
	adminFlags
	JSON bool `name:"json" help:"Print what the API says, as JSON."`
}

// adminFlags lead to the admin listener of a running signalbox.
type adminFlags struct {
	Admin          string `placeholder:"URL" help:"URL of its admin listener; if empty, the address in SIGNALBOX_ADMIN_LISTEN, else http://127.0.0.1:9090."`
	AdminTokenFile string `type:"path" placeholder:"FILE" help:"File with the token of that listener."`
}

const (
	defaultAdmin = "http://127.0.0.1:9090"
	adminTimeout = 15 * time.Second
	maxAnswer    = 64 << 20 // bytes of one answer
)

// base is where the admin listener is, without a slash at the end.
func (f *adminFlags) base() (string, error) {
	if f.Admin == "" {
		return adminAt(os.Getenv("SIGNALBOX_ADMIN_LISTEN"))
	}
	u, err := url.Parse(f.Admin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("--admin: %q is no http or https URL, as %s", f.Admin, defaultAdmin)
	}
	return strings.TrimSuffix(f.Admin, "/"), nil
}

// adminAt is the URL of a listener on this machine.
func adminAt(listen string) (string, error) {
	if listen == "" {
		return defaultAdmin, nil
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("SIGNALBOX_ADMIN_LISTEN: %q is no HOST:PORT; set --admin URL", listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// ask sends one request to the API and returns the body of its answer. Errors of
// the caller's settings are usageErrors.
func (f *adminFlags) ask(ctx context.Context, method, path string) ([]byte, error) {
	base, err := f.base()
	token := ""
	if err == nil && f.AdminTokenFile != "" {
		token, err = readToken(f.AdminTokenFile)
	}
	if err != nil {
		return nil, usageError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		return nil, usageError{err}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// A redirect could take the token elsewhere, and there is none here. One
	// request needs no connection that is kept, and no proxy.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no signalbox answers at %s: %w\nhint: start it with --admin-listen, and name its URL with --admin", base, cause(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s broke its answer off: %w", base, err)
	}
	return body, refusedBy(base, resp, body)
}

// cause leaves out what url.Error repeats: method and URL.
func cause(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func refusedBy(base string, resp *http.Response, body []byte) error {
	var failure admin.Failure
	switch {
	case resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNoContent:
		return nil
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s needs a token: set --admin-token-file to the file that it was started with", base)
	case json.Unmarshal(body, &failure) == nil && failure.Error != "":
		return errors.New(failure.Error)
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	return fmt.Errorf("%s answers %s: %s", base, resp.Status, printable(text[:min(len(text), 200)]))
}

func (c *listSessionsCmd) run(ctx context.Context, std streams) error {
	var list admin.SessionList
	return show(ctx, &c.adminFlags, "/api/v1/sessions", c.JSON, std, &list, func(w io.Writer) {
		if len(list.Sessions) == 0 {
			fmt.Fprintln(w, "no sessions")
			return
		}
		fmt.Fprintln(w, "SESSION\tSERVER\tPRINCIPAL\tCLIENT\tTRANSPORT\tREVISION\tAGE\tIDLE\tCALLS\tSTREAMS")
		for _, s := range list.Sessions {
			client := strings.TrimSpace(s.Client + " " + s.ClientVersion)
			revision := s.Revision
			if s.State == "opening" {
				revision = "opening"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", s.Session, s.Server, cell(s.Principal), cell(client), s.Transport,
				cell(revision), span(s.AgeSeconds), span(s.IdleSeconds), s.Calls, s.Streams)
		}
	})
}

func (c *serversCmd) run(ctx context.Context, std streams) error {
	var list admin.ServerList
	return show(ctx, &c.adminFlags, "/api/v1/servers", c.JSON, std, &list, func(w io.Writer) {
		fmt.Fprintln(w, "SERVER\tKIND\tSTATE\tSESSIONS\tSTARTED\tADDRESSES\tLAST FAILURE")
		for _, s := range list.Servers {
			kind := s.Kind
			if s.Isolation != "" {
				kind += ", " + s.Isolation
			}
			failure := ""
			if s.Failure != "" {
				failure = s.FailedAt.Local().Format(time.DateTime) + " " + s.Failure
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.Name, kind, s.State, s.Sessions, s.Started, addresses(s.Addresses), cell(failure))
		}
	})
}

// addresses says how many of them are up.
func addresses(list []admin.Address) string {
	if len(list) == 0 {
		return "-"
	}
	up := 0
	for _, a := range list {
		if !a.Down {
			up++
		}
	}
	return fmt.Sprintf("%d of %d up", up, len(list))
}

// show prints what the API says at a path: as it is, or as a table.
func show(ctx context.Context, f *adminFlags, path string, raw bool, std streams, into any, table func(io.Writer)) error {
	body, err := f.ask(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("what answers at --admin is no signalbox of this version: %w", err)
	}
	if raw {
		var out bytes.Buffer
		_ = json.Indent(&out, bytes.TrimSpace(body), "", "  ") // it was read as JSON just now
		out.WriteByte('\n')
		_, err := std.out.Write(out.Bytes())
		return err
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

var shortHash = regexp.MustCompile(`^[0-9a-f]{8}$`)

func (c *endSessionCmd) run(ctx context.Context, std streams) error {
	if !shortHash.MatchString(c.Hash) {
		return usageError{fmt.Errorf("%q is no session as signalbox sessions lists it: eight hex digits", c.Hash)}
	}
	if _, err := c.ask(ctx, http.MethodDelete, "/api/v1/sessions/"+c.Hash); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "session %s has ended\n", c.Hash)
	return nil
}

// cell is a text of a peer as one cell of a table on a terminal.
func cell(text string) string {
	const most = 60
	text = printable(text)
	if text == "" {
		return "-"
	}
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// printable leaves nothing in a text that a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, text)
}

// span is a time in the largest units that tell something.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
