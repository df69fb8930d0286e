package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

const (
	// Ports below the range that kernels hand out to outgoing connections:
	// while a server is down for a restart, no connection is given its port.
	firstPort = 12000
	lastPort  = 29999
	// Nor does another process that tests take it: each has this many to itself, and
	// listens on the first of them as long as it runs.
	portShare = 200
	portTries = 100
)

// share is this process's part of the range.
var share struct {
	sync.Mutex
	lock net.Listener // on the first port; nil: there is no share yet
	last int          // the last port that was given
}

// listen listens on a free port of this process.
func listen() (net.Listener, error) {
	share.Lock()
	defer share.Unlock()
	if share.lock == nil {
		if err := takeShare(); err != nil {
			return nil, err
		}
	}
	first := share.lock.Addr().(*net.TCPAddr).Port
	var err error
	for range portShare {
		// one after the other: a port that was given is not given again soon
		share.last = max(first+1, (share.last+1-first)%portShare+first)
		var ln net.Listener
		if ln, err = listenOn(share.last); err == nil {
			return ln, nil
		}
	}
	return nil, fmt.Errorf("find a free port: %w", err)
}

func takeShare() error {
	var err error
	for range portTries {
		first := firstPort + portShare*rand.IntN((lastPort+1-firstPort)/portShare)
		if share.lock, err = listenOn(first); err == nil {
			share.last = first
			return nil
		}
	}
	share.lock = nil
	return fmt.Errorf("find free ports: %w", err)
}

func listenOn(port int) (net.Listener, error) {
	return net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
}

// FreePort returns a port for another server of a test, which no outgoing connection and no other
// process of tests takes until that server listens on it.
func FreePort(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return strconv.Itoa(port)
}

// freePort returns a port that was free a moment ago.
func freePort() (int, error) {
	ln, err := listen()
	if err != nil {
		return 0, err
	}
	port := ln.Addr().(*net.TCPAddr).Port
	return port, ln.Close()
}
