package redistest_test

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

func TestReadFrame(t *testing.T) {
	frames := []string{
		"+OK\r\n",
		"-ERR no\r\n",
		":42\r\n",
		"_\r\n",
		"#t\r\n",
		",1.5\r\n",
		"$-1\r\n",
		"$0\r\n\r\n",
		"$6\r\na\r\nb\r\n\r\n",
		"=7\r\ntxt:abc\r\n",
		"*-1\r\n",
		"*0\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
		"%2\r\n+a\r\n:1\r\n+b\r\n$1\r\nx\r\n",
		"~1\r\n+a\r\n",
		">2\r\n+message\r\n+x\r\n",
		"|1\r\n+ttl\r\n:3\r\n+OK\r\n",
		"PING\r\n",
	}
	r := bufio.NewReader(strings.NewReader(strings.Join(frames, "")))
	for _, want := range frames {
		if got, err := redistest.ReadFrame(r); err != nil || string(got) != want {
			t.Errorf("read %q (%v), want %q", got, err, want)
		}
	}
	if _, err := redistest.ReadFrame(r); err != io.EOF {
		t.Errorf("at the end: %v, want EOF", err)
	}
}

func TestReadFrameRefuses(t *testing.T) {
	for _, text := range []string{"+OK", "$x\r\n", "$-2\r\n", "$5\r\nab", "*1\r\n", "*a\r\n", "$999999999999\r\n"} {
		if got, err := redistest.ReadFrame(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q was read as %q", text, got)
		}
	}
}

func TestCommandName(t *testing.T) {
	for frame, want := range map[string]string{
		string(redistest.Encode("evalsha", "abc", "1")): "EVALSHA",
		"PING\r\n":      "PING",
		"get k\r\n":     "GET",
		"*0\r\n":        "",
		"\r\n":          "",
		"*1\r\n$-1\r\n": "",
	} {
		if got := redistest.CommandName([]byte(frame)); got != want {
			t.Errorf("the name of %q is %q, want %q", frame, got, want)
		}
	}
}
