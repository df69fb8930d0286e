package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// edge is one Caddy process with a gate.
type edge struct {
	t       *testing.T
	dir     string
	addr    string // host:port of its site
	admin   string // unix socket of its admin endpoint
	storage string // directory of Caddy's storage
	url     string
	env     []string // more of its environment
	log     *logBuffer
	heard   bool         // its site has /e2e/heard
	buyers  *http.Client // follows no redirect
	control *http.Client // speaks to the admin endpoint

	cmd  *exec.Cmd
	gone chan struct{} // closed when the process has ended
}

// newEdge prepares an edge without starting it; addr may be empty.
func newEdge(t *testing.T, addr string) *edge {
	t.Helper()
	// a path of a unix socket may have 104 bytes: t.TempDir may be too long
	dir, err := os.MkdirTemp("", "edge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if addr == "" {
		addr = freeAddr(t)
	}
	e := &edge{
		t: t, dir: dir, addr: addr, admin: filepath.Join(dir, "admin"), storage: filepath.Join(dir, "storage"),
		url: "http://" + addr, log: new(logBuffer),
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e.buyers = &http.Client{CheckRedirect: stay, Timeout: 5 * patience, Transport: &http.Transport{
		MaxIdleConnsPerHost: 64, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
	}}
	e.control = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", e.admin)
		},
	}}
	t.Cleanup(func() {
		e.stop()
		e.buyers.CloseIdleConnections()
		e.control.CloseIdleConnections()
		if text := e.log.String(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "fatal error:") {
			t.Errorf("the edge at %s raced or crashed", e.addr)
		}
		if t.Failed() {
			t.Logf("log of the edge at %s:\n%s", e.addr, e.log.tail())
		}
	})
	return e
}

// startEdge starts an edge that serves a site.
func startEdge(t *testing.T, s site) *edge {
	t.Helper()
	e := newEdge(t, "")
	e.start(s)
	return e
}

func (e *edge) start(s site) {
	e.t.Helper()
	if s.tls {
		e.url = "https://" + e.addr
	}
	e.heard = true
	file := filepath.Join(e.dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(s.caddyfile(e)), 0o600); err != nil {
		e.t.Fatal(err)
	}
	e.startFile(file)
}

// startFile starts the process with a Caddyfile and waits until it listens.
func (e *edge) startFile(file string) {
	e.t.Helper()
	e.cmd = caddyCommand("run", "--config", file, "--adapter", "caddyfile")
	e.cmd.Env = append(e.cmd.Env, "HOME="+e.dir, "XDG_DATA_HOME="+e.dir, "XDG_CONFIG_HOME="+e.dir)
	e.cmd.Env = append(e.cmd.Env, e.env...)
	e.cmd.Stdout, e.cmd.Stderr = e.log, e.log
	dieWithParent(e.cmd)
	gone, started := make(chan struct{}), make(chan error)
	e.gone = gone
	go func() {
		// Linux ties the child's life to the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := e.cmd.Start()
		started <- err
		if err == nil {
			e.cmd.Wait()
			close(gone)
		}
	}()
	if err := <-started; err != nil {
		e.cmd = nil
		e.t.Fatal(err)
	}
	e.untilServing()
}

// untilServing waits until the admin endpoint and the site answer.
func (e *edge) untilServing() {
	e.t.Helper()
	eventually(e.t, "the edge starts", func() bool {
		select {
		case <-e.gone:
			e.t.Fatalf("the edge ended at its start:\n%s", e.log.tail())
		default:
		}
		r, err := e.control.Get("http://localhost/config/")
		if err != nil {
			return false
		}
		r.Body.Close()
		conn, err := net.Dial("tcp", e.addr)
		if err != nil {
			return false
		}
		conn.Close()
		return r.StatusCode == http.StatusOK
	})
}

// stop ends the process as an operator does, and waits.
func (e *edge) stop() {
	if e.cmd == nil {
		return
	}
	e.cmd.Process.Signal(syscall.SIGTERM)
	late := time.NewTimer(2 * patience)
	defer late.Stop()
	select {
	case <-e.gone:
	case <-late.C:
		e.cmd.Process.Kill()
		<-e.gone
		e.t.Errorf("the edge at %s did not end by SIGTERM", e.addr)
	}
}

// kill ends the process as a crash does, and waits.
func (e *edge) kill() {
	e.cmd.Process.Kill()
	<-e.gone
}

// reload gives the running process another configuration, and returns the status
// and the body of the answer.
func (e *edge) reload(s site) (int, string) {
	e.t.Helper()
	return e.reloadText(s.caddyfile(e))
}

func (e *edge) reloadText(caddyfile string) (int, string) {
	e.t.Helper()
	request, err := http.NewRequest(http.MethodPost, "http://localhost/load", strings.NewReader(caddyfile))
	if err != nil {
		e.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "text/caddyfile")
	r, err := e.control.Do(request)
	if err != nil {
		e.t.Fatalf("reload: %v", err)
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(body)
}

// mustReload is reload that must succeed.
func (e *edge) mustReload(s site) {
	e.t.Helper()
	e.mustReloadText(s.caddyfile(e))
}

func (e *edge) mustReloadText(caddyfile string) {
	e.t.Helper()
	if status, body := e.reloadText(caddyfile); status != http.StatusOK {
		e.t.Fatalf("reload: %d %s", status, body)
	}
	e.untilReplaced()
}

// untilReplaced waits until the servers of the previous configuration accept no more. Caddy
// answers a reload when they have begun to shut down; until they have closed their listeners
// they accept connections, which they close without reading them: the client sees EOF.
func (e *edge) untilReplaced() {
	e.t.Helper()
	const site, admin, shutdown, serve = "caddyhttp.(*App).Stop", "v2.replaceLocalAdminServer", "net/http.(*Server).Shutdown(", "net/http.(*Server).Serve("
	for _, function := range []string{site, admin, shutdown, serve} {
		e.mustKnow(function)
	}
	eventually(e.t, "the servers of the previous configuration accept no more", func() bool {
		e.control.CloseIdleConnections()
		dump, err := e.dump()
		if err != nil { // by the previous admin endpoint
			return false
		}
		for g := range strings.SplitSeq(dump, "\n\n") {
			if !strings.Contains(g, site) && !strings.Contains(g, admin) || strings.Contains(g, serve) {
				continue
			}
			// It waits for requests, or for another goroutine that does.
			settled := "[sync.WaitGroup.Wait"
			if strings.Contains(g, shutdown) {
				settled = "[select"
			}
			if !strings.Contains(g, settled) {
				return false
			}
		}
		return true
	})
	e.control.CloseIdleConnections()
	e.buyers.CloseIdleConnections()
}

// get asks the site.
func (e *edge) get(path string) (int, http.Header, string) {
	e.t.Helper()
	r, err := e.buyers.Get(e.url + path)
	if err != nil {
		e.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return r.StatusCode, r.Header, string(body)
}

// adminGet asks the admin endpoint.
func (e *edge) adminGet(path string) string {
	e.t.Helper()
	body, err := e.adminTryGet(path)
	if err != nil {
		e.t.Fatal(err)
	}
	return body
}

func (e *edge) adminTryGet(path string) (string, error) {
	r, err := e.control.Get("http://localhost" + path)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %d %v %s", path, r.StatusCode, err, body)
	}
	return string(body), nil
}

// dump is the stacks of the edge's goroutines.
func (e *edge) dump() (string, error) { return e.adminTryGet("/debug/pprof/goroutine?debug=2") }

// goroutines is how many goroutines of the edge stand in a function.
func (e *edge) goroutines(function string) int {
	e.t.Helper()
	dump, err := e.dump()
	if err != nil {
		e.t.Fatal(err)
	}
	if function == "" {
		return strings.Count(dump, "\ngoroutine ") + 1
	}
	e.mustKnow(function)
	return strings.Count(dump, function)
}

// mustKnow fails the test where Caddy's binary has no such function.
func (e *edge) mustKnow(function string) {
	e.t.Helper()
	if !functionKnown(function) {
		e.t.Fatalf("the binary has no function %s: say what it is called now", function)
	}
}

// functionKnown reports whether Caddy's binary has a function: one that was renamed is never
// found in a dump.
func functionKnown(function string) bool {
	known, asked := knownFunctions.Load(function)
	if !asked {
		known = listed(binaryText(), strings.TrimSuffix(function, "("))
		knownFunctions.Store(function, known)
	}
	return known.(bool)
}

// listed reports whether the runtime lists a function in a binary's text, with or without the path of its package.
func listed(text []byte, function string) bool {
	for name := []byte(function + "\x00"); ; {
		before, after, found := bytes.Cut(text, name)
		if !found || bytes.HasSuffix(before, []byte("/")) || bytes.HasSuffix(before, []byte("\x00")) {
			return found
		}
		text = after
	}
}

var knownFunctions sync.Map

// binaryText is Caddy's binary, nothing if it cannot be read. The race detector looks at each byte that is read, and
// not at memory that is mapped.
var binaryText = sync.OnceValue(func() []byte {
	text, _ := mapFile(binary)
	return text
})

// logBuffer keeps what a process writes.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logBuffer) has(text string) bool { return strings.Contains(l.String(), text) }

// hasLine reports whether a line has all of some texts.
func (l *logBuffer) hasLine(texts ...string) bool {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

// tail is the end of the log, without the lines of debugging.
func (l *logBuffer) tail() string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if !strings.Contains(line, `"level":"debug"`) && !strings.Contains(line, "\tDEBUG\t") {
			lines = append(lines, line)
		}
	}
	if more := len(lines) - 80; more > 0 {
		lines = append([]string{fmt.Sprintf("(%d lines)\n", more)}, lines[more:]...)
	}
	return strings.Join(lines, "")
}
