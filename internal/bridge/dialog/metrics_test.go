package dialog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := NewMetrics()
		x := newRig(t, func(cfg *Config) {
			cfg.Metrics = metrics
			cfg.Refresh = func(_ upstream.Request, done func(error)) { done(nil) }
		})
		defer x.finish()
		x.begin("2025-11-25", `{"roots":{}}`, `{"tools":{"listChanged":true}}`)

		x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
		x.asker.last().result(`{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}`)
		x.send(`{"jsonrpc":"2.0","id":` + x.question(0) + `,"result":{"roots":[]}}`)
		again := x.asker.last()
		again.says(`{"jsonrpc":"2.0","id":` + again.id() + `,"error":{"code":-32020,"message":"m"}}`)
		for range 2 {
			x.asker.last().result(`{"resultType":"input_required","requestState":"s"}`)
			time.Sleep(pace)
			synctest.Wait()
		}

		// A listen that cannot even be sent is tried again, too.
		x.asker.err = upstream.ErrBusy
		x.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		x.told()
		time.Sleep(backoffMin)
		synctest.Wait()
		x.want("server 7 ...")

		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(metrics)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]float64)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				key := f.GetName()
				for _, l := range m.GetLabel() {
					key += " " + l.GetValue()
				}
				got[key] = m.GetCounter().GetValue()
			}
		}
		for key, want := range map[string]float64{
			"signalbox_bridge_retries_total input srv": 1, "signalbox_bridge_retries_total headers srv": 1,
			"signalbox_bridge_retries_total state srv": 2, "signalbox_bridge_listens_lost_total srv": 1,
		} {
			if got[key] != want {
				t.Errorf("%s is %v, want %v (all: %v)", key, got[key], want, got)
			}
		}
	})
}
