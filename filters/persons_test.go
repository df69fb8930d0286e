package filters_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/list"
)

// listOf opens a list with these lines.
func listOf(t testing.TB, lines string) *list.List {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := list.OpenFile(path, list.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &f.List
}

// absent is a keeper that does not answer.
type absent struct{}

var errAbsent = errors.New("absent")

func (absent) Ready() error                     { return errAbsent }
func (absent) HashText(string, string) list.Key { return list.Key{} }
func (absent) HashPrefix(netip.Prefix) list.Key { return list.Key{} }
func (absent) HasAny(context.Context, time.Time, []list.Key) (bool, error) {
	return false, errAbsent
}

// watch is a keeper that has nothing, and notes when the attempts began that it is asked for.
type watch struct{ began []time.Time }

func (*watch) Ready() error { return nil }
func (w *watch) HasAny(_ context.Context, began time.Time, _ []list.Key) (bool, error) {
	w.began = append(w.began, began)
	return false, nil
}
func (*watch) HashText(string, string) list.Key       { return list.Key{} }
func (*watch) HashPrefix(p netip.Prefix) (k list.Key) { return k }

func TestPersons(t *testing.T) {
	here := listOf(t, "buyer:bob\nphone:1555\ndevice:d\naddress:Main St 1\n192.0.2.0/24\ncarol\n")
	other := listOf(t, "buyer:dan\n")
	away := &list.NewHashed(absent{}).List
	with := func(kind, value string) filters.Person {
		return filters.Person{IP: "198.51.100.1", Buyer: "ann", Identities: map[string]string{kind: value}}
	}
	for _, c := range []struct {
		name             string
		person           filters.Person
		lists            []*list.List
		denied, admitted string
	}{
		{"unlisted", with("", ""), []*list.List{here, other}, "no", "no"},
		{"no lists", with("", ""), nil, "no", "no"},
		{"buyer", filters.Person{IP: "198.51.100.1", Buyer: "bob"}, []*list.List{other, here}, "yes", "yes"},
		{"phone", with("phone", "1555"), []*list.List{other, here}, "yes", "yes"},
		{"device", with("device", "d"), []*list.List{here}, "yes", "yes"},
		{"address", with("address", "Main St 1"), []*list.List{here}, "yes", "yes"},
		{"one kind's value as another", with("device", "1555"), []*list.List{here}, "no", "no"},
		{"ip", filters.Person{IP: "192.0.2.9", Buyer: "ann"}, []*list.List{here}, "yes", "yes"},
		{"ip as an identity is what the client says", with("ip", "192.0.2.9"), []*list.List{here}, "no", "no"},
		{"an entry without a kind, as the buyer", filters.Person{IP: "198.51.100.1", Buyer: "carol"}, []*list.List{here}, "yes", "yes"},
		{"an entry without a kind, made up", with("phone", "carol"), []*list.List{here}, "yes", "no"},
		{"no address", filters.Person{Buyer: "ann"}, []*list.List{here}, "error", "no"},
		{"no address, and a member", filters.Person{IP: "@", Buyer: "bob"}, []*list.List{here}, "error", "yes"},
		{"a list is away", with("", ""), []*list.List{here, away}, "error", "error"},
		{"one list is down, another names the buyer", with("phone", "1555"), []*list.List{away, here}, "error", "yes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			word := func(yes bool, err error) string {
				switch {
				case err != nil && !yes:
					return "error"
				case yes && err == nil:
					return "yes"
				case err == nil:
					return "no"
				}
				return "both"
			}
			if got := word(filters.Denied(t.Context(), c.lists, &c.person)); got != c.denied {
				t.Errorf("denied: %s, want %s", got, c.denied)
			}
			if got := word(filters.Admitted(t.Context(), c.lists, &c.person)); got != c.admitted {
				t.Errorf("admitted: %s, want %s", got, c.admitted)
			}
		})
	}
}

// All lookups of one attempt count from the same time, so that a list that answers slowly does
// not make it wait again and again.
func TestLookupsOfOneAttemptBeginTogether(t *testing.T) {
	w := new(watch)
	var lists []*list.List
	for range 2 {
		m := list.NewHashed(w)
		m.Forms([]string{"any", "buyer", "phone", "device", "address", "ip4/32"})
		lists = append(lists, &m.List)
	}
	p := filters.Person{IP: "198.51.100.1", Buyer: "ann", Identities: map[string]string{"phone": "1555", "device": "d", "address": "a"}}
	for name, c := range map[string]struct {
		look    func(context.Context, []*list.List, *filters.Person) (bool, error)
		lookups int
	}{"denied": {filters.Denied, 2 * 9}, "admitted": {filters.Admitted, 2 * 6}} {
		w.began = nil
		before := time.Now()
		if yes, err := c.look(t.Context(), lists, &p); yes || err != nil {
			t.Errorf("%s: %v, %v", name, yes, err)
		}
		if len(w.began) != c.lookups {
			t.Errorf("%s: %d lookups, want %d", name, len(w.began), c.lookups)
		}
		for _, began := range w.began {
			if !began.Equal(w.began[0]) || began.Before(before) || began.After(time.Now()) {
				t.Errorf("%s: the lookups began at %v", name, w.began)
				break
			}
		}
	}
}

func TestItemsListed(t *testing.T) {
	items := filters.NewItems(func(yield func(string) bool) {
		_ = yield("20002001") && yield("Phone-X") && yield("0")
	})
	for sku, want := range map[string]bool{
		"20002001": true, "Phone-X": true, "phone-x": true, "PHONE-X": true, "0": true, "00": true,
		"020002001": true, "+20002001": true, "-20002001": true, "+020002001": true,
		"20002001x": true, "20002001.0": true, "20002001-RED": true, "2.0002001e7": true, "20002E3": true,
		"0x1312d01": true, "0b1": true, "20_002_001": true, ".5": true, "NaN": true,

		"20002002": false, "2000200": false, "200020010": false, "Phone": false, "Phone-XL": false,
		"tea": false, "12-RED": false, "12x": false, "": false, "-": false, "+": false,
	} {
		if got := items.Listed(sku); got != want {
			t.Errorf("%q: %v, want %v", sku, got, want)
		}
	}
	number := filters.NewItems(func(yield func(string) bool) { yield("20002001") })
	for sku, want := range map[string]bool{
		"2.0002001e7abc": true, ".20002001e8x": true, "2000200.1e1x": true, "0x13134d1zz": true, "0X13134D1ZZ": true,
		"+.20002001e8x": true, "20002000.9999x": true, "20002001.5x": true, "0114232321x": true, "0o114232321x": true,
		"0b1001100010011010011010001x": true, "20_002_001x": true, "200020010e-1x": true, "4314969297": true, "4314969297x": true,
		"17199871185": true, "-4274965295": true, "0114232321": true, "_20002001": true, "2,0002001'--": true, "0x13134d0.8x": true, "0x1.3134d1p24": true, "0x.13134d1p28zz": true, "20.002.001": true, "20_002_001__0": true, "20'002'001x": true, "2000_2001_": true, "#1313_4d1": true, "#13134D1": true,
		"2.0002001e+7-RED": true, "000020002001e0x": true,

		"2.0002001e6x": false, "0x1312d02z": false, "20_002_0012": true, "20__002_001x": true, "4314969298": false, "4274965295": false, "114232321": false, "2000x200.1e1": false, "e7": false, ".x": false,
		"3x5-frame": false, "10.5-inch": false, "12e-cable": false, "0x": false,
	} {
		if got := number.Listed(sku); got != want {
			t.Errorf("%q: %v, want %v", sku, got, want)
		}
	}
	long := filters.NewItems(func(yield func(string) bool) { yield("9007199254740993") })
	for sku, want := range map[string]bool{
		"9007199254740993": true, "9007199254740992": true, "9007199254740992x": true, "9.007199254740992e15x": true, "0400000000000000000&": true,
		"9007199254740990": false, "900719925474099": false,
	} {
		if got := long.Listed(sku); got != want {
			t.Errorf("%q: %v, want %v", sku, got, want)
		}
	}
	odd := filters.NewItems(func(yield func(string) bool) {
		_ = yield("20E5") && yield("0x1F") && yield("7.0") && yield("-11") && yield("12.5") && yield("3e21") && yield("1e999") && yield("NaN") && yield("0b101")
	})
	for sku, want := range map[string]bool{
		"20E5": true, "20e5": true, "2000000": true, "2e6": true, "2000000.0": true, "02000000": true, "2000000-RED": true, "4296967296": true,
		"31": true, "0X1F": true, "31.0": true, "0b11111x": true, "7": true, "07": true, "7x": true, "11": true, "12": true, "13": true, "12.50": true, "5": true,
		"3000000000000000000000": true, "2999999999999999999999x": true, "1e999": true, "2e999": true, "nan": true,
		"20": false, "20e": false, "1f": false, "32": false, "8": false, "14": false, "0": false, "1": false, "101": false, "tea": false, "12e-cable": true, "20000000": false,
		"4000000000000000000000": false,
	} {
		if got := odd.Listed(sku); got != want {
			t.Errorf("%q: %v, want %v", sku, got, want)
		}
	}
	for item, listed := range map[string]map[string]bool{
		"20002001": { // modulo 2^64, at 64 and at 32 bits
			"18446744073729553617": true, "18446744073729553617x": true, "+018446744073729553617": true, "340282366920938463463374607431788213457": true,
			"0x100000000013134d1": true, "0x100000000013134d1zz": true, "79228162514264337593563952337": true,
			"18446744073729553618": false, "99999999999999999999": false, "99999999999999999999x": false,
		},
		"2147483647":           {"99999999999": true, "2147483648": true, "2147483648x": true, "99999999999999999999": true, "3e9": true, "3e9x": true, "2147483646": false},
		"4294967295":           {"99999999999": true, "4294967296": true, "99999999999999999999x": true, "4294967294": false},
		"9223372036854775807":  {"9223372036854775808": true, "99999999999999999999": true, "1e30x": true, "99999999999": false, "999999999999999999": false},
		"18446744073709551615": {"18446744073709551616": true, "99999999999999999999": true, "1e30x": true, "9223372036854775807": false},
	} {
		items := filters.NewItems(func(yield func(string) bool) { yield(item) })
		for sku, want := range listed {
			if got := items.Listed(sku); got != want {
				t.Errorf("%q is %s: %v, want %v", sku, item, got, want)
			}
		}
	}
	words := filters.NewItems(func(yield func(string) bool) { yield("Phone-X") })
	for sku, want := range map[string]bool{"phone-X": true, "20002001": false, "1e7": false, "": false} {
		if got := words.Listed(sku); got != want {
			t.Errorf("%q: %v, want %v", sku, got, want)
		}
	}
	if filters.NewItems(func(func(string) bool) {}).Listed("a") {
		t.Error("nothing lists a")
	}
}

func BenchmarkDenied(b *testing.B) {
	lists := []*list.List{listOf(b, "buyer:bob\nphone:1555\n192.0.2.0/24\n2001:db8::/32\ncarol\n")}
	for name, p := range map[string]filters.Person{
		"passing":  {IP: "198.51.100.1", Buyer: "ann", Identities: map[string]string{"phone": "1666"}},
		"refusing": {IP: "198.51.100.1", Buyer: "ann", Identities: map[string]string{"phone": "1555"}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = filters.Denied(b.Context(), lists, &p)
			}
		})
	}
}
