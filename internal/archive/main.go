// Command archive packs files so that the same files give the same bytes on
// every machine: sorted names, one time, no owners.
//
//	archive OUT.tar.gz|OUT.zip PREFIX FILE...
//
// Each FILE, or every file below it, stands in the archive as PREFIX and its
// path from the working directory. All have the time SOURCE_DATE_EPOCH, in
// seconds, or that of 1980-01-01, before which a zip has none.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: archive OUT.tar.gz|OUT.zip PREFIX FILE [FILE]")
	}
	when := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %q is no number of seconds", text)
		}
		when = time.Unix(seconds, 0).UTC()
	}
	files, err := below(args[2:])
	if err != nil {
		return err
	}
	out, err := os.Create(args[0])
	if err != nil {
		return err
	}
	pack := tarGz
	if strings.HasSuffix(args[0], ".zip") {
		pack = zipped
	}
	if err := pack(out, args[1], files, when); err != nil {
		_ = out.Close()
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return out.Close()
}

// below lists the files of paths and below them, sorted.
func below(paths []string) (files []string, err error) {
	for _, p := range paths {
		err := filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, filepath.ToSlash(name))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// mode is what a file has in an archive: programs can be run, all can be read.
func mode(info fs.FileInfo) int64 {
	if info.Mode()&0o100 != 0 || strings.HasSuffix(info.Name(), ".exe") {
		return 0o755
	}
	return 0o644
}

func tarGz(w io.Writer, prefix string, files []string, when time.Time) error {
	zw := gzip.NewWriter(w)
	tw := tar.NewWriter(zw)
	for _, name := range files {
		err := each(name, func(info fs.FileInfo) (io.Writer, error) {
			return tw, tw.WriteHeader(&tar.Header{Name: path.Join(prefix, name), Size: info.Size(), Mode: mode(info), ModTime: when, Typeflag: tar.TypeReg})
		})
		if err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

func zipped(w io.Writer, prefix string, files []string, when time.Time) error {
	zw := zip.NewWriter(w)
	for _, name := range files {
		err := each(name, func(info fs.FileInfo) (io.Writer, error) {
			h := &zip.FileHeader{Name: path.Join(prefix, name), Method: zip.Deflate, Modified: when}
			h.SetMode(fs.FileMode(mode(info)))
			return zw.CreateHeader(h)
		})
		if err != nil {
			return err
		}
	}
	return zw.Close()
}

// each copies one file to where begin says.
func each(name string, begin func(fs.FileInfo) (io.Writer, error)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w, err := begin(info)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
