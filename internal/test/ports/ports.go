// Package ports gives tests ports that no other program takes.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	// Ports below the range that kernels hand out to outgoing connections, and below the auditor's:
	// while a server is down for a restart, no connection is given its port.
	first = 10000
	last  = 29999
	// Nor does another process that tests take it: each has shares of so many to itself, and
	// listens on the first one of each share as long as it runs.
	share = 200
	tries = 100
)

// own are this process's shares of the range.
var own struct {
	sync.Mutex
	locks []net.Listener // on the first ports; the last one is of the share from which ports are given
	given int            // the last port that was given
}

// Listen listens on a port of this process that it was not given before, unless all shares are taken.
func Listen() (net.Listener, error) {
	own.Lock()
	defer own.Unlock()
	var err error
	for range share {
		if len(own.locks) == 0 || own.given%share == share-1 {
			if err := next(); err != nil {
				return nil, err
			}
		}
		own.given++
		var ln net.Listener
		if ln, err = listenOn(own.given); err == nil {
			return ln, nil
		}
	}
	return nil, fmt.Errorf("find a free port: %w", err)
}

// next takes another share; where all are taken, the first one of this process serves again.
func next() error {
	for range tries {
		lock, err := listenOn(first + share*rand.IntN((last+1-first)/share))
		if err == nil {
			own.locks, own.given = append(own.locks, lock), portOf(lock)
			return nil
		}
	}
	if len(own.locks) == 0 {
		return fmt.Errorf("other programs have the ports from %d to %d", first, last)
	}
	own.locks = append(own.locks[1:], own.locks[0])
	own.given = portOf(own.locks[len(own.locks)-1])
	return nil
}

func listenOn(port int) (net.Listener, error) {
	return net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
}

func portOf(ln net.Listener) int { return ln.Addr().(*net.TCPAddr).Port }

// Free returns a port of this process that was free a moment ago. No outgoing connection and no other process of tests
// takes it until a server listens on it, nor while that server is down.
func Free() (int, error) {
	ln, err := Listen()
	if err != nil {
		return 0, err
	}
	return portOf(ln), ln.Close()
}

// For is Free for a test, as text.
func For(t interface {
	Helper()
	Fatalf(format string, args ...any)
}) string {
	t.Helper()
	port, err := Free()
	if err != nil {
		t.Fatalf("ports: %v", err)
	}
	return strconv.Itoa(port)
}
