package child

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// cutTransaction cuts a transaction off the end of the append-only file that has not its EXEC: no answer was given to it. The
// server cuts only what is no whole command, and where that is in a transaction it leaves the commands before: what it
// appends becomes part of it, and the next start applies both.
func (s *Server) cutTransaction() error {
	last, ok := newest(s.dir)
	if !ok {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(s.dir, appendDir, last.name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	at, err := openTransaction(f)
	if err != nil || at < 0 {
		return err
	}
	if err := errors.Join(f.Truncate(at), f.Sync()); err != nil {
		return fmt.Errorf("the transaction at the end of %s cannot be cut off: %w", last.name, err)
	}
	s.wasCut(last, at)
	return nil
}

// openTransaction returns where the transaction begins that a file ends in; -1: in none. A file of another format is the
// server's to refuse.
func openTransaction(file io.Reader) (at int64, err error) {
	r := &commands{from: bufio.NewReaderSize(file, 1<<20)}
	for at = -1; ; {
		begins := r.read
		name, err := r.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return at, nil
		case errors.Is(err, errFormat):
			return -1, nil
		case err != nil:
			return -1, err
		case bytes.EqualFold(name, []byte("MULTI")):
			at = begins
		case bytes.EqualFold(name, []byte("EXEC")):
			at = -1
		}
	}
}

var errFormat = errors.New("it is no append-only file")

// commands reads an append-only file.
type commands struct {
	from *bufio.Reader
	read int64 // bytes
}

// next returns the name of the next command, if it is short.
func (c *commands) next() (name []byte, err error) {
	n, err := c.number('*')
	for i := int64(0); i < n && err == nil; i++ {
		var size int64
		if size, err = c.number('$'); err != nil {
			break
		}
		if i == 0 && size < 16 {
			name = make([]byte, size)
			_, err = io.ReadFull(c.from, name)
			c.read += size
			size = 0
		}
		if err == nil {
			var skipped int
			skipped, err = c.from.Discard(int(size) + 2)
			c.read += int64(skipped)
		}
	}
	return name, err
}

// number reads a line of a kind.
func (c *commands) number(kind byte) (int64, error) {
	line, err := c.from.ReadSlice('\n')
	c.read += int64(len(line))
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, errFormat
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(bytes.TrimSuffix(line[1:], []byte("\r\n"))), 10, 32)
	if line[0] != kind || err != nil || n < 0 {
		return 0, errFormat
	}
	return n, nil
}
