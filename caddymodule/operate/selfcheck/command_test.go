package selfcheck_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// boughtAt records a purchase at a shop.
func boughtAt(t *testing.T, open func(*testing.T) *testShop, dir string) string {
	t.Helper()
	shop := open(t)
	server := httptest.NewServer(shop.handler)
	t.Cleanup(server.Close)
	shop.url = server.URL
	b := newBrowser(t, server.URL, nil)
	if !shop.buy(b, "canary") {
		t.Fatal("the shop did not take the order")
	}
	return b.har.save(t, dir, "buy.har")
}

// TestEditedFilesAreKept learns twice, and edits a file in between.
func TestEditedFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	har := boughtAt(t, jsonShop, dir)
	learn := func(args ...string) sitetest.Ran {
		return sitetest.Here(t, "", append([]string{"learn", "--dir", dir}, args...)...)
	}
	// the first time in a process of its own: Caddy writes nothing to stderr
	if ran := sitetest.Process(t, "", "learn", "--dir", dir, har); ran.Status != 0 || ran.Errors != "" {
		t.Fatalf("%d %s%s", ran.Status, ran.Out, ran.Errors)
	}
	path := filepath.Join(dir, "Caddyfile")
	edited := strings.Replace(read(t, dir, "Caddyfile"), ":8080", "shop.example.com", 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if ran := learn(har); ran.Status != 0 || !strings.Contains(ran.Out, "stays as you have edited it") {
		t.Errorf("%d %s%s", ran.Status, ran.Out, ran.Errors)
	}
	ran := learn("--shop", "10.0.0.5:3000", har)
	if ran.Status != 0 || !strings.Contains(ran.Out, "compare it with "+path+".new") {
		t.Errorf("%d %s%s", ran.Status, ran.Out, ran.Errors)
	}
	if read(t, dir, "Caddyfile") != edited || !strings.Contains(read(t, dir, "Caddyfile.new"), "reverse_proxy 10.0.0.5:3000") {
		t.Error("the edited file was overwritten, or the new one is not there")
	}
}

// TestFailedCheck learns from a recording whose order cannot be reserved as it was recorded: nothing is written
// under a name that Caddy reads.
func TestFailedCheck(t *testing.T) {
	dir := t.TempDir()
	har := boughtAt(t, codeShop, dir)
	raw, err := os.ReadFile(har)
	if err != nil {
		t.Fatal(err)
	}
	twice := strings.Replace(string(raw), `{\"mobile\"`, `{\"SKUID\":1,\"mobile\"`, 1)
	if twice == string(raw) {
		t.Fatal("the recording has no order")
	}
	if err := os.WriteFile(har, []byte(twice), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := sitetest.Run(t, "", "learn", "--dir", dir, har)
	if ran.Status != 1 || !strings.Contains(ran.Errors, "the gate refuses the order as malformed") {
		t.Errorf("%d %s%s", ran.Status, ran.Out, ran.Errors)
	}
	if _, err := os.Stat(filepath.Join(dir, "Caddyfile")); err == nil {
		t.Error("a wrong configuration was written")
	}
	read(t, dir, "Caddyfile.failed")
}

func TestWrongCommandLines(t *testing.T) {
	for _, args := range [][]string{{"learn"}, {"learn", "none.har"}, {"learn", ""}, {"learn", "--order", "-1", "x.har"}, {"learn", "--shop", "http://a b", "x.har"}} {
		if ran := sitetest.Here(t, "", args...); ran.Status != 2 || ran.Errors == "" {
			t.Errorf("%q: %d %s%s", args, ran.Status, ran.Out, ran.Errors)
		}
	}
}
