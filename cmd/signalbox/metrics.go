package main

import "github.com/prometheus/client_golang/prometheus"

// buildInfo tells which version runs, as a label.
func buildInfo() prometheus.Collector {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "signalbox_build_info", Help: "Always 1; its label is the version that runs."}, []string{"version"})
	g.WithLabelValues(versionText()).Set(1)
	return g
}
