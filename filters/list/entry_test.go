package list_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/list"
)

// digits is a normal form for phones.
func digits(kind, value string) string {
	if kind != list.Phone {
		return value
	}
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, value)
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"alice":                    "any:alice",
		"  alice \t":               "any:alice",
		"Alice Smith":              "any:Alice Smith",
		"buyer:alice":              "buyer:alice",
		"buyer: alice ":            "buyer:alice",
		"buyer:buyer:alice":        "buyer:buyer:alice",
		"any:phone:1":              "any:phone:1",
		"any:10.0.0.1":             "any:10.0.0.1",
		"buyer:10.0.0.1":           "buyer:10.0.0.1",
		"device:aa:bb:cc:dd:ee:ff": "device:aa:bb:cc:dd:ee:ff",
		"phone:+86 138-0013-8000":  "phone:8613800138000",
		"13800138000":              "any:13800138000",
		"email:a@b.c":              "email:a@b.c",
		"fax:1":                    "any:fax:1",
		"a#b":                      "any:a#b",
		"1.2.3":                    "any:1.2.3",
		"a/b":                      "any:a/b",
		"北京":                       "any:北京",
		"10.1.2.3":                 "ip:10.1.2.3/32",
		"ip:10.1.2.3":              "ip:10.1.2.3/32",
		"10.1.2.3/8":               "ip:10.0.0.0/8",
		"0.0.0.0/0":                "ip:0.0.0.0/0",
		"2001:DB8:0:0::1":          "ip:2001:db8::1/128",
		"2001:db8::ffff/32":        "ip:2001:db8::/32",
		"::/0":                     "ip:::/0",
		"::ffff:10.1.2.3":          "ip:10.1.2.3/32",
		"::ffff:10.1.2.3/104":      "ip:10.0.0.0/8",
		"64:ff9b::10.1.2.3":        "ip:10.1.2.3/32",
		"64:ff9b:1::10.1.2.3/120":  "ip:10.1.2.0/24",
		"::ffff:0:10.1.2.3":        "ip:10.1.2.3/32",
		"64:ff9b::/96":             "ip:64:ff9b::/96",
		strings.Repeat("x", 512):   "any:" + strings.Repeat("x", 512),
		"dead.beef":                "any:dead.beef",
		"ip6:not a kind":           "any:ip6:not a kind",
		"any:10.0.0.1 # a name":    "any:10.0.0.1 # a name",
		"any:Phone:1":              "any:Phone:1",
		"buyer:IP:1":               "buyer:IP:1",
		"IP":                       "any:IP",
		"Phone":                    "any:Phone",
		"Phones:1":                 "any:Phones:1",
		"https://a.example/IP:1":   "any:https://a.example/IP:1",
		"a@10.0.0.1":               "any:a@10.0.0.1",
		"host-10.0.0.1.example":    "any:host-10.0.0.1.example",
		"Alice, 10.0.0.1":          "any:Alice, 10.0.0.1",
		"1/2 Main St.":             "any:1/2 Main St.",
		"5 Main St., flat 1":       "any:5 Main St., flat 1",
		"1.2.3 # a version":        "any:1.2.3 # a version",
	} {
		e, err := list.Parse(text, digits)
		if err != nil || e.String() != want {
			t.Errorf("Parse(%q) = %v, %v, want %s", text, e, err, want)
			continue
		}
		if again, err := list.Parse(e.String(), digits); err != nil || again != e {
			t.Errorf("Parse(%q) = %v, %v, want the same entry again", e.String(), again, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "empty",
		" \t ":                     "empty",
		"buyer:":                   "empty",
		"ip: ":                     "empty",
		"ip:alice":                 "not an address",
		"10.0.0.256":               "not an address",
		"010.0.0.1":                "not an address",
		"10.0.0/8":                 "not an address",
		"10.0.0.0/33":              "not an address",
		"10.0.0.0/-1":              "not an address",
		"10.0.0.0-10.0.0.9":        "not an address",
		"10.0.0.0/08":              "not an address",
		"2001:db8::/129":           "not an address",
		"aa:bb:cc:dd:ee:ff":        "not an address",
		"1.10.16.0/20 ; SBL256894": "one address or prefix",
		"192.0.2.1 # scraper":      "one address or prefix",
		"192.0.2.1#scraper":        "one address or prefix",
		"192.0.2.3,spam":           "one address or prefix",
		"192.0.2.3;":               "one address or prefix",
		"192.0.2.3 192.0.2.4":      "one address or prefix",
		"192.0.2.256 # scraper":    "one address or prefix",
		"2001:db8::/32 (office)":   "one address or prefix",
		"192.0.2.3\u00a0spam":      "one address or prefix",
		"192.0.2.3|spam":           "one address or prefix",
		`"192.0.2.3"`:              "one address or prefix",
		"[2001:db8::1]":            "one address or prefix",
		"ip:192.0.2.1 # scraper":   "not an address",
		"IP:192.0.2.4":             "write ip:",
		"Phone:13800138000":        "write phone:",
		"BUYER:alice":              "write buyer:",
		"phone :13800138000":       "write phone:",
		"phone：13800138000":        "write phone:",
		"Any:alice":                "write any:",
		"fe80::1%eth0":             "zone",
		"fe80::%eth0/64":           "zone",
		strings.Repeat("x", 513):   "longer than 512 bytes",
		"a\x00b":                   "control character",
		"a\nb":                     "control character",
		"a\u0085b":                 "control character",
		"\xff\xfea":                "not UTF-8",
		"phone:none":               "nothing is left",
	} {
		if e, err := list.Parse(text, digits); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, %v, want an error with %q", text, e, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"alice", "buyer:a", "10.0.0.0/8", "::ffff:1.2.3.4/97", "fe80::1%x", "any:any:", "ip:::"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := list.Parse(text, nil)
		if err != nil {
			return
		}
		again, err := list.Parse(e.String(), nil)
		if err != nil || again != e {
			t.Fatalf("%q is %v, and that is %v, %v", text, e, again, err)
		}
		// the entry is found under the very text that lists it
		if e.Kind == list.IP && !e.Prefix.IsValid() || e.Kind != list.IP && e.Value == "" {
			t.Fatalf("%q is %#v", text, e)
		}
	})
}
