package main

import "testing"

func TestFlagName(t *testing.T) {
	for field, want := range map[string]string{
		"Listen": "listen", "AdminListen": "admin-listen", "PublicURL": "public-url", "TLSCert": "tls-cert", "TLSClientCA": "tls-client-ca",
		"MaxCallsPerPrincipal": "max-calls-per-principal",
	} {
		if got := flagName(field); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
}
