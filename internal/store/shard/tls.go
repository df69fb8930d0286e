package shard

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// keepAlive is how often an idle connection is probed.
const keepAlive = 5 * time.Minute

// TLSFiles are the certificates with which a Redis is reached. The files are read for each new
// connection: a renewed certificate counts from then on. While a file cannot be read, the last one
// that could counts.
type TLSFiles struct {
	// CA are files with the authorities that may sign the server's certificate, in PEM. Default: the system's.
	CA []string
	// Certificate is a file with the client certificate and its chain, and Key the file of its
	// key, both in PEM. Default: no client certificate.
	Certificate, Key string
	// ServerName is the name in the server's certificate. Default: the host that is dialed.
	ServerName string
}

func (f *TLSFiles) isZero() bool {
	return len(f.CA) == 0 && f.Certificate == "" && f.Key == "" && f.ServerName == ""
}

// validate returns what is wrong with the files, which must be there.
func (f *TLSFiles) validate(secure bool) error {
	switch {
	case f.isZero():
		return nil
	case !secure:
		return errors.New("redis: ca, certificate and server_name are for TLS: write `tls`, or rediss:// before the address")
	case (f.Certificate == "") != (f.Key == ""):
		return errors.New("redis: a client certificate needs its key: write `certificate <file> <key file>`")
	}
	_, err := f.read()
	return err
}

// read reads the files.
func (f *TLSFiles) read() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	for _, name := range f.CA {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("redis: ca: %w", err)
		}
		if c.RootCAs == nil {
			c.RootCAs = x509.NewCertPool()
		}
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("redis: ca: %s has no certificate: it must be PEM, and begin with -----BEGIN CERTIFICATE-----", name)
		}
	}
	if f.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
		if err != nil {
			return nil, fmt.Errorf("redis: certificate %s with the key %s: %w", f.Certificate, f.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// dialTLS connects with TLS. Every server is verified against the name under which it is dialed:
// the nodes of a cluster and the master behind a sentinel have names of their own.
func (o *Options) dialTLS(unverified bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	files, timeout := o.TLSFiles, o.Timeout
	files.CA = slices.Clone(files.CA)
	var mu sync.Mutex
	last := new(tls.Config)
	config := func() (*tls.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		now, err := files.read()
		if err == nil {
			last = now
		} else if last.MinVersion == 0 { // none could be read yet
			return nil, err
		}
		return last.Clone(), nil
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := config()
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(addr)
		c.ServerName, c.InsecureSkipVerify = cmp.Or(files.ServerName, host), unverified
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn, err := (&net.Dialer{KeepAlive: keepAlive}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, c)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(explainHandshake(addr, err), conn.Close())
		}
		return &newConn{Conn: secure}, nil
	}
}

// newConn explains why a connection ends before the server has said anything. With TLS 1.3 a server
// refuses a client's certificate after the client's part of the handshake, and its alert may be lost.
type newConn struct {
	*tls.Conn
	heard atomic.Bool
}

func (c *newConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, c.explain(err)
}

func (c *newConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.explain(err)
}

func (c *newConn) explain(err error) error {
	if err == nil || c.heard.Load() {
		return err
	}
	if alert, ok := errors.AsType[*net.OpError](err); BrokenConnection(err) || ok && alert.Op == "remote error" {
		return unheardError{err}
	}
	return err
}

// unheardError says that a connection ended before the server has said anything. It has no Unwrap:
// go-redis would return only what is below it.
type unheardError struct{ cause error }

func (e unheardError) Error() string {
	return fmt.Sprintf("it ended the connection after the TLS handshake, as it does when it knows no client certificate: give one with `tls { certificate <file> <key file> }` (%v)", e.cause)
}

// Is reports whether the cause is a target.
func (e unheardError) Is(target error) bool { return errors.Is(e.cause, target) }

// explainHandshake says what an operator can do about a handshake that failed.
func explainHandshake(addr string, err error) error {
	var foreign tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	help := ""
	switch {
	case errors.As(err, &unknown):
		help = "nothing here vouches for its certificate: name the authority with `tls { ca <file> }`"
	case errors.As(err, &name):
		help = "its certificate is for another name: dial it under that name, or give the name with `tls { server_name <name> }`"
	// a Redis without TLS takes the handshake for the beginning of a command, and waits for its end
	case errors.As(err, &foreign), errors.Is(err, context.DeadlineExceeded):
		help = "does its port have TLS? Leave `tls` out, or give the port that has it"
	default:
		return fmt.Errorf("TLS with %s: %w", addr, err)
	}
	return fmt.Errorf("TLS with %s: %s (%w)", addr, help, err)
}

// AnswersTLS tells whether the server of an address without TLS has TLS at its port.
func (s *Client) AnswersTLS(ctx context.Context) bool {
	u, err := universal(&s.Options)
	if err != nil || u.Dialer != nil {
		return false
	}
	o := Options{Timeout: s.Options.Timeout}
	conn, err := o.dialTLS(true)(ctx, "tcp", u.Addrs[0]) // nothing is sent that a stranger could use
	return err == nil && conn.Close() == nil
}
