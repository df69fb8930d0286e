package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	// Ports below the range that kernels hand out to outgoing connections:
	// while a server is down for a restart, nobody is given its port.
	firstPort = 12000
	lastPort  = 29999
	portTries = 100
)

// listen listens on a free port of the range.
func listen() (net.Listener, error) {
	var err error
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		var ln net.Listener
		if ln, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return ln, nil
		}
	}
	return nil, fmt.Errorf("find a free port: %w", err)
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
