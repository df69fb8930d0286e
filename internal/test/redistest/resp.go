package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxBulk is the longest string that Redis itself accepts.
const maxBulk = 512 << 20

// encode writes one command in the protocol of Redis (RESP).
func encode(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// readFrame reads one whole command or reply, RESP2 or RESP3, as raw bytes.
func readFrame(r *bufio.Reader) ([]byte, error) {
	return appendFrame(nil, r)
}

func appendFrame(b []byte, r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	b = append(b, line...)
	switch kind := line[0]; kind {
	case '$', '=', '!': // a string, with its length ahead
		n, err := length(line)
		if err != nil || n < 0 {
			return b, err
		}
		if n > maxBulk {
			return nil, fmt.Errorf("a string of %d bytes in RESP: longer than Redis allows", n)
		}
		start := len(b)
		b = append(b, make([]byte, n+2)...)
		_, err = io.ReadFull(r, b[start:])
		return b, err
	case '*', '~', '>', '%', '|': // a collection, with its size ahead
		n, err := length(line)
		if err != nil {
			return nil, err
		}
		switch kind {
		case '%':
			n *= 2 // name and value
		case '|':
			n = n*2 + 1 // attributes, and what they belong to
		}
		for range n {
			if b, err = appendFrame(b, r); err != nil {
				return nil, err
			}
		}
	}
	return b, nil // everything else is one line
}

// length is the number of a RESP header line; -1: null.
func length(line []byte) (int, error) {
	n, err := strconv.Atoi(strings.TrimRight(string(line[1:]), "\r\n"))
	if err != nil || n < -1 {
		return 0, fmt.Errorf("not a RESP header: %q", line)
	}
	return n, nil
}

// commandName is the name of a command frame, in capitals.
func commandName(frame []byte) string {
	if frame[0] == '*' { // *n $len name …; anything else is an inline command
		_, frame, _ = bytes.Cut(frame, []byte("\n"))
		_, frame, _ = bytes.Cut(frame, []byte("\n"))
	}
	line, _, _ := bytes.Cut(frame, []byte("\n"))
	name, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	return strings.ToUpper(string(name))
}
