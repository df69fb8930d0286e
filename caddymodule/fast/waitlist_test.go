package fast_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// waitingSites have a waiting list.
const waitingSites = `
SITEshop.example.comPORT {
	stockgate_guard
	@waitlist path /waitlist /waitlist/*
	stockgate_waitlist @waitlist wait {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		FAST
	}
	@order {
		method POST
		path /api/order
	}
	stockgate @order main {
		buyer {header.X-User-Id}
		line {json.sku}
		outcome backend
		hold_for 20m
		FAST
	}
	respond "shop" 201
}
`

const ofShop = " HTTP/1.1\r\nHost: shop.example.com\r\n"

// posts is a request with a body.
func posts(path, buyer, body string) string {
	return fmt.Sprintf("POST %s%sX-User-Id: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, ofShop, buyer, len(body), body)
}

// waitingPlace sells few, and lets a buyer wait for it. It returns the path of the place.
func waitingPlace(s *sitetest.FastSite, buyer string) string {
	s.T.Helper()
	answer := s.Raw(s.Plain, posts("/waitlist", buyer, `{"sku":"few"}`), 1)
	_, rest, ok := strings.Cut(answer, "Location: ")
	if !ok {
		s.T.Fatal(answer)
	}
	place, _, _ := strings.Cut(rest, "\r\n")
	return place
}

func openWaitingSites(t *testing.T, secure bool, servers string) *sitetest.FastSite {
	t.Helper()
	s := sitetest.OpenFastWith(t, secure, servers, waitingSites)
	sitetest.Do[any](s.Site, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+"waitlist: {offer: 10m}\n")
	s.Refresh()
	for _, buyer := range []string{"ann", "art", "amy"} {
		if a := s.Raw(s.Plain, posts("/api/order", buyer, `{"sku":"few"}`), 1); !strings.HasPrefix(a, "HTTP/1.1 201") {
			t.Fatal(a)
		}
	}
	return s
}

// TestPlacesAreToldFast answers polls at the connection, with the bytes of the handler, and leaves to it all else.
func TestPlacesAreToldFast(t *testing.T) {
	s := openWaitingSites(t, false, "")
	ben, cid := waitingPlace(s, "ben"), waitingPlace(s, "cid")
	stocktest.Eventually(t, "both wait", func() bool { return strings.Contains(s.Raw(s.Plain, "GET "+cid+ofShop+"\r\n", 1), `"place":2`) })
	if got, want := s.Both(posts("/api/order", "dan", `{"sku":"few"}`)); got != want || !strings.Contains(got, `"waitlist":"/waitlist"`) {
		t.Errorf("a refusal:\n%s\nwant\n%s", got, want)
	}
	for request, want := range map[string]struct {
		fast   bool
		answer string
	}{
		"GET " + ben + ofShop + "\r\n":                                             {true, `{"state":"waiting","sku":"few","quantity":1,"place":1}`},
		"GET " + cid + ofShop + "Accept: */*\r\nUser-Agent: x\r\n\r\n":             {true, "Etag: W/\"w2\"\r\nRetry-After: "},
		"HEAD " + ben + ofShop + "\r\n":                                            {true, "Content-Length: "},
		"GET " + ben + "?x=1" + ofShop + "\r\n":                                    {true, `"place":1`},
		"GET " + ben + ofShop + "If-None-Match: W/\"w1\"\r\n\r\n":                  {false, "304 Not Modified"},
		"GET " + ben + ofShop + "if-none-match: W/\"w2\"\r\n\r\n":                  {false, `"place":1`},
		"GET " + ben + ofShop + "Prefer: wait=0\r\n\r\n":                           {false, `"place":1`},
		"GET " + ben + ofShop + "Accept: text/html, text/Event-Stream;q=0\r\n\r\n": {false, `"place":1`},
		"GET " + ben + "x" + ofShop + "\r\n":                                       {false, "404 Not Found"},
		"GET /waitlist" + ofShop + "\r\n":                                          {false, "404 Not Found"},
		"PUT " + ben + ofShop + "\r\n":                                             {false, "405 Method Not Allowed"},
		posts("/waitlist", "", `{"sku":"few"}`):                                    {true, "no_buyer"},
		posts("/waitlist", "dan", `{"sku":"none"}`):                                {true, "unknown_item"},
		posts("/waitlist", "ben", `{"sku":"few"}`):                                 {false, `{"state":"waiting","sku":"few","quantity":1}`},
	} {
		got, plain := s.Both(request)
		n, _ := refuses(t, request, 1)
		if got != plain || !strings.Contains(got, want.answer) || n == 1 != want.fast {
			t.Errorf("%q: fast %t, want %t with %q:\n%s\nwithout the wrapper\n%s", request, n == 1, want.fast, want.answer, got, plain)
		}
	}
	if got := s.Raw(s.Fast, "GET "+cid+ofShop+"\r\n", 1); !regexp.MustCompile("Retry-After: [23]\r\n").MatchString(got) {
		t.Errorf("cid may not ask again after 2 or 3 s:\n%s", got)
	}
	s.Raw(s.Plain, "DELETE "+ben+ofShop+"\r\n", 1)
	ended := "GET " + ben + ofShop + "\r\n"
	stocktest.Eventually(t, "that ben has left", func() bool { return strings.Contains(s.Raw(s.Fast, ended, 1), `{"state":"ended","why":"left"}`) })
	if n, _ := refuses(t, ended, 1); n != 0 {
		t.Error("an end is told from memory alone: ben may have entered again at another edge")
	}
	if got, want := s.Both(ended); got != want || strings.Contains(got, "Retry-After") {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestPlacesOverHTTP2 asks many places on one connection, and follows one in a stream.
func TestPlacesOverHTTP2(t *testing.T) {
	s := openWaitingSites(t, true, "protocols h1 h2")
	var places []string
	for i := range 5 {
		places = append(places, waitingPlace(s, fmt.Sprint("buyer ", i)))
	}
	fast, plain := openH2(s, s.Fast), openH2(s, s.Plain)
	for i, place := range places {
		request := "GET " + place + ofShop + "\r\n"
		stocktest.Eventually(t, "a place", func() bool { return strings.Contains(plain.ask(request), fmt.Sprintf(`"place":%d`, i+1)) })
		got, want, _ := sitetest.Agree(1, func() (string, string) {
			return sitetest.WithoutDate(fast.ask(request)), sitetest.WithoutDate(plain.ask(request))
		})
		if got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.Secure.Clone(), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+s.Fast+places[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "shop.example.com"
	r.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", resp.Proto, resp.Status)
	}
	var told struct{ State, Why string }
	next := func() bool {
		text := ""
		for !strings.HasSuffix(text, "\n\n") || !strings.Contains(text, "data: ") {
			var b [1]byte
			if n, err := resp.Body.Read(b[:]); n == 0 && err != nil {
				return false
			}
			text += string(b[0])
		}
		_, data, _ := strings.Cut(text, "data: ")
		if err := json.Unmarshal([]byte(data), &told); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return true
	}
	if !next() || told.State != "waiting" {
		t.Fatalf("%+v", told)
	}
	s.Raw(s.Plain, "DELETE "+places[0]+ofShop+"\r\n", 1)
	if !next() || told.State != "ended" || told.Why != "left" {
		t.Errorf("%+v", told)
	}
	if next() {
		t.Errorf("after the end: %+v", told)
	}
}
