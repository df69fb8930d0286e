package shard

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// withPorts adds the usual port to addresses that are only a host.
func withPorts(addresses []string, sentinels bool) []string {
	port := "6379"
	if sentinels {
		port = "26379"
	}
	out := slices.Clone(addresses)
	for i, a := range out {
		if host := strings.Trim(a, "[]"); isHost(host) {
			out[i] = net.JoinHostPort(host, port)
		}
	}
	return out
}

// isHost tells whether an address is a name or an IP address without a port.
func isHost(a string) bool {
	if _, err := netip.ParseAddr(a); err == nil {
		return true
	}
	return a != "" && !strings.ContainsAny(a, ":/@ ")
}

// universal returns the options of a client. Its Addrs are host:port, or the path of a socket: a
// URL, which may hold a password, is read.
func universal(o *Options) (*redis.UniversalOptions, error) {
	u := &redis.UniversalOptions{
		Addrs:      o.Addresses,
		MasterName: o.Sentinel, IsClusterMode: o.Cluster,
		Username: o.Username, Password: o.Password,
		SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		Protocol: 2,
		// After a timeout or a lost reply it is unknown whether a script ran. Only this package
		// knows which calls are safe to repeat.
		MaxRetries:            -1,
		ContextTimeoutEnabled: true,
		DialTimeout:           o.Timeout, ReadTimeout: o.Timeout, WriteTimeout: o.Timeout, PoolTimeout: o.Timeout,
		DialerRetries: 1,
		PoolSize:      64,
		Dialer:        o.Dialer,

		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.TLS {
		u.TLSConfig = new(tls.Config)
	}
	if err := readAddresses(o, u); err != nil {
		return nil, err
	}
	if u.TLSConfig != nil {
		u.Dialer = o.dialTLS(u.TLSConfig.InsecureSkipVerify)
	}
	return u, nil
}

func readAddresses(o *Options, u *redis.UniversalOptions) error {
	for _, a := range o.Addresses {
		socket := isSocket(a)
		switch {
		case (socket || strings.Contains(a, "://")) && len(o.Addresses) > 1:
			return errors.New("redis: give several addresses as host:port; a URL stands alone, and a socket too")
		case socket:
			return readSocket(o, u, a)
		case strings.Contains(a, "://"):
			return readURL(o, u, a)
		case strings.Contains(a, "@"): // what stands before it may be a password
			return errors.New("redis: an address with a user or a password is a URL: write redis://user:password@host:6379/0")
		}
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("redis: address %q is not host:port", a)
		}
	}
	return nil
}

// Where returns where the options lead, without a user or a password: host:port each, or the path of a socket, and
// the number of the database.
func (o *Options) Where() (addresses []string, database int, err error) {
	u, err := universal(o)
	if err != nil {
		return nil, 0, err
	}
	return u.Addrs, u.DB, nil
}

// isSocket tells whether an address is a Unix socket: a path, a URL, or unix//path as Caddy writes it.
func isSocket(a string) bool {
	return strings.HasPrefix(a, "unix:") || strings.HasPrefix(a, "unix/") || strings.HasPrefix(a, "/") && !strings.Contains(a, ":")
}

func readSocket(o *Options, u *redis.UniversalOptions, a string) error {
	switch {
	case o.Sentinel != "" || o.Cluster:
		return errors.New("redis: a socket is one server on this machine: sentinel and cluster need addresses with a port")
	case o.TLS:
		return errors.New("redis: a socket has no TLS: leave `tls` out")
	}
	if strings.HasPrefix(a, "unix:") {
		return readURL(o, u, a)
	}
	at := strings.TrimPrefix(a, "unix/")
	if !path.IsAbs(at) || path.Clean(at) != at {
		return fmt.Errorf("redis: address %q is not a socket: write unix:///run/redis/redis.sock", a)
	}
	u.Addrs = []string{at}
	return nil
}

// readURL reads the only address. The URL may hold a password: an error names the fault, not the URL.
func readURL(o *Options, u *redis.UniversalOptions, a string) error {
	parsed, err := redis.ParseURL(a)
	if err != nil || strings.Contains(a, "#") || parsed.Network == "unix" && !path.IsAbs(parsed.Addr) {
		return errors.New("redis: the URL cannot be read; write redis://user:password@host:6379/0, rediss://… or unix:///run/redis/redis.sock; percent-encode what is special in the password: # as %23, / as %2F, ? as %3F, @ as %40, % as %25")
	}
	switch {
	case o.Cluster && parsed.DB != 0:
		return errors.New("redis: a cluster has only database 0")
	case parsed.Username != "" && o.Username != "", parsed.Password != "" && o.Password != "":
		return errors.New("redis: the URL has a user or a password, and `username` or `password` gives it too: write it in one place")
	}
	u.Addrs, u.DB = []string{parsed.Addr}, parsed.DB
	u.Username, u.Password = cmp.Or(parsed.Username, u.Username), cmp.Or(parsed.Password, u.Password)
	if parsed.TLSConfig != nil {
		u.TLSConfig = parsed.TLSConfig
	}
	return nil
}

// reached returns the options of another server that belongs to the same Redis, at host:port.
func reached(o *Options, address string) (*redis.UniversalOptions, error) {
	u, err := universal(o)
	if err != nil {
		return nil, err
	}
	u.Addrs, u.MasterName, u.IsClusterMode, u.DB = []string{address}, "", false, 0
	return u, nil
}
