package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

func TestSubscriptions(t *testing.T)     { transcripts(t, "subscribe*.txtar") }
func TestSharedProcess(t *testing.T)     { transcripts(t, "shared-*.txtar") }
func TestProcessOfASession(t *testing.T) { transcripts(t, "session-*.txtar") }

// transcripts runs the files that match the pattern, each as a subtest.
func transcripts(t *testing.T, pattern string) {
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcript %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { runTranscript(t, string(text)) })
		})
	}
}
