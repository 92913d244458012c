package child

import (
	"errors"
	"io"
)

// Lines reads r to its end and hands over its lines as a Process would: cut at
// LF, without a CR, a byte order mark or blank lines, those above max bytes by
// oversize. The error is nil at the end of r.
func Lines(r io.Reader, max int, line func([]byte), oversize func(head, tail []byte, size int64)) error {
	f := framer{max: max, line: line, oversize: oversize}
	for {
		n, err := r.Read(f.space())
		if n > 0 {
			f.filled(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
