package child

import (
	"os"
	"path/filepath"
	"strings"
)

// executable returns path with the first extension of PATHEXT under which it is
// a file, else the empty string.
func executable(path string, env []string) string {
	list, ok := lookupEnv(env, "PATHEXT")
	if !ok || list == "" {
		list = ".com;.exe;.bat;.cmd"
	}
	var candidates []string
	if filepath.Ext(path) != "" {
		candidates = append(candidates, path)
	}
	for ext := range strings.SplitSeq(strings.ToLower(list), ";") {
		if strings.HasPrefix(ext, ".") {
			candidates = append(candidates, path+ext)
		}
	}
	for _, c := range candidates {
		if info, err := os.Stat(c); err == nil && !info.IsDir() {
			return c
		}
	}
	return ""
}
