package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ready asks until the server answers. The process id tells our server from
// one that took the port before us.
func (s *Server) ready() error {
	deadline := time.Now().Add(readyWithin)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		info, err := s.ask(deadline)
		switch {
		case err == nil && info["process_id"] == strconv.Itoa(s.proc.pid()):
			return supported(info["redis_version"])
		case time.Now().After(deadline):
			return fmt.Errorf("no answer within %v: %w\n%s", readyWithin, err, s.log())
		}
		select {
		case <-s.proc.done:
			return fmt.Errorf("redis-server ended before it answered: %v\n%s", s.proc.err, s.log())
		case <-tick.C:
		}
	}
}

// ask sends one command to the server that listens on the port: INFO, and PING, because
// INFO answers while a file is still loading. It speaks the protocol itself: a
// connection pool slows down after refused connections.
func (s *Server) ask(deadline time.Time) (map[string]string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Until(deadline))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	commands := [][]string{{"PING"}, {"INFO", "server"}}
	if s.password != "" {
		commands = slices.Insert(commands, 0, []string{"AUTH", s.password})
	}
	replies := bufio.NewReader(conn)
	var reply []byte
	for _, command := range commands {
		if _, err := conn.Write(encode(command...)); err != nil {
			return nil, err
		}
		if reply, err = readFrame(replies); err != nil {
			return nil, err
		}
		if reply[0] == '-' {
			return nil, fmt.Errorf("%s: %s", command[0], bytes.TrimSpace(reply))
		}
	}
	info := map[string]string{}
	for line := range strings.Lines(string(reply)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

func supported(version string) error {
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return fmt.Errorf("redis-server is version %q: install version 7 or newer", version)
	}
	return nil
}
