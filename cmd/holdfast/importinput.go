package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

const (
	// mostLine is the longest line in bytes that is sent. A document has at most
	// 400 KB in the table; as JSON text full of escapes it has up to six times
	// that.
	mostLine = 3 << 20
	// keptOfLongLine is how much of a longer one the rejects show.
	keptOfLongLine = 1000
	// mostWindow bounds the memory that a zstd file may demand.
	mostWindow = 128 << 20
	// headBytes is how much of a file is compared before an import is resumed.
	headBytes = 64 << 10
)

// position is a place between two lines of an input.
type position struct {
	Line   int64 `json:"line"`   // lines, or elements of an array, before it
	Offset int64 `json:"offset"` // bytes before it, decompressed
}

// record is a line or an element of an input.
type record struct {
	line    int64 // from 1
	text    []byte
	tooLong bool // text is only its beginning
	end     position
}

// source gives the records of an input; io.EOF in the end. Blank lines are
// records too, with empty text, since they count.
type source interface {
	next() (record, error)
}

// input is an opened file or standard input.
type input struct {
	source
	array bool
	size  int64        // of the file, compressed as it may be; 0 when it is not known
	read  atomic.Int64 // bytes of the file that were read
	plain bool         // it is not compressed
	close func()
}

// position is how much of the file lies before a place: nearly, where it is
// compressed.
func (in *input) position(at position) int64 {
	if in.plain {
		return at.Offset
	}
	return in.read.Load()
}

// fingerprint tells files apart: size and a hash of the beginning.
type fingerprint struct {
	Size int64  `json:"size"`
	Head string `json:"head"`
}

func fingerprintOf(path string) (fingerprint, error) {
	f, err := os.Open(path)
	if err != nil {
		return fingerprint{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fingerprint{}, err
	}
	h := sha256.New()
	if _, err := io.CopyN(h, f, headBytes); err != nil && err != io.EOF {
		return fingerprint{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return fingerprint{Size: info.Size(), Head: hex.EncodeToString(h.Sum(nil)[:16])}, nil
}

// openInput opens a file, or for "-" reads stdin, decompresses what is
// compressed and goes to a position. array says of a position what the input
// was found to be; at the beginning it is found out.
func openInput(path string, stdin io.Reader, from position, array bool) (*input, error) {
	in := &input{close: func() {}}
	raw := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a directory", path)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		if info.Mode().IsRegular() {
			in.size = info.Size()
		}
		raw, in.close = f, func() { f.Close() }
	}
	if err := in.start(path, raw, from, array); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *input) start(path string, raw io.Reader, from position, array bool) error {
	counted := &counter{r: raw, n: &in.read}
	r := bufio.NewReaderSize(counted, 64<<10)
	plain, packed, err := decompress(path, r)
	if err != nil {
		return err
	}
	if in.plain = !packed; packed {
		file := in.close
		in.close = func() { plain.Close(); file() }
		r = bufio.NewReaderSize(plain, 256<<10)
	}
	if from == (position{}) {
		skipped, open, err := beginning(r)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		in.array = open
		if open {
			in.source = &arrayReader{r: r, at: position{Offset: skipped}}
			return nil
		}
		in.source = &lineReader{r: r, at: position{Offset: skipped}}
		return nil
	}
	in.array = array
	if err := in.skip(r, raw, packed, from.Offset); err != nil {
		return fmt.Errorf("going to where the import stopped in %s: %w", path, err)
	}
	if array {
		in.source = &arrayReader{r: r, at: from, later: true}
	} else {
		in.source = &lineReader{r: r, at: from}
	}
	return nil
}

// skip goes to an offset: a plain file by seeking, all else by reading.
func (in *input) skip(r *bufio.Reader, raw io.Reader, packed bool, offset int64) error {
	if f, ok := raw.(*os.File); ok && !packed && in.size > 0 {
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			return err
		}
		in.read.Store(offset)
		r.Reset(&counter{r: f, n: &in.read})
		return nil
	}
	_, err := io.CopyN(io.Discard, r, offset)
	return err
}

// decompress looks at the first bytes, because names can be wrong; a name that
// promises what the bytes do not keep is an error.
func decompress(path string, r *bufio.Reader) (plain io.ReadCloser, packed bool, err error) {
	magic, err := r.Peek(4)
	if err != nil && err != io.EOF {
		return nil, false, fmt.Errorf("reading %s: %w", path, err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", path, err)
		}
		return z, true, nil
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", path, err)
		}
		return z.IOReadCloser(), true, nil
	case len(magic) > 0 && (strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".zst")):
		return nil, false, fmt.Errorf("%s is not compressed as its name says", path)
	}
	return nil, false, nil
}

var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// beginning finds out whether the input is one JSON array. It passes over a
// byte order mark and, of an array, over all up to its bracket; of lines it
// passes over nothing else, since blank ones count.
func beginning(r *bufio.Reader) (skipped int64, array bool, err error) {
	if b, _ := r.Peek(len(byteOrderMark)); bytes.Equal(b, byteOrderMark) {
		_, _ = r.Discard(len(byteOrderMark))
		skipped = int64(len(byteOrderMark))
	}
	for n := 1; ; n++ {
		b, err := r.Peek(n)
		if err == io.EOF || errors.Is(err, bufio.ErrBufferFull) {
			return skipped, false, nil
		}
		if err != nil {
			return 0, false, err
		}
		switch b[n-1] {
		case ' ', '\t', '\r', '\n':
		case '[':
			_, err := r.Discard(n)
			return skipped + int64(n), true, err
		default:
			return skipped, false, nil
		}
	}
}

// counter counts what is read through it.
type counter struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// lineReader gives the lines of NDJSON.
type lineReader struct {
	r  *bufio.Reader
	at position
}

func (l *lineReader) next() (record, error) {
	var text []byte
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		l.at.Offset += int64(len(part))
		if !tooLong {
			text = append(text, part...)
			if len(bytes.TrimRight(text, "\r\n")) > mostLine {
				tooLong = true
				text = bytes.Clone(text[:keptOfLongLine])
			}
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(text) == 0:
			return record{}, io.EOF
		case err != nil && err != io.EOF:
			return record{}, err // a line that was cut off is no line
		}
		l.at.Line++
		return record{line: l.at.Line, text: bytes.TrimSpace(text), tooLong: tooLong, end: l.at}, nil
	}
}

// arrayReader gives the elements of a JSON array. It only finds where they end;
// whether they are JSON is for others to find out, so that a broken one is
// rejected without those behind it.
type arrayReader struct {
	r     *bufio.Reader
	at    position
	later bool // an element was given before, so a comma or the end must follow
	done  bool
}

func (a *arrayReader) byte() (byte, error) {
	b, err := a.r.ReadByte()
	if err == nil {
		a.at.Offset++
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// next gives the next element. Its end is where it stops, before a comma.
func (a *arrayReader) next() (record, error) {
	if a.done {
		return record{}, io.EOF
	}
	b, err := a.token()
	if err != nil {
		return record{}, err
	}
	if a.later && b == ',' {
		if b, err = a.token(); err != nil {
			return record{}, err
		}
	} else if b != ']' && a.later {
		return record{}, fmt.Errorf("the array is broken after element %d, at byte %d: %q stands where a comma or ] belongs", a.at.Line, a.at.Offset, b)
	}
	if b == ']' {
		a.done = true
		return record{}, a.nothingFollows()
	}
	a.later = true
	return a.element(b)
}

// token is the next byte that is no white space.
func (a *arrayReader) token() (byte, error) {
	for {
		b, err := a.byte()
		if err != nil {
			return 0, a.cutOff(err)
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return b, nil
	}
}

func (a *arrayReader) cutOff(err error) error {
	if err == io.ErrUnexpectedEOF {
		return fmt.Errorf("the array is cut off after element %d: %w", a.at.Line, err)
	}
	return err
}

func (a *arrayReader) nothingFollows() error {
	for {
		b, err := a.r.ReadByte()
		if err != nil {
			return err // io.EOF: as it should be
		}
		if b > ' ' {
			return fmt.Errorf("something follows the array, at byte %d", a.at.Offset)
		}
		a.at.Offset++
	}
}

// element reads up to the comma or bracket behind an element.
func (a *arrayReader) element(first byte) (record, error) {
	var text []byte
	tooLong, inString, escaped, depth := false, false, false, 0
	for b := first; ; {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = b == '\\'
			inString = b != '"'
		case b == '"':
			inString = true
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			depth--
		}
		if !tooLong {
			text = append(text, b)
			if len(text) > mostLine {
				tooLong, text = true, bytes.Clone(text[:keptOfLongLine])
			}
		}
		if depth < 0 {
			return record{}, fmt.Errorf("the array is broken in element %d, at byte %d", a.at.Line+1, a.at.Offset)
		}
		if !inString && depth == 0 {
			following, err := a.r.Peek(1)
			if err != nil {
				return record{}, a.cutOff(unexpected(err))
			}
			if following[0] == ',' || following[0] == ']' {
				break
			}
		}
		var err error
		if b, err = a.byte(); err != nil {
			return record{}, a.cutOff(err)
		}
	}
	a.at.Line++
	return record{line: a.at.Line, text: bytes.TrimSpace(text), tooLong: tooLong, end: a.at}, nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
