package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Answer is the expected answer to a request.
type Answer struct {
	Status int
	// Says is somewhere in the body: the reason of a refusal.
	Says string
}

// Asked is the result of checking the answers.
type Asked struct {
	Asked int
	Right int
	// Wrong is the first answer that was not as it must be.
	Wrong string
	// Bytes is how long a right answer is on the average, with its head.
	Bytes float64
}

// Ask sends requests from to from+n over some connections, and compares the answers. An
// error means that there was no answer at all.
func Ask(ctx context.Context, addr string, secure bool, o Orders, from, n int, number int64, want Answer) (Asked, error) {
	const connections = 16
	var next, right, size atomic.Int64
	var wrong atomic.Pointer[string]
	errs := make([]error, connections)
	var askers sync.WaitGroup
	for c := range connections {
		askers.Go(func() {
			errs[c] = func() error {
				conn, err := dial(ctx, addr, secure)
				if err != nil {
					return err
				}
				defer conn.Close()
				counted := &countingReader{r: conn}
				in := bufio.NewReader(counted)
				for {
					i := int(next.Add(1)) - 1
					if i >= n {
						return nil
					}
					before := counted.n - int64(in.Buffered())
					status, body, err := exchange(conn, in, Numbered(o.Request(from+i), number+int64(i)))
					if err != nil {
						return err
					}
					if status == want.Status && strings.Contains(body, want.Says) {
						right.Add(1)
						size.Add(counted.n - int64(in.Buffered()) - before)
						continue
					}
					text := fmt.Sprintf("%d %s", status, body)
					wrong.CompareAndSwap(nil, &text)
				}
			}()
		})
	}
	askers.Wait()
	a := Asked{Asked: n, Right: int(right.Load())}
	if p := wrong.Load(); p != nil {
		a.Wrong = *p
	}
	if a.Right > 0 {
		a.Bytes = float64(size.Load()) / float64(a.Right)
	}
	return a, errors.Join(errs...)
}

func dial(ctx context.Context, addr string, secure bool) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second}
	if !secure {
		return d.DialContext(ctx, "tcp", addr)
	}
	// the certificate signs itself
	t := tls.Dialer{NetDialer: &d, Config: &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"}}
	return t.DialContext(ctx, "tcp", addr)
}

func exchange(conn net.Conn, in *bufio.Reader, request string) (status int, body string, err error) {
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return 0, "", err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return 0, "", err
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
