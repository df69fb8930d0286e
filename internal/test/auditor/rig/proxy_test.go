package rig

import (
	"bufio"
	"net"
	"sync/atomic"
	"testing"
)

// counter is a server that counts lines and answers each.
func counter(t *testing.T) (addr string, lines *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	lines = new(atomic.Int64)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewScanner(c); in.Scan(); c.Write([]byte("ok\n")) {
					lines.Add(1)
				}
			}()
		}
	}()
	return ln.Addr().String(), lines
}

// A deaf link delivers what is asked and loses the answer; who missed it is cut off.
func TestDeafLink(t *testing.T) {
	addr, lines := counter(t)
	p, err := NewProxy(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ask := func() (string, error) {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			return "", err
		}
		defer c.Close()
		c.Write([]byte("ask\n"))
		return bufio.NewReader(c).ReadString('\n')
	}
	if got, err := ask(); got != "ok\n" || err != nil {
		t.Fatalf("a link answers %q, %v", got, err)
	}
	p.Deafen()
	done := make(chan error)
	go func() {
		_, err := ask()
		done <- err
	}()
	if err := Until("the server hears it", func() bool { return lines.Load() == 2 }); err != nil {
		t.Fatal(err)
	}
	p.Resume()
	if err := <-done; err == nil {
		t.Error("an answer came over a deaf link")
	}
	if got, err := ask(); got != "ok\n" || err != nil {
		t.Errorf("after that the link answers %q, %v", got, err)
	}
	p.CutFrom(func(from net.IP) bool { return from.String() == "127.0.0.2" })
	if got, err := ask(); got != "ok\n" || err != nil {
		t.Errorf("a link that is cut for others answers %q, %v", got, err)
	}
	p.CutFrom(func(from net.IP) bool { return from.String() == "127.0.0.1" })
	if got, err := ask(); err == nil {
		t.Errorf("a link that is cut answers %q", got)
	}
}
