package learn

import (
	"bufio"
	"errors"
	"io"
)

// maxString bounds the text of one JSON string. The rest of a longer one is dropped.
const maxString = 1 << 20

// cutMark ends the value of a string that was shortened.
const cutMark = "\x00stockgate: cut"

const cutMarkJSON = `\u0000stockgate: cut`

// shortener passes JSON on with its long strings shortened, so that a decoder never holds more
// than maxString of one.
type shortener struct {
	r        *bufio.Reader
	max      int    // bytes of a string
	out      []byte // not read yet
	inString bool
	escape   int // 1 behind a backslash; below 0: digits of \u that are still to come
	length   int // of the string
	cut      bool
}

func newShortener(r io.Reader) *shortener {
	return &shortener{r: bufio.NewReaderSize(r, 64<<10), max: maxString}
}

func (s *shortener) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// fill reads what is buffered, and shortens it.
func (s *shortener) fill() error {
	if _, err := s.r.Peek(1); err != nil {
		return err
	}
	buffered, _ := s.r.Peek(s.r.Buffered())
	s.out = make([]byte, 0, len(buffered)+len(cutMarkJSON))
	for _, c := range buffered {
		s.next(c)
	}
	_, err := s.r.Discard(len(buffered))
	return err
}

func (s *shortener) next(c byte) {
	switch {
	case !s.inString:
		s.inString = c == '"'
		s.length, s.cut, s.escape = 0, false, 0
		s.out = append(s.out, c)
		return
	case s.escape > 0:
		if s.escape--; s.escape == 0 && c == 'u' {
			s.escape = -4 // its digits
		}
	case s.escape < 0:
		s.escape++
	case c == '\\':
		s.escape = 1
	case c == '"':
		s.end()
		return
	}
	if s.length++; s.length > s.max && s.escape == 0 && !s.cut {
		s.cut = true
		s.out = append(s.out, c)
		return
	}
	if !s.cut {
		s.out = append(s.out, c)
	}
}

// end closes the string.
func (s *shortener) end() {
	s.inString = false
	if s.cut {
		s.out = append(s.out, cutMarkJSON...)
	}
	s.out = append(s.out, '"')
}

// entryReader bounds how much is read for one entry.
type entryReader struct {
	r    io.Reader
	left int
}

// errLongEntry says that a decoder would have to hold too much.
var errLongEntry = errors.New("one of its entries is too long to be read: export a shorter recording")

// reset begins another entry.
func (e *entryReader) reset() { e.left = maxEntry }

func (e *entryReader) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, errLongEntry
	}
	if len(p) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= n
	return n, err
}
