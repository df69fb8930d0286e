package child

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"strconv"
	"strings"
	"time"
)

// headBytes is more than what a file says of itself takes.
const headBytes = 4096

var (
	errNoBackup = errors.New("it is no backup of a store: `caddy stockgate store backup` makes one")
	errBroken   = errors.New("it is cut off or damaged: its checksum is wrong; use another copy of it")
)

// Bytes of Redis's format, see https://github.com/redis/redis/blob/7.0/src/rdb.h.
const (
	opAux = 0xfa // a name and a text follow
	opEOF = 0xff // the checksum follows
)

// readHead reads what an RDB says of itself. Its begin is enough.
func readHead(head []byte) (b Backup, err error) {
	rest, ok := bytes.CutPrefix(head, []byte("REDIS"))
	if ok && len(rest) >= 4 {
		rest = rest[4:] // the version of the format
	} else if rest, ok = bytes.CutPrefix(head, []byte("VALKEY")); !ok || len(rest) < 3 {
		return b, errNoBackup
	} else {
		rest = rest[3:]
	}
	for len(rest) > 0 && rest[0] == opAux {
		var name, text string
		rest = rest[1:]
		if name, rest, ok = cutText(rest); !ok {
			return b, errBroken
		}
		if text, rest, ok = cutText(rest); !ok {
			return b, errBroken
		}
		switch name {
		case "redis-ver":
			if b.Writer == "" {
				b.Writer = "redis " + text
			}
		case "valkey-ver":
			b.Writer = "valkey " + text
		case "ctime":
			if s, err := strconv.ParseInt(text, 10, 64); err == nil {
				b.Time = time.Unix(s, 0)
			}
		}
	}
	return b, nil
}

// cutText cuts a text off: a length of up to 63 and as many bytes, or an integer.
func cutText(from []byte) (text string, rest []byte, ok bool) {
	if len(from) == 0 {
		return "", nil, false
	}
	first, rest := from[0], from[1:]
	size := map[byte]int{0xc0: 1, 0xc1: 2, 0xc2: 4}[first]
	switch {
	case size > 0 && len(rest) >= size:
		var n [4]byte
		copy(n[:], rest[:size])
		value := int64(binary.LittleEndian.Uint32(n[:]))
		return strconv.FormatInt(value, 10), rest[size:], true
	case first < 64 && len(rest) >= int(first):
		return string(rest[:first]), rest[first:], true
	}
	return "", nil, false
}

// jones is the polynomial of Redis's checksum.
var jones = crc64.MakeTable(0x95ac9329ac4bc9b5)

// copyBackup copies an RDB whole, or returns what is wrong with it. p is the server that is to read it.
func copyBackup(to io.Writer, from io.Reader, p program) (b Backup, err error) {
	head := make([]byte, headBytes)
	n, err := io.ReadFull(from, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return b, err
	}
	if b, err = readHead(head[:n]); err != nil {
		return b, err
	}
	if err := p.readsBackup(b); err != nil {
		return b, err
	}
	sum := &checksum{}
	if b.Size, err = io.Copy(io.MultiWriter(to, sum), io.MultiReader(bytes.NewReader(head[:n]), from)); err != nil {
		return b, err
	}
	if !sum.right() {
		return b, errBroken
	}
	return b, nil
}

// readsBackup refuses a backup that a newer server has made.
func (p program) readsBackup(b Backup) error {
	kind, version, _ := strings.Cut(b.Writer, " ")
	before, err := readVersion(title(kind) + " server v=" + version)
	if err != nil {
		return fmt.Errorf("it was made by %q, which is no version of a server that has a store", b.Writer)
	}
	if !p.follows(before) {
		return fmt.Errorf("it was made by %s, and %s cannot read it: install %[1]s or newer, or name it with --redis-server", before, p)
	}
	return nil
}

// checksum sums all bytes but the last nine, and keeps these: the end, and the checksum.
type checksum struct {
	sum  uint64
	last []byte
}

func (c *checksum) Write(p []byte) (int, error) {
	c.last = append(c.last, p...)
	if most := len(c.last) - 9; most > 0 {
		c.sum = ^crc64.Update(^c.sum, jones, c.last[:most]) // Redis does not invert it
		c.last = append(c.last[:0], c.last[most:]...)
	}
	return len(p), nil
}

func (c *checksum) right() bool {
	if len(c.last) < 9 || c.last[0] != opEOF {
		return false
	}
	return binary.LittleEndian.Uint64(c.last[1:]) == ^crc64.Update(^c.sum, jones, c.last[:1])
}
