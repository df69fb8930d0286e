package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Conn is a connection to a Redis, as far as the auditor needs one: a command goes out as
// an array of strings, an answer is a string, an int64, nil, a []any or an error.
type Conn struct {
	net.Conn
	in *bufio.Reader
}

// ServerError is an error that Redis answered.
type ServerError string

func (e ServerError) Error() string { return "redis: " + string(e) }

// Dial connects to a Redis, at host:port or in the directory of `store`.
func Dial(addr string) (*Conn, error) {
	if filepath.IsAbs(addr) {
		return dialStore(addr)
	}
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{c, bufio.NewReaderSize(c, 64<<10)}, nil
}

func dialStore(dir string) (*Conn, error) {
	password, err := os.ReadFile(filepath.Join(dir, "password"))
	if err != nil {
		return nil, err
	}
	socket, err := net.DialTimeout("unix", filepath.Join(dir, "redis.sock"), 10*time.Second)
	if err != nil {
		return nil, err
	}
	c := &Conn{socket, bufio.NewReaderSize(socket, 64<<10)}
	if _, err := c.Do("AUTH", "stockgate", strings.TrimSpace(string(password))); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Do sends a command and reads its answer.
func (c *Conn) Do(args ...string) (any, error) {
	c.SetDeadline(time.Now().Add(2 * time.Minute))
	text := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write(text); err != nil {
		return nil, err
	}
	return c.read()
}

func (c *Conn) line() (string, error) {
	s, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	if len(s) < 3 || s[len(s)-2] != '\r' {
		return "", fmt.Errorf("redis answered %q", s)
	}
	return s[:len(s)-2], nil
}

func (c *Conn) read() (any, error) {
	s, err := c.line()
	if err != nil {
		return nil, err
	}
	switch s[0] {
	case '+':
		return s[1:], nil
	case '-':
		return nil, ServerError(s[1:])
	}
	n, err := strconv.ParseInt(s[1:], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("redis answered %q", s)
	}
	switch {
	case s[0] == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case s[0] == '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, text); err != nil {
			return nil, err
		}
		return string(text[:n]), nil
	case s[0] == '*':
		list := make([]any, n)
		for i := range list {
			list[i], err = c.read()
			if failed := ServerError(""); errors.As(err, &failed) {
				list[i] = failed
			} else if err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("redis answered %q", s)
}

// Texts is Do whose answer is a list of strings.
func (c *Conn) Texts(args ...string) ([]string, error) {
	answer, err := c.Do(args...)
	if err != nil {
		return nil, err
	}
	return texts(answer)
}

func texts(answer any) ([]string, error) {
	list, ok := answer.([]any)
	if !ok {
		return nil, fmt.Errorf("redis answered %v, not a list", answer)
	}
	out := make([]string, len(list))
	for i, x := range list {
		if out[i], ok = x.(string); !ok && x != nil {
			return nil, fmt.Errorf("redis answered %v in a list of texts", x)
		}
	}
	return out, nil
}
