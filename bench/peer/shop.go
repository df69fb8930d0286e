package peer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// Shop is a small order backend that accepts everything. It does as little as a server
// can, so that it never slows down the server in front of it.
type Shop struct {
	*Process
	Addr string
}

// StartShop runs `bench shop` on a core.
func StartShop(core int, dir string, self string) (*Shop, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := Start("shop", core, dir, nil, self, "shop", addr)
	if err != nil {
		return nil, err
	}
	if err := p.Listens(addr); err != nil {
		p.Stop()
		return nil, err
	}
	return &Shop{p, addr}, nil
}

// Orders is how many orders have come.
func (s *Shop) Orders() (int64, error) {
	resp, err := http.Get("http://" + s.Addr + "/orders")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 100))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(text), 10, 64)
}

const (
	shopYes   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"ok\":true}\n"
	shopCount = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s"
)

// ServeShop is the shop: it counts requests to /api/order, and tells the count at
// /orders. It returns when it cannot listen any more.
func ServeShop(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	var orders atomic.Int64
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			in := bufio.NewReaderSize(c, 16<<10)
			for {
				path, err := readRequest(in)
				if err != nil {
					return // a peer that sends what this shop does not know sees the connection end
				}
				answer := shopYes
				if path == "/orders" {
					count := strconv.FormatInt(orders.Load(), 10)
					answer = fmt.Sprintf(shopCount, len(count), count)
				} else {
					orders.Add(1)
				}
				if _, err := io.WriteString(c, answer); err != nil {
					return
				}
			}
		}()
	}
}

// readRequest reads one request with its body and returns its path.
func readRequest(in *bufio.Reader) (path string, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	if parts := bytes.SplitN(line, []byte(" "), 3); len(parts) == 3 {
		path, _, _ = strings.Cut(string(parts[1]), "?")
	}
	length := 0
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return "", err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			_, err = in.Discard(length)
			return path, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return "", err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return "", fmt.Errorf("the shop does not read %s bodies", value)
		}
	}
}
