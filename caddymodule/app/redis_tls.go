package app

import (
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// RedisTLS are the certificates with which a Redis is reached, in files. They are read again for
// each new connection. Placeholders such as {env.REDIS_CA} are filled.
type RedisTLS struct {
	// CA are PEM files with the only authorities that may sign the server's certificate. Default: the system's.
	CA []string `json:"ca,omitempty"`
	// Certificate is the client certificate with its chain, and its key, in PEM; needed unless Redis has `tls-auth-clients
	// no`. Default: none.
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
	// ServerName is the name in the server's certificate. Default: the host that is dialed.
	ServerName string `json:"server_name,omitempty"`
}

// fill fills the placeholders.
func (t *RedisTLS) fill() (f shard.TLSFiles, err error) {
	if t == nil {
		return f, nil
	}
	for _, name := range t.CA {
		if name, err = directive.FillAll(name); err != nil {
			return f, fmt.Errorf("ca %w", err)
		}
		f.CA = append(f.CA, name)
	}
	for _, text := range []struct {
		name, value string
		into        *string
	}{
		{"certificate", t.Certificate, &f.Certificate}, {"key", t.Key, &f.Key}, {"server_name", t.ServerName, &f.ServerName},
	} {
		if *text.into, err = directive.FillAll(text.value); err != nil {
			return f, fmt.Errorf("%s %w", text.name, err)
		}
	}
	return f, nil
}

// readTLS reads the option tls. The files also apply to a rediss:// URL.
func (r *Redis) readTLS(d *caddyfile.Dispenser, usage string) error {
	if err := directive.Flag(&r.TLS)(d, usage); err != nil {
		return err
	}
	t := new(RedisTLS)
	err := directive.ReadBlock(d, map[string]directive.Option{
		"ca":          {Usage: "ca <file...>", Read: directive.Texts(&t.CA)},
		"certificate": {Usage: "certificate <file> <key file>", Read: t.readCertificate},
		"server_name": {Usage: "server_name <name>", Read: directive.Text(&t.ServerName)},
	})
	if len(t.CA) > 0 || t.Certificate != "" || t.ServerName != "" {
		r.TLSFiles = t
	}
	return err
}

func (t *RedisTLS) readCertificate(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 2, 2)
	if err != nil {
		return err
	}
	t.Certificate, t.Key = args[0], args[1]
	return nil
}

// readSentinel reads the option sentinel.
func (r *Redis) readSentinel(d *caddyfile.Dispenser, usage string) error {
	if err := directive.Text(&r.Sentinel)(d, usage); err != nil {
		return err
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"username": {Usage: "username <name>", Read: directive.Text(&r.SentinelUsername)},
		"password": {Usage: "password <password>", Read: directive.Text(&r.SentinelPassword)},
	})
}
