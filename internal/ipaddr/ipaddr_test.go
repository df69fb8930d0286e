package ipaddr_test

import (
	"net/netip"
	"testing"

	"github.com/stockgate/stockgate/internal/ipaddr"
)

// The examples of RFC 6052, section 2.4, with the prefixes of RFC 8215 in place of its own.
func TestClient(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.33":                 "192.0.2.33",
		"::ffff:192.0.2.33":          "192.0.2.33",
		"::ffff:192.0.2.33%eth0":     "192.0.2.33",
		"64:ff9b::192.0.2.33":        "192.0.2.33",
		"::ffff:0:192.0.2.33":        "192.0.2.33",
		"64:ff9b:1:c000:2:2100::":    "192.0.2.33",
		"64:ff9b:1:ffc0:0:221::":     "192.0.2.33",
		"64:ff9b:1:ffff:c0:2:2100:0": "192.0.2.33",
		"64:ff9b:1::192.0.2.33":      "192.0.2.33",
		"64:ff9b:1:fffe::192.0.2.33": "192.0.2.33",
		"64:ff9b::1:192.0.2.33":      "64:ff9b::1:c000:221",
		"64:ff9b:2::192.0.2.33":      "64:ff9b:2::c000:221",
		"2001:db8::192.0.2.33%eth0":  "2001:db8::c000:221",
		"::192.0.2.33":               "::c000:221",
		"2002:c000:221::1":           "2002:c000:221::1",
	} {
		if got := ipaddr.Client(netip.MustParseAddr(text)); got.String() != want {
			t.Errorf("%s is the client %v, want %s", text, got, want)
		}
	}
}

func TestClients(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.0/24":                "192.0.2.0/24",
		"::ffff:192.0.2.0/120":        "192.0.2.0/24",
		"::ffff:0.0.0.0/96":           "0.0.0.0/0",
		"64:ff9b::192.0.2.0/120":      "192.0.2.0/24",
		"64:ff9b::192.0.2.33/128":     "192.0.2.33/32",
		"::ffff:0:192.0.2.33/128":     "192.0.2.33/32",
		"64:ff9b:1::192.0.2.33/128":   "192.0.2.33/32",
		"64:ff9b:1:c000:2:2100::/128": "192.0.2.33/32",
		"64:ff9b:1:c000:2:2100::/120": "64:ff9b:1:c000:2:2100::/120",
		"64:ff9b::/96":                "64:ff9b::/96",
		"64:ff9b:1::/48":              "64:ff9b:1::/48",
		"::ffff:0:0:0/96":             "::ffff:0:0:0/96",
		"2001:db8::1/128":             "2001:db8::1/128",
		"::/0":                        "::/0",
	} {
		if got := ipaddr.Clients(netip.MustParsePrefix(text)); got.String() != want {
			t.Errorf("%s are the clients %v, want %s", text, got, want)
		}
	}
}
