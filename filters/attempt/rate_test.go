package attempt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

// rateReader makes a reader with rates, the buyer in X-User-Id.
func rateReader(t testing.TB, rates ...attempt.RateKey) *attempt.Reader {
	t.Helper()
	return mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"),
		Line:  []attempt.LineSpec{{SKU: values(t, "a")}},
		Rates: rates,
	})
}

func TestRateKeys(t *testing.T) {
	rd := rateReader(t,
		attempt.RateKey{Key: values(t, "{client_ip}"), IPv6Prefix: 64},
		attempt.RateKey{Key: values(t, "all")},
		attempt.RateKey{Key: values(t, "{json.device}", "{client_ip}"), IPv6Prefix: 48},
		attempt.RateKey{Key: values(t, "{json.phone}")},
		attempt.RateKey{Key: values(t, "{client_ip}")},
	)
	for name, tc := range map[string]struct {
		ip, body string
		want     []string
		bad      string
	}{
		"IPv4":             {"192.0.2.1", `{}`, []string{"192.0.2.1", "all", "1\x00192.0.2.1", "", "192.0.2.1"}, ""},
		"IPv6":             {"2001:db8:1:2:3:4:5:6", `{}`, []string{"2001:db8:1:2::/64", "all", "1\x002001:db8:1::/48", "", "2001:db8:1:2:3:4:5:6"}, ""},
		"IPv6 with zone":   {"fe80::1%eth0", `{}`, []string{"fe80::/64", "all", "1\x00fe80::/48", "", "fe80::1%eth0"}, ""},
		"IPv4 in IPv6":     {"::ffff:192.0.2.1", `{}`, []string{"192.0.2.1", "all", "1\x00192.0.2.1", "", "::ffff:192.0.2.1"}, ""},
		"a NAT64":          {"64:ff9b::192.0.2.1", `{}`, []string{"192.0.2.1", "all", "1\x00192.0.2.1", "", "64:ff9b::192.0.2.1"}, ""},
		"a local NAT64":    {"64:ff9b:1::192.0.2.1", `{}`, []string{"192.0.2.1", "all", "1\x00192.0.2.1", "", "64:ff9b:1::192.0.2.1"}, ""},
		"translated IPv4":  {"::ffff:0:192.0.2.1", `{}`, []string{"192.0.2.1", "all", "1\x00192.0.2.1", "", "::ffff:0:192.0.2.1"}, ""},
		"no address":       {"@", `{}`, []string{"@", "all", "1\x00@", "", "@"}, ""},
		"nothing":          {"", `{}`, []string{"", "all", "", "", ""}, ""},
		"another's value":  {"192.0.2.1", `{"device":"192.0.2.9","phone":13800001111}`, []string{"192.0.2.1", "all", "192.0.2.9", "13800001111", "192.0.2.1"}, ""},
		"no network of it": {"192.0.2.1", `{"device":"2001:db8::1"}`, []string{"192.0.2.1", "all", "2001:db8::1", "", "192.0.2.1"}, ""},
		"as another":       {"192.0.2.1", `{"device":"1\u0000192.0.2.9"}`, nil, "malformed json.device: it holds NUL"},
		"control":          {"192.0.2.1", `{"device":"1\u0001"}`, nil, "malformed json.device: it is not UTF-8"},
		"too long":         {"192.0.2.1", `{"phone":"` + strings.Repeat("1", 513) + `"}`, nil, "malformed json.phone: it is longer"},
		"another type":     {"192.0.2.1", `{"phone":[1]}`, nil, "malformed json.phone: it is neither"},
		"twice":            {"192.0.2.1", `{"phone":1,"phone":2}`, nil, "malformed json.phone: the name appears"},
	} {
		a, refusal := whole(t, rd, request("POST", "/", jsonType, tc.body), attempt.Env{ClientIP: tc.ip})
		if got := describe(refusal); tc.bad == "" && got != "" || !strings.HasPrefix(got, tc.bad) {
			t.Errorf("%s: got %q, want %q", name, got, tc.bad)
		}
		if !slices.Equal(a.RateKeys, tc.want) {
			t.Errorf("%s: got %q, want %q", name, a.RateKeys, tc.want)
		}
	}
}

// A key that is also an identity of the gate counts in the identity's normal form: another
// spelling of a phone has no pace of its own.
func TestRateKeysOfIdentities(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"),
		Line:  []attempt.LineSpec{{SKU: values(t, "a")}},
		Identities: map[string]attempt.Values{
			"phone": values(t, "{header.X-Phone}", "{json.phone}"), "address": values(t, "{json.address}"), "device": values(t, "{json.device}"), "ip": values(t, "{client_ip}"),
		},
		Rates: []attempt.RateKey{
			{Key: values(t, "{header.X-Phone}", "{json.phone}")},
			{Key: values(t, "{json.address}")},
			{Key: values(t, "{json.device}", "{client_ip}"), IPv6Prefix: 56},
			{Key: values(t, "{json.phone}")}, // not the identity where the header has one
			{Key: values(t, "{header.X-Phone}", "{json.address}")},
		},
	})
	for name, tc := range map[string]struct {
		phone, body string
		want        []string
	}{
		"plain":       {"13800138000", `{"address":"1 Main St","device":"d"}`, []string{"13800138000", "1 main st", "d", "", "13800138000"}},
		"spelt":       {"(138) 0013-8000", `{"address":"1, MAIN st."}`, []string{"13800138000", "1 main st", "1\x002001:db8::/56", "", "13800138000"}},
		"in JSON":     {"", `{"phone":"１３８ 0013 8000","address":"１ Main St"}`, []string{"1\x0013800138000", "1 main st", "1\x002001:db8::/56", "１３８ 0013 8000", "1\x001 main st"}},
		"a country":   {"0086 138 0013 8000", `{"phone":"8-6"}`, []string{"+8613800138000", "", "1\x002001:db8::/56", "8-6", "+8613800138000"}},
		"no digits":   {"none", `{"phone":"138"}`, []string{"", "", "1\x002001:db8::/56", "138", ""}},
		"none at all": {"", `{}`, []string{"", "", "1\x002001:db8::/56", "", ""}},
	} {
		r := request("POST", "/", jsonType, tc.body)
		if tc.phone != "" {
			r.Header.Set("X-Phone", tc.phone)
		}
		a, refusal := whole(t, rd, r, attempt.Env{ClientIP: "2001:db8::1"})
		if got := describe(refusal); got != "" && !strings.HasPrefix(got, "no_buyer") || !slices.Equal(a.RateKeys, tc.want) {
			t.Errorf("%s: got %q %q, want %q", name, got, a.RateKeys, tc.want)
		}
	}
}

func TestRateKeyIsChecked(t *testing.T) {
	_, err := attempt.NewReader(attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"),
		Line:  []attempt.LineSpec{{SKU: values(t, "a")}},
		Rates: []attempt.RateKey{{Key: values(t, strings.Repeat("a", 513))}},
	})
	if err == nil || !strings.Contains(err.Error(), "rate's key: the constant") {
		t.Errorf("a constant that is too long: error %v", err)
	}
	if a, _ := whole(t, lineReader(t, "a", ""), request("POST", "/", "", ""), attempt.Env{}); a.RateKeys != nil {
		t.Errorf("without rates: keys %q", a.RateKeys)
	}
}
