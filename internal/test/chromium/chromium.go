// Package chromium drives a headless Chromium in tests, over the pipe of the Chrome DevTools
// Protocol (https://chromedevtools.github.io/devtools-protocol/). `scripts/need chromium`
// installs the browser.
package chromium

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds what should come soon: generous, because the machine may be busy.
const patience = 10 * time.Minute

// Browser is a running Chromium with one page.
type Browser struct {
	t       testing.TB
	cmd     *exec.Cmd
	to      *os.File
	session string
	gone    chan struct{}

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	logs    []string
	network []message // events of a recording; nil: there is none
}

// message is a command, an answer or an event.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a Chromium with an empty page. It ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	dir, err := os.MkdirTemp("", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{t: t, to: to, gone: make(chan struct{}), waiting: make(map[int]chan message)}
	b.cmd = exec.Command("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe", "--user-data-dir="+dir, "about:blank")
	b.cmd.ExtraFiles = []*os.File{in, out} // 3 and 4, as the protocol wants them
	if err := b.cmd.Start(); err != nil {
		t.Fatalf("%v: `scripts/need chromium` installs it", err)
	}
	in.Close()
	out.Close()
	t.Cleanup(func() {
		b.cmd.Process.Kill()
		b.cmd.Wait()
		<-b.gone
		to.Close()
		os.RemoveAll(dir)
	})
	go b.read(from)
	b.attach()
	return b
}

// read takes answers and events until the browser ends.
func (b *Browser) read(from *os.File) {
	defer close(b.gone)
	defer from.Close()
	messages := bufio.NewReader(from)
	for {
		raw, err := messages.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(raw[:len(raw)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if answer, ok := b.waiting[m.ID]; ok && m.ID != 0 {
			delete(b.waiting, m.ID)
			answer <- m
		}
		if m.Method == "Log.entryAdded" || m.Method == "Runtime.exceptionThrown" {
			b.logs = append(b.logs, string(m.Params))
		}
		if b.network != nil && strings.HasPrefix(m.Method, "Network.") {
			b.network = append(b.network, m)
		}
		b.mu.Unlock()
	}
}

// attach opens a session with a new page.
func (b *Browser) attach() {
	b.t.Helper()
	var target struct {
		ID string `json:"targetId"`
	}
	b.do("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct {
		ID string `json:"sessionId"`
	}
	b.do("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &session)
	b.session = session.ID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.do(domain+".enable", nil, nil)
	}
}

// do sends a command and reads its result into T.
func (b *Browser) do(method string, params, into any) {
	b.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	if params == nil {
		raw = []byte("{}")
	}
	b.mu.Lock()
	b.last++
	id, answer := b.last, make(chan message, 1)
	b.waiting[id] = answer
	b.mu.Unlock()
	body, err := json.Marshal(message{ID: id, Session: b.session, Method: method, Params: raw})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(body, 0)); err != nil {
		b.t.Fatalf("the browser has ended: %v", err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if into != nil {
			if err := json.Unmarshal(m.Result, into); err != nil {
				b.t.Fatalf("%s: %v in %s", method, err, m.Result)
			}
		}
	case <-b.gone:
		b.t.Fatalf("%s: the browser has ended", method)
	case <-time.After(patience):
		b.t.Fatalf("%s: the browser does not answer", method)
	}
}

// Complaints returns what the console has complained about: exceptions, and what the content
// security policy has blocked.
func (b *Browser) Complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.logs...)
}

// Forget forgets the complaints so far.
func (b *Browser) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logs = nil
}

// String names the page, for errors.
func (b *Browser) String() string { return fmt.Sprintf("session %s", b.session) }
