package e2e_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// balance listens where buyers go, and gives each connection to the next edge that
// takes it. A connection to an edge that dies, dies.
func balance(t *testing.T, edges ...*edge) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var links sync.WaitGroup
	var turn atomic.Int64
	var mu sync.Mutex
	open := map[net.Conn]bool{} // nil: closed
	keep := func(c net.Conn) bool {
		mu.Lock()
		defer mu.Unlock()
		if open == nil {
			c.Close()
			return false
		}
		open[c] = true
		return true
	}
	end := func(c net.Conn) {
		c.Close()
		mu.Lock()
		defer mu.Unlock()
		delete(open, c)
	}
	link := func(buyer net.Conn) {
		defer end(buyer)
		for range edges {
			e := edges[int(turn.Add(1))%len(edges)]
			there, err := net.Dial("tcp", e.addr)
			if err != nil {
				continue
			}
			if !keep(there) {
				return
			}
			defer end(there)
			links.Go(func() {
				io.Copy(there, buyer)
				there.Close()
			})
			io.Copy(buyer, there)
			return
		}
	}
	links.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if keep(conn) {
				links.Go(func() { link(conn) })
			}
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		open = nil
		mu.Unlock()
		links.Wait()
	})
	return ln.Addr().String()
}
