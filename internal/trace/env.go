package trace

// Wanted tells whether the standard environment asks for traces.
func Wanted(lookup func(string) (string, bool)) bool {
	get := func(name string) string {
		v, _ := lookup(name)
		return v
	}
	if get("OTEL_SDK_DISABLED") == "true" || get("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return get("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}
