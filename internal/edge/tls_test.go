package edge_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// An edge speaks TLS to a server whose certificate it can verify, and to no other one.
func TestTLS(t *testing.T) {
	certificate, key := redistest.SelfSigned(t)
	t.Setenv("SSL_CERT_FILE", certificate) // the process reads it once, and no other test here needs a certificate
	stranger, strangersKey := redistest.SelfSigned(t)
	good, bad := redistest.Start(t, redistest.TLS(certificate, key)), redistest.Start(t, redistest.TLS(stranger, strangersKey))

	o := stocktest.At(good.TLSAddr(), stocktest.Long)
	o.TLS = true
	everything(t, o, good.Client())
	if err := good.Client().FlushAll(stocktest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	in1 := redis.NewClient(&redis.Options{Addr: good.Addr(), DB: 1})
	defer in1.Close()
	everything(t, stocktest.At("rediss://"+good.TLSAddr()+"/1", stocktest.Long), in1)

	for name, test := range map[string]struct {
		addr    string
		tls     bool
		timeout time.Duration
		want    string
	}{
		"an unknown certificate": {bad.TLSAddr(), true, stocktest.Long, "certificate"},
		"no TLS at the server":   {good.Addr(), true, 200 * time.Millisecond, "does its port have TLS?"}, // it waits for the end of a line
		"no TLS at the edge":     {good.TLSAddr(), false, stocktest.Long, ""},
	} {
		o := stocktest.At(test.addr, test.timeout)
		o.TLS = test.tls
		err := stocktest.NewEdge(t, o, edge.Options{}).Refresh(stocktest.Soon(t))
		if !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("with %s refresh ends with %v", name, err)
		}
	}
}

// Certificates that only files have: an authority of the operator's own, and a client certificate that the
// server asks for. Files that are replaced count for the next connection, ones that cannot be read do not.
func TestTLSFiles(t *testing.T) {
	certificate, key := redistest.SelfSigned(t)
	client, clientKey := redistest.SelfSigned(t)
	s := redistest.Start(t, redistest.TLS(certificate, key), redistest.Config("tls-auth-clients yes", "tls-ca-cert-file "+client))
	stranger, strangersKey := redistest.SelfSigned(t)

	refresh := func(files shard.TLSFiles) error {
		o := stocktest.At(s.TLSAddr(), stocktest.Long)
		o.TLS, o.TLSFiles = true, files
		return stocktest.NewEdge(t, o, edge.Options{}).Refresh(stocktest.Soon(t))
	}
	for name, test := range map[string]struct {
		files shard.TLSFiles
		want  string
	}{
		"no authority":                 {shard.TLSFiles{Certificate: client, Key: clientKey}, "tls { ca <file> }"},
		"another authority":            {shard.TLSFiles{CA: []string{stranger}, Certificate: client, Key: clientKey}, "tls { ca <file> }"},
		"no client certificate":        {shard.TLSFiles{CA: []string{certificate}}, "tls { certificate <file> <key file> }"},
		"another client's certificate": {shard.TLSFiles{CA: []string{certificate}, Certificate: stranger, Key: strangersKey}, "tls { certificate <file> <key file> }"},
		"another name":                 {shard.TLSFiles{CA: []string{certificate}, Certificate: client, Key: clientKey, ServerName: "redis.example.com"}, "tls { server_name <name> }"},
	} {
		if err := refresh(test.files); !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("with %s refresh ends with %v, want %q", name, err, test.want)
		}
	}

	dir := t.TempDir()
	authority, mine, mineKey := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "edge.pem"), filepath.Join(dir, "edge.key")
	copyFile(t, certificate, authority)
	copyFile(t, client, mine)
	copyFile(t, clientKey, mineKey)
	o := stocktest.At("rediss://"+s.TLSAddr(), stocktest.Long)
	o.TLSFiles = shard.TLSFiles{CA: []string{stranger, authority}, Certificate: mine, Key: mineKey, ServerName: "127.0.0.1"}
	e := everything(t, o, s.Client())
	for _, file := range []string{mine, authority} {
		if err := os.WriteFile(file, []byte("half a fi"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// again ends all connections, and looks with new ones.
	again := func() (err error) {
		s.Restart()
		for ctx := stocktest.Soon(t); ctx.Err() == nil; {
			if err = e.Refresh(ctx); err == nil || !shard.BrokenConnection(err) {
				return err
			}
		}
		return err
	}
	if err := again(); err != nil {
		t.Errorf("while files are written: %v", err)
	}
	copyFile(t, client, mine)
	copyFile(t, stranger, authority)
	if err := again(); err == nil || !strings.Contains(err.Error(), "tls { ca <file> }") {
		t.Errorf("with another authority in the same file: %v", err)
	}
}

// Files that cannot work are named before anything is dialed.
func TestTLSFilesThatCannotWork(t *testing.T) {
	certificate, key := redistest.SelfSigned(t)
	_, other := redistest.SelfSigned(t)
	for name, test := range map[string]struct {
		addr  string
		files shard.TLSFiles
		want  string
	}{
		"no TLS":               {"127.0.0.1:1", shard.TLSFiles{ServerName: "redis"}, "write `tls`"},
		"a socket":             {"unix:///run/redis.sock", shard.TLSFiles{CA: []string{certificate}}, "write `tls`"},
		"no key":               {"rediss://127.0.0.1:1", shard.TLSFiles{Certificate: certificate}, "needs its key"},
		"another's key":        {"rediss://127.0.0.1:1", shard.TLSFiles{Certificate: certificate, Key: other}, "with the key " + other},
		"an authority missing": {"rediss://127.0.0.1:1", shard.TLSFiles{CA: []string{certificate, certificate + ".old"}}, certificate + ".old"},
		"a key as authority":   {"rediss://127.0.0.1:1", shard.TLSFiles{CA: []string{key}}, key + " has no certificate"},
	} {
		o := shard.Options{Addresses: []string{test.addr}, TLSFiles: test.files}
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Sentinels have users and certificates of their own.
func TestSentinelsWithPassword(t *testing.T) {
	s := redistest.Start(t, redistest.Password("secret"))
	watching := redistest.Sentinel(t, s, redistest.Password("sesame"), redistest.Config("user watcher on >word +@all"))
	for name, test := range map[string]struct{ username, password, want string }{
		"none":   {"", "", "password"},
		"wrong":  {"", "secret", "password"},
		"right":  {"", "sesame", ""},
		"a user": {"watcher", "word", ""},
	} {
		o := stocktest.At(watching.Addr(), stocktest.Long)
		o.Sentinel, o.Password, o.SentinelUsername, o.SentinelPassword = "main", "secret", test.username, test.password
		err := stocktest.NewEdge(t, o, edge.Options{}).Refresh(stocktest.Soon(t))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("with a password that is %s: %v", name, err)
		}
	}
}

// A server on the same machine is reached by its socket, in each form that people write.
func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "stockgate") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "redis.sock")
	s := redistest.Start(t, redistest.Config("unixsocket "+socket), redistest.Password("secret"))
	for _, addr := range []string{"unix/" + socket, socket} {
		o := stocktest.At(addr, stocktest.Long)
		o.Password = "secret"
		if err := stocktest.NewEdge(t, o, edge.Options{}).Refresh(stocktest.Soon(t)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "secret", DB: 2})
	defer c.Close()
	everything(t, stocktest.At("unix://:secret@"+socket+"?db=2", stocktest.Long), c)
	for name, test := range map[string]struct {
		o    shard.Options
		want string
	}{
		"with TLS":     {shard.Options{Addresses: []string{socket}, TLS: true}, "leave `tls` out"},
		"of sentinels": {shard.Options{Addresses: []string{socket}, Sentinel: "main"}, "one server on this machine"},
		"of two":       {shard.Options{Addresses: []string{socket, "127.0.0.1:1"}, Cluster: true}, "stands alone"},
		"relative":     {shard.Options{Addresses: []string{"unix/redis.sock"}}, "unix:///run/redis/redis.sock"},
		"no path":      {shard.Options{Addresses: []string{"unix://"}}, "unix:///run/redis/redis.sock"},
	} {
		if err := test.o.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("a socket %s: %v, want %q", name, err, test.want)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
