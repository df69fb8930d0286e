package resolve

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

// A client has few certificates fetched, all clients together have not many, and one that was valid is fetched again
// all the same.
func TestFetchesAreBounded(t *testing.T) {
	l, now := newFetchLimits(), time.Unix(1_790_000_000, 0)
	begin := func(client string, known bool) bool {
		done, no := l.begin(client, "https://a/"+client, known, now)
		if no == nil {
			done()
		}
		return no == nil
	}
	one, all := 0, 0
	for range 100 {
		if begin("one", false) {
			one++
		}
	}
	for i := range 1000 {
		if begin(fmt.Sprint(i), false) {
			all++
		}
	}
	if one != fetchClientBurst || one+all != fetchBurst || !begin("one", true) {
		t.Errorf("one client has %d, all have %d", one, one+all)
	}
	again := 1
	for range 100 {
		if begin("one", true) {
			again++
		}
	}
	if again != knownBurst {
		t.Errorf("one that is known is fetched %d times", again)
	}
	for i := range fetchAtOnce {
		if _, no := l.begin("one", fmt.Sprint(i), true, now); no != nil {
			t.Fatal(no)
		}
	}
	if _, no := l.begin("one", "a", true, now); no == nil || no.status != 503 {
		t.Errorf("more at once than there may be: %v", no)
	}
}

// A certificate that is being fetched is waited for, and not fetched again.
func TestFetchUnderWay(t *testing.T) {
	var c *certificates
	c = newCertificates(func(url string) (*certificate, *refusal) {
		f, done, no := c.begin(url, "another client", time.Now())
		if f != c.underWay[url] || done != nil || no != nil {
			t.Error("another client fetches it too")
		}
		return &certificate{until: time.Now().Add(time.Hour)}, nil
	})
	if _, err := c.of(t.Context(), "a", "a"); err != nil || len(c.kept) != 1 {
		t.Error(err)
	}
}

// A client is not to blame for a certificate that cannot be had, and is for one that there is not.
func TestRefusalsThatBlameClients(t *testing.T) {
	for no, want := range map[*refusal]bool{
		unavailable(meter.WebhookProviderFailed, ""):     false,
		unavailable(meter.WebhookBusy, ""):               false,
		{status: 429, counts: meter.WebhookLimited}:      false,
		{status: 401, counts: meter.WebhookUnauthorized}: true,
		{status: 400, counts: meter.WebhookUnreadable}:   true,
	} {
		if no.blamesClient() != want {
			t.Errorf("%d %d: %v", no.status, no.counts, !want)
		}
	}
}

// A fetch that panics keeps no other request waiting.
func TestFetchThatPanics(t *testing.T) {
	c := newCertificates(func(string) (*certificate, *refusal) { panic("a certificate") })
	for range fetchAtOnce + 1 {
		func() {
			defer func() { _ = recover() }()
			_, _ = c.of(t.Context(), "a", "a")
		}()
	}
	if len(c.underWay) != 0 || len(c.kept) != 0 || c.limits.slots.Taken() != 0 {
		t.Error("it is still under way")
	}
}

// Certificates are kept until their time is over, and few of them.
func TestCertificatesThatAreKept(t *testing.T) {
	until, fetched := time.Now().Add(time.Hour), 0
	c := newCertificates(func(string) (*certificate, *refusal) {
		fetched++
		return &certificate{until: until}, nil
	})
	get := func(url string) {
		t.Helper()
		if _, err := c.of(t.Context(), url, url); err != nil {
			t.Fatal(err)
		}
	}
	get("a")
	get("a")
	until = time.Unix(0, 0)
	get("b")
	get("b")
	if fetched != 3 {
		t.Errorf("%d were fetched, want 3", fetched)
	}
	until = time.Now().Add(time.Hour)
	for i := range 20 {
		get(fmt.Sprint(i))
		if i == maxCertificates-2 && (c.kept["b"] != nil || c.kept["a"] == nil) {
			t.Error("not the one whose time is over was forgotten")
		}
	}
	if len(c.kept) != maxCertificates || len(c.underWay) != 0 {
		t.Errorf("%d are kept, %d under way", len(c.kept), len(c.underWay))
	}
}

func TestPublicAddresses(t *testing.T) {
	for _, text := range []string{"173.0.84.1", "2a00:1450:4001::1", "64:ff9b::ad00:5401", "::ffff:173.0.84.1"} {
		if !isPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is public", text)
		}
	}
	for _, text := range []string{
		"127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.1.2.3", "192.0.0.1",
		"198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1",
		"::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "fec0::1",
	} {
		if isPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is not public", text)
		}
	}
	if onlyPublic(t.Context(), "unix", "/run/a.sock", nil) == nil {
		t.Error("a socket is not public")
	}
}
