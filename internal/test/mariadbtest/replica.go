package mariadbtest

import (
	"fmt"
	"io"
	"net"
)

// Primary and Replica are the settings of two servers, of which the second can follow the first.
var (
	Primary = []string{"--server-id=1", "--log-bin=binlog"}
	Replica = []string{"--server-id=2", "--log-bin=binlog", "--read-only"}
)

// Follow makes a new server an asynchronous replica of a new one. It returns at once.
func (s *Server) Follow(primary *Server) {
	s.t.Helper()
	primary.Exec("CREATE USER replica")
	primary.Exec("GRANT REPLICATION SLAVE ON *.* TO replica")
	s.Exec(fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='replica', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1", primary.listen()))
	s.Exec("START SLAVE")
}

// Promote makes a replica a primary, with what it has.
func (s *Server) Promote() {
	s.t.Helper()
	s.Exec("STOP SLAVE")
	s.Exec("RESET SLAVE ALL")
	s.Exec("SET GLOBAL read_only = 0")
}

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return s.path("sock") }

// listen leads a port, which replicas need, to the server's socket until the test ends.
func (s *Server) listen() (port int) {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatalf("mariadbtest: %v", err)
	}
	s.t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // the test is over
			}
			go s.forward(c)
		}
	}()
	return ln.Addr().(*net.TCPAddr).Port
}

func (s *Server) forward(c net.Conn) {
	defer c.Close()
	server, err := net.Dial("unix", s.Socket())
	if err != nil {
		return // it is down
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, c)
		server.Close()
	}()
	_, _ = io.Copy(c, server)
}
