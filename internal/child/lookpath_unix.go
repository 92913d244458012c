//go:build unix

package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// executable returns path if it can be run, else the empty string.
func executable(path string, _ []string) string {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 || unix.Access(path, unix.X_OK) != nil {
		return ""
	}
	return path
}
