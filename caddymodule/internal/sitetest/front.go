package sitetest

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
)

// Front returns a TCP address of the site's server of the last configuration, which listens on a
// socket.
func (s *Site) Front() string {
	s.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.T.Fatal(err)
	}
	socket := s.Socket("http")
	over, closeAll := context.WithCancel(context.Background())
	var running sync.WaitGroup
	s.T.Cleanup(func() { listener.Close(); closeAll(); running.Wait() }) // clients keep idle connections
	running.Go(func() {
		for {
			down, err := listener.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("unix", socket)
			for errors.Is(err, syscall.EAGAIN) { // so many connections wait there already; TCP would wait too
				runtime.Gosched()
				up, err = net.Dial("unix", socket)
			}
			if err != nil {
				down.Close()
				continue
			}
			end := func() { up.Close(); down.Close() }
			forget := context.AfterFunc(over, end)
			running.Go(func() { _, _ = io.Copy(up, down); end(); forget() })
			running.Go(func() { _, _ = io.Copy(down, up); end() })
		}
	})
	return listener.Addr().String()
}
