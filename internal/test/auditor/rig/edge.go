package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Edge is a Caddy process with a gate.
type Edge struct {
	*Process
	Name    string
	Binary  string
	Port    int
	Dir     string // its configuration and its admin socket
	Storage string // shared with others: the same signing key
	Log     *Log
	control *http.Client
}

// NewEdge prepares an edge without starting it.
func NewEdge(binary, name, dir, storage string) (*Edge, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	e := &Edge{Name: name, Binary: binary, Port: port, Dir: filepath.Join(dir, name), Storage: storage, Log: new(Log)}
	e.control = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", e.socket())
	}}}
	return e, os.MkdirAll(e.Dir, 0o700)
}

func (e *Edge) socket() string { return filepath.Join(e.Dir, "admin") }

// Addr is host:port of the site, URL its address.
func (e *Edge) Addr() string { return fmt.Sprintf("127.0.0.1:%d", e.Port) }
func (e *Edge) URL() string  { return "http://" + e.Addr() }

// Run starts the process with a site, for the first time or again, and waits until it serves.
func (e *Edge) Run(s Site) error {
	file := filepath.Join(e.Dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(s.caddyfile(e)), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(e.Binary, "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+e.Dir, "XDG_DATA_HOME="+e.Dir, "XDG_CONFIG_HOME="+e.Dir)
	os.Remove(e.socket()) // of one that was killed
	var err error
	if e.Process, err = start(e.Name, cmd, e.Log); err != nil {
		return err
	}
	err = Until("edge "+e.Name+" serves", func() bool {
		if !e.Alive() {
			return true
		}
		r, err := e.control.Get("http://localhost/config/")
		if err != nil {
			return false
		}
		r.Body.Close()
		c, err := net.Dial("tcp", e.Addr())
		if err != nil {
			return false
		}
		c.Close()
		return r.StatusCode == http.StatusOK
	})
	if err == nil && !e.Alive() {
		err = fmt.Errorf("edge %s ended at its start:\n%s", e.Name, e.Log.Tail(10))
	}
	return err
}

// Reload gives the running process another site.
func (e *Edge) Reload(s Site) error {
	status, body, err := e.ask("POST", "/load", "text/caddyfile", []byte(s.caddyfile(e)))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("reload of edge %s: %d %s", e.Name, status, body)
	}
	return err
}

// Admin asks the admin endpoint below /stockgate/.
func (e *Edge) Admin(method, path, body string) (int, string, error) {
	return e.ask(method, "/stockgate/"+path, "application/json", []byte(body))
}

// Metrics is what the admin endpoint's /metrics says.
func (e *Edge) Metrics() (string, error) {
	status, body, err := e.ask("GET", "/metrics", "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("metrics of edge %s: %d", e.Name, status)
	}
	return body, err
}

func (e *Edge) ask(method, path, kind string, body []byte) (int, string, error) {
	r, err := http.NewRequest(method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.GetBody = nil // an operator's request is sent once
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := e.control.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// CLI runs `caddy stockgate …` against this edge, and returns its output and exit status.
func (e *Edge) CLI(stdin string, args ...string) (string, int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.Binary, append(append([]string{"stockgate"}, args...), "--address", "unix/"+e.socket())...)
	cmd.Env = append(os.Environ(), "HOME="+e.Dir)
	cmd.Stdin = bytes.NewReader([]byte(stdin))
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return string(out), failed.ExitCode(), nil
	}
	return string(out), 0, err
}
