package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Sentinel is one of the processes that watch a primary and promote its replicas.
type Sentinel struct{ *Redis }

// NewSentinel runs a sentinel that watches a primary under a name: it counts as down after a
// while, and so many sentinels must agree on it. from is the address of its connections.
func NewSentinel(dir, name, primary string, quorum int, down time.Duration, from string) (*Sentinel, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &Sentinel{&Redis{Port: port, dir: filepath.Join(dir, fmt.Sprintf("sentinel-%d", port))}}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	host, at, _ := strings.Cut(primary, ":")
	conf := fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %q\nprotected-mode no\nbind-source-addr %s\nsentinel monitor %s %s %s %d\nsentinel down-after-milliseconds %s %d\nsentinel failover-timeout %s 4000\n",
		port, s.dir, from, name, host, at, quorum, name, down.Milliseconds(), name)
	if err := os.WriteFile(s.conf(), []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return s, s.Run()
}

// Run starts the process, for the first time or again.
func (s *Sentinel) Run() error {
	cmd := exec.Command("redis-server", s.conf(), "--sentinel")
	cmd.Dir = s.dir
	return s.Redis.run("sentinel", cmd)
}

// Primary is the address that this sentinel gives for a name; empty: it does not say.
func (s *Sentinel) Primary(name string) string {
	c, err := Dial(s.Addr())
	if err != nil {
		return ""
	}
	defer c.Close()
	at, err := c.Texts("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)
	if err != nil || len(at) != 2 {
		return ""
	}
	return at[0] + ":" + at[1]
}
