package main

import (
	"testing"
)

// A mutant whose place has changed proves nothing: it is mended with the code.
func TestMutantsApply(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if _, err := m.overlay(root, t.TempDir()); err != nil {
			t.Errorf("%s %s: %v", m.item, m.what, err)
		}
	}
}
