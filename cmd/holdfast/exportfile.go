package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// exportFile is the file an export goes to. Until everything is in it, it has
// another name, so that a file of the wanted name is always whole. It can be
// cut back to where a checkpoint was: compressed files are a sequence of
// pieces, each of which can be read on its own, and together they read as one.
type exportFile struct {
	path string
	file *os.File
	out  *bufio.Writer
	pack io.WriteCloser // nil: not compressed, or no piece is open
	made counting
}

func partOf(path string) string { return path + ".part" }

// openExport opens the unfinished file and cuts it back to its first n bytes.
func openExport(path string, n int64) (*exportFile, error) {
	f, err := os.OpenFile(partOf(path), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < n {
		err = fmt.Errorf("%s is shorter than the interrupted export left it", partOf(path))
	}
	if err == nil {
		err = f.Truncate(n)
	}
	if err == nil {
		_, err = f.Seek(n, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	e := &exportFile{path: path, file: f, made: counting{w: f, n: n}}
	e.out = bufio.NewWriterSize(&e.made, 256<<10)
	return e, nil
}

func (e *exportFile) Write(p []byte) (int, error) {
	if e.pack == nil {
		switch {
		case strings.HasSuffix(e.path, ".gz"):
			e.pack = gzip.NewWriter(e.out)
		case strings.HasSuffix(e.path, ".zst"):
			z, err := zstd.NewWriter(e.out, zstd.WithEncoderConcurrency(1))
			if err != nil {
				return 0, err
			}
			e.pack = z
		default:
			return e.out.Write(p)
		}
	}
	return e.pack.Write(p)
}

// checkpoint ends the piece and tells how long the file is.
func (e *exportFile) checkpoint() (int64, error) {
	if e.pack != nil {
		if err := e.pack.Close(); err != nil {
			return 0, err
		}
		e.pack = nil
	}
	if err := e.out.Flush(); err != nil {
		return 0, err
	}
	return e.made.n, nil
}

// finish gives the file its name.
func (e *exportFile) finish() error {
	if e.made.n == 0 && e.pack == nil && e.out.Buffered() == 0 {
		if _, err := e.Write(nil); err != nil { // an empty compressed file is not an empty file
			return err
		}
	}
	_, err := e.checkpoint()
	err = errors.Join(err, e.file.Close())
	if err != nil {
		return err
	}
	return os.Rename(partOf(e.path), e.path)
}
