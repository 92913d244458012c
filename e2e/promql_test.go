package e2e

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/prometheus/promql/parser"
)

// query is an expression of the dashboard or of an alert.
type query struct {
	where string
	expr  string
	text  []string // that names labels of its result
}

// documentedMetrics are the labels of each metric in the table of docs/usage.md,
// which a test of cmd/signalbox holds equal to the registry.
func documentedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/usage.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics := make(map[string][]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `(signalbox_[a-z_]+)` \\| ([a-z_, ]*) ?\\| (.+) \\|$").FindAllStringSubmatch(string(text), -1) {
		names := []string{m[1]}
		labels := strings.FieldsFunc(m[2], func(c rune) bool { return c == ',' || c == ' ' })
		if strings.HasPrefix(m[3], "histogram") {
			names = []string{m[1] + "_bucket", m[1] + "_sum", m[1] + "_count"}
			labels = append(labels, "le")
		}
		for _, name := range names {
			metrics[name] = append(labels, "instance", "job")
		}
	}
	for _, name := range []string{"up", "go_goroutines", "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"} {
		metrics[name] = []string{"instance", "job"}
	}
	return metrics
}

func dashboardQueries(t *testing.T) (list []query) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	text, err := os.ReadFile("../deploy/grafana/signalbox.json")
	if err == nil {
		err = json.Unmarshal(text, &board)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			list = append(list, query{"panel " + p.Title, target.Expr, []string{target.LegendFormat}})
		}
	}
	values := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, v := range board.Templating.List {
		asked, ok := v.Query.(map[string]any)
		if !ok { // the data source
			continue
		}
		m := values.FindStringSubmatch(asked["query"].(string))
		if m == nil {
			t.Fatalf("variable %s: %v is not understood", v.Name, asked)
		}
		list = append(list, query{"variable " + v.Name, m[1], []string{"{{" + m[2] + "}}"}})
	}
	return list
}

func alertQueries(t *testing.T) (list []query) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert       string
				Expr        string
				For         string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile("../deploy/prometheus/alerts.yaml")
	if err == nil {
		err = yaml.UnmarshalWithOptions(text, &file, yaml.Strict())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
				t.Errorf("alert %s lacks a severity, a summary or an action", r.Alert)
			}
			list = append(list, query{"alert " + r.Alert, r.Expr, []string{r.Annotations["summary"], r.Annotations["action"]}})
		}
	}
	return list
}

// What the dashboard and the alerts ask for is PromQL, and names metrics and
// labels that there are.
func TestDashboardAndAlerts(t *testing.T) {
	metrics := documentedMetrics(t)
	dashboard, alerts := dashboardQueries(t), alertQueries(t)
	if len(metrics) < 40 || len(dashboard) < 30 || len(alerts) < 10 {
		t.Fatalf("%d metrics, %d queries of the dashboard, %d alerts: too few to be all", len(metrics), len(dashboard), len(alerts))
	}
	used := make(map[string]bool)
	for _, q := range append(dashboard, alerts...) {
		expr, err := parser.ParseExpr(strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$server", ".*").Replace(q.expr))
		if err != nil {
			t.Errorf("%s: %v", q.where, err)
			continue
		}
		var labels []string // of the metrics in it
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if s, ok := n.(*parser.VectorSelector); ok {
				have, known := metrics[s.Name]
				if !known {
					t.Errorf("%s: there is no metric %s", q.where, s.Name)
				}
				used[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(s.Name, "_bucket"), "_sum"), "_count")] = true
				labels = append(labels, have...)
				for _, m := range s.LabelMatchers {
					if m.Name != "__name__" && known && !slices.Contains(have, m.Name) {
						t.Errorf("%s: %s has no label %s", q.where, s.Name, m.Name)
					}
				}
			}
			return nil
		})
		result := labels
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if a, ok := n.(*parser.AggregateExpr); ok {
				for _, name := range a.Grouping {
					if !slices.Contains(labels, name) {
						t.Errorf("%s: no metric in it has the label %s", q.where, name)
					}
				}
				if a.Op != parser.TOPK {
					result = a.Grouping
				}
			}
			return nil
		})
		for _, text := range q.text {
			for _, m := range regexp.MustCompile(`\{\{ ?(?:\$labels\.)?(\w+) ?\}\}`).FindAllStringSubmatch(text, -1) {
				if !slices.Contains(result, m[1]) {
					t.Errorf("%s: its result has no label %s", q.where, m[1])
				}
			}
		}
	}
	for name := range metrics {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !used[base] && name != "up" {
			t.Errorf("neither the dashboard nor an alert uses %s", base)
		}
	}
}
