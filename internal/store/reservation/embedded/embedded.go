// Package embedded runs a Redis server inside this process, for trials and tests: its data
// ends with the process and is not replicated.
package embedded

import (
	"crypto/rand"
	"fmt"

	"github.com/alicebob/miniredis/v2"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Server is a running embedded server. It listens on a free loopback port, behind
// a password that only this process knows.
type Server struct {
	redis    *miniredis.Miniredis
	password string
}

// Start starts a server. Close must be called to stop it.
func Start() (*Server, error) {
	s := &Server{redis: miniredis.NewMiniRedis(), password: rand.Text()}
	s.redis.RequireAuth(s.password)
	if err := s.redis.Start(); err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	return s, nil
}

// Connect points options at the server.
func (s *Server) Connect(o *shard.Options) {
	o.Addresses = []string{s.redis.Addr()}
	o.Password = s.password
	o.Scripts = lua.Embedded()
}

// Close stops the server and drops its data.
func (s *Server) Close() error {
	s.redis.Close()
	return nil
}
