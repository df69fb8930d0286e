// Package verifiers_test runs the verifiers of examples/ in every language.
package verifiers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/test/spawn"
)

// verifierCommands start the drivers of the verifiers in examples/; what they need must be there. What package token
// says to the same vectors is in its own tests.
var verifierCommands = map[string]func(*testing.T) *exec.Cmd{
	"java": func(t *testing.T) *exec.Cmd {
		classes := t.TempDir()
		must(t, exec.Command("javac", "-J-XX:TieredStopAtLevel=1", "-Xlint:all", "-Werror", "-d", classes, "../../examples/java/StockgateToken.java", "Drive.java"))
		return exec.Command("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classes, "Drive")
	},
	"node": func(*testing.T) *exec.Cmd { return exec.Command("node", "drive.mjs") },
	"php": func(t *testing.T) *exec.Cmd {
		return exec.Command("php", "-d", "error_reporting=-1", "-d", "display_errors=stderr", "drive.php", t.TempDir())
	},
	"python": func(t *testing.T) *exec.Cmd { return exec.Command(spawn.Python(t, "cryptography"), "drive.py") },
	"woocommerce": func(*testing.T) *exec.Cmd {
		return exec.Command("php", "-d", "error_reporting=-1", "-d", "display_errors=stderr", "drive-woocommerce.php")
	},
	"ruby": func(*testing.T) *exec.Cmd { return exec.Command("ruby", "-w", "drive.rb") },
}

type vector struct {
	Name     string
	Issuer   string
	Audience string
	Secret   *string
	Remote   bool
	URL      string
	Leeway   int64 `json:"leeway_ms"`
	Steps    []vectorStep
}

type vectorStep struct {
	Now        int64 `json:"now_ms"`
	JWKS       *vectorJWKS
	Tokens     []string
	Pad        int
	Subject    string
	AnySubject bool `json:"any_subject"`
	Lines      json.RawMessage
	Known      []string
	Want       string
	ID         string
	Fetches    int
}

type vectorJWKS struct {
	Status   int
	Location string
	Body     string
	Pad      int
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	raw, err := os.ReadFile("../../examples/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

// Verifiers in every language say what package token says, to a key set that they fetch from a real server.
func TestVerifiersSayTheSame(t *testing.T) {
	t.Parallel()
	vectors := readVectors(t)
	for _, language := range slices.Sorted(maps.Keys(verifierCommands)) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			d := startDriver(t, verifierCommands[language](t))
			for _, v := range vectors {
				if language == "woocommerce" && v.Name == "keys: withdrawn" {
					continue // in each step its hooks are called several times, and the second time the key is gone
				}
				for i, s := range v.Steps {
					if language == "woocommerce" {
						if s.Lines == nil || string(s.Lines) == "null" {
							s.Want = "lines" // it compares always
						}
						s.ID = "" // its hooks do not tell
					}
					if got := d.verify(v, i, 1); got.Reason != s.Want || got.ID != s.ID || got.fetches != s.Fetches {
						t.Errorf("%s, step %d: %+v; want %s, id %q, %d fetches", v.Name, i+1, got, s.Want, s.ID, s.Fetches)
					}
				}
			}
			if language == "php" || language == "woocommerce" {
				return // a process of PHP has one request at a time
			}
			if got := d.verify(vectors[slices.IndexFunc(vectors, fetchedOnce)], 0, 20); got.Reason != "ok" || got.fetches != 1 {
				t.Errorf("the first tokens at the same time: %+v; they should wait for one fetch", got)
			}
		})
	}
}

func fetchedOnce(v vector) bool { return v.Name == "keys: fetched once" }

// verifierDriver is a process that verifies a token for each line that it reads.
type verifierDriver struct {
	t   *testing.T
	url string
	in  *json.Encoder
	out *bufio.Scanner

	mu      sync.Mutex
	answer  *vectorJWKS
	fetches int
}

func startDriver(t *testing.T, cmd *exec.Cmd) *verifierDriver {
	t.Helper()
	d := &verifierDriver{t: t}
	server := httptest.NewServer(http.HandlerFunc(d.serveJWKS))
	t.Cleanup(server.Close)
	d.url = server.URL
	var log bytes.Buffer
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	done, err := spawn.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	d.in, d.out = json.NewEncoder(in), bufio.NewScanner(out)
	t.Cleanup(func() {
		in.Close()
		rest, _ := io.ReadAll(out)
		if err := <-done; err != nil || len(rest) > 0 || log.Len() > 0 {
			t.Errorf("%v: %v\n%s%s", cmd.Args, err, rest, &log)
		}
	})
	return d
}

func (d *verifierDriver) serveJWKS(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	answer := d.answer
	d.fetches++
	d.mu.Unlock()
	switch {
	case r.URL.Path != "/jwks.json":
		d.t.Errorf("a redirect was followed to %s", r.URL)
	case answer == nil:
		// The connection breaks. Before the answer has begun, some clients would ask a second time.
		w.Header().Set("Content-Length", "500")
		w.Write([]byte(`{"keys":[`))
		return
	case answer.Location != "":
		w.Header().Set("Location", answer.Location)
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.WriteHeader(answer.Status)
	w.Write([]byte(answer.Body + strings.Repeat(" ", answer.Pad)))
}

type verified struct {
	Reason  string
	ID      string
	fetches int
}

// verify runs one step, perhaps several times at once; the driver makes a new verifier for the first one.
func (d *verifierDriver) verify(v vector, i, times int) (got verified) {
	d.t.Helper()
	s := v.Steps[i]
	d.mu.Lock()
	d.answer, d.fetches = s.JWKS, 0
	d.mu.Unlock()
	line := map[string]any{
		"first": i == 0, "issuer": v.Issuer, "audience": v.Audience, "secret": v.Secret, "leeway_ms": v.Leeway, "url": nil,
		"times": times, "now_ms": s.Now, "token": nil, "subject": s.Subject, "any_subject": s.AnySubject, "lines": s.Lines, "known": s.Known,
	}
	switch {
	case v.URL != "":
		line["url"] = v.URL
	case v.Remote:
		line["url"] = d.url + "/jwks.json"
	}
	if len(s.Tokens) > 0 { // servers join headers of one name
		line["token"] = strings.Join(s.Tokens, ", ") + strings.Repeat("A", s.Pad)
	}
	if err := d.in.Encode(line); err != nil {
		d.t.Fatalf("%s, step %d: %v", v.Name, i+1, err)
	}
	if !d.out.Scan() {
		d.t.Fatalf("%s, step %d: the driver has ended (%v)", v.Name, i+1, d.out.Err())
	}
	if err := json.Unmarshal(d.out.Bytes(), &got); err != nil {
		d.t.Fatalf("%s, step %d: %v in %q", v.Name, i+1, err, d.out.Text())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	got.fetches = d.fetches
	return got
}

// must runs a command to its end.
func must(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}
