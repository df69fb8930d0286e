package redistest

import (
	"fmt"
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

// ask asks the server that listens on the port who it is: INFO, and PING, because INFO answers while a file is
// still loading.
func (s *Server) ask(deadline time.Time) (map[string]string, error) {
	c, err := s.dial(deadline)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	commands := [][]string{{"PING"}, {"INFO", "server"}}
	if s.password != "" {
		commands = slices.Insert(commands, 0, []string{"AUTH", s.password})
	}
	replies, err := c.do(commands...)
	if err != nil {
		return nil, err
	}
	return fields(replies[len(replies)-1]), nil
}

func supported(version string) error {
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return fmt.Errorf("redis-server is version %q: install version 7 or newer", version)
	}
	return nil
}
