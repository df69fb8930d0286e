package lists_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/lists"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// listSecret is a secret that no edge has agreed on.
func listSecret(b byte) *identity.Secret { return &identity.Secret{b, 31: b} }

func TestListChanges(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s, secret := stocktest.OpenStore(t, stocktest.Options(b)), listSecret(1)
		many := []lists.Entry{
			stocktest.Text("any", "alice"), stocktest.Text("buyer", "bob"), stocktest.Text("phone", "15550100"), stocktest.Prefix("10.0.0.0/8"), stocktest.Prefix("2001:db8::/32"),
		}
		for i := range 1200 {
			many = append(many, stocktest.Text("device", fmt.Sprint("d", i)))
		}
		change := func(what string, f func() (int, error), changed int, count int64) {
			t.Helper()
			got, err := f()
			if err != nil || got != changed {
				t.Errorf("%s: %d changed, %v, want %d", what, got, err, changed)
			}
			if n, err := lists.New(s.Shard()).Count(stocktest.Soon(t), "vips"); err != nil || n != count {
				t.Errorf("%s: %d entries, %v, want %d", what, n, err, count)
			}
		}
		add := func(e ...lists.Entry) func() (int, error) {
			return func() (int, error) { return lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", e) }
		}
		remove := func(e ...lists.Entry) func() (int, error) {
			return func() (int, error) { return lists.New(s.Shard()).Remove(stocktest.Soon(t), secret, "vips", e) }
		}
		change("none", add(), 0, 0)
		change("remove from nothing", remove(many[0]), 0, 0)
		change("add all", add(many...), 1205, 1205)
		change("add all again", add(many...), 0, 1205)
		change("add one twice", add(stocktest.Text("any", "carol"), stocktest.Text("any", "carol")), 1, 1206)
		change("the same value of another kind", add(stocktest.Text("buyer", "alice")), 1, 1207)
		change("another length of prefix", add(stocktest.Prefix("10.0.0.0/9")), 1, 1208)
		change("remove some, one of them twice", remove(many[0], many[0], many[3], stocktest.Text("any", "dave")), 2, 1206)

		for _, c := range []struct {
			entry lists.Entry
			want  bool
		}{
			{stocktest.Text("any", "alice"), false},
			{stocktest.Text("buyer", "alice"), true},
			{stocktest.Text("phone", "15550100"), true},
			{stocktest.Text("any", "15550100"), false},
			{stocktest.Prefix("10.0.0.0/8"), false},
			{stocktest.Prefix("10.0.0.0/9"), true},
			{stocktest.Prefix("10.0.0.0/32"), false},
			{stocktest.Prefix("2001:db8::/32"), true},
		} {
			if got, err := has(t, s, secret, "vips", c.entry); err != nil || got != c.want {
				t.Errorf("has %+v: %v, %v, want %v", c.entry, got, err, c.want)
			}
		}
		if got, err := has(t, s, secret, "others", many[1]); got || err != nil {
			t.Errorf("another list has it: %v, %v", got, err)
		}
		if forms := b.Client().HGetAll(stocktest.Soon(t), "stockgate:list:{vips}:forms").Val(); fmt.Sprint(forms) !=
			"map[any:1 buyer:2 device:1200 ip4/9:1 ip6/32:1 phone:1]" {
			t.Errorf("forms %v", forms)
		}
		seen := map[[16]byte]bool{}
		if err := lists.New(s.Shard()).Scan(stocktest.Soon(t), "vips", func(keys [][16]byte) error {
			for _, k := range keys {
				seen[k] = true
			}
			return nil
		}); err != nil || len(seen) != 1206 {
			t.Errorf("scanned %d keys, %v, want 1206", len(seen), err)
		}
		enough := errors.New("enough")
		if err := lists.New(s.Shard()).Scan(stocktest.Soon(t), "vips", func([][16]byte) error { return enough }); err != enough {
			t.Errorf("scan: %v, want %v", err, enough)
		}
	})
}

// TestListHidesEntries searches all that Redis holds of a list for values, and for the hashes
// that limits would have.
func TestListHidesEntries(t *testing.T) {
	b := redistest.Start(t)
	s, secret, c := stocktest.OpenStore(t, stocktest.Options(b)), listSecret(1), b.Client()
	if _, err := lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", []lists.Entry{stocktest.Text("phone", "15550100"), stocktest.Prefix("203.0.113.0/24"), stocktest.Prefix("2001:db8::/32")}); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for kind, value := range map[string]string{"list phone": "15550100", "list ip4/24": "\xcb\x00\x71\x00", "list ip6/32": "\x20\x01\x0d\xb8" + strings.Repeat("\x00", 12)} {
		key, err := base64.RawURLEncoding.DecodeString(secret.Identity(kind, value))
		if err != nil {
			t.Fatal(err)
		}
		want[string(key)] = true
	}
	members := 0
	for _, key := range c.Keys(stocktest.Soon(t), "*").Val() {
		if !strings.HasPrefix(key, "stockgate:list:{vips}:") {
			t.Errorf("the list has the key %q", key)
		}
		dump := ""
		switch c.Type(stocktest.Soon(t), key).Val() {
		case "set":
			for _, m := range c.SMembers(stocktest.Soon(t), key).Val() {
				members++
				if !want[m] {
					t.Errorf("%q is not what Identity gives", m)
				}
				dump += m
			}
		case "hash":
			dump = fmt.Sprint(c.HGetAll(stocktest.Soon(t), key).Val())
		case "stream":
			dump = fmt.Sprint(c.XRange(stocktest.Soon(t), key, "-", "+").Val())
		default:
			t.Errorf("%s is of no known type", key)
		}
		for _, clear := range []string{"15550100", "203.0.113", "\xcb\x00\x71"} {
			if strings.Contains(dump, clear) {
				t.Errorf("%s holds %q in clear", key, clear)
			}
		}
	}
	if members != 3 {
		t.Errorf("%d members, want 3", members)
	}
}

func TestListRefuses(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s, secret, c := stocktest.OpenStore(t, stocktest.Options(b)), listSecret(1), b.Client()
		for name, e := range map[string]lists.Entry{
			"nothing":      {},
			"no value":     stocktest.Text("buyer", ""),
			"long value":   stocktest.Text("buyer", strings.Repeat("x", 513)),
			"long kind":    stocktest.Text(strings.Repeat("x", 33), "alice"),
			"no prefix":    stocktest.Text("ip", "10.0.0.1"),
			"host bits":    stocktest.Prefix("10.0.0.1/8"),
			"IPv4 in IPv6": stocktest.Prefix("::ffff:10.0.0.0/104"),
		} {
			if n, err := lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", []lists.Entry{stocktest.Text("any", "alice"), e}); n != 0 || !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "entry 2") {
				t.Errorf("%s: %d, %v, want it refused", name, n, err)
			}
		}
		if n, err := lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", []lists.Entry{stocktest.Text("any", strings.Repeat("x", 512))}); n != 1 || err != nil {
			t.Errorf("the longest entry: %d, %v", n, err)
		}

		meta := "stockgate:list:{vips}:meta"
		before := c.HGetAll(stocktest.Soon(t), meta).Val()
		if err := c.HSet(stocktest.Soon(t), meta, "count", lists.MaxEntries-1).Err(); err != nil {
			t.Fatal(err)
		}
		two := []lists.Entry{stocktest.Text("any", "bob"), stocktest.Text("any", "carol")}
		if n, err := lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", two); n != 0 || !errors.Is(err, lists.ErrFull) {
			t.Errorf("two more than fit: %d, %v", n, err)
		}
		if after := c.HGetAll(stocktest.Soon(t), meta).Val(); after["seq"] != before["seq"] {
			t.Errorf("a refused change counts: %v, then %v", before, after)
		}
		if n, err := lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", two[:1]); n != 1 || err != nil {
			t.Errorf("the last one that fits: %d, %v", n, err)
		}

		other := listSecret(2)
		if _, err := lists.New(s.Shard()).Add(stocktest.Soon(t), other, "vips", two); !errors.Is(err, lists.ErrForeignSecret) {
			t.Errorf("another secret adds: %v", err)
		}
		if _, err := lists.New(s.Shard()).Remove(stocktest.Soon(t), other, "vips", two); !errors.Is(err, lists.ErrForeignSecret) {
			t.Errorf("another secret removes: %v", err)
		}
		if _, err := has(t, s, other, "vips", two[0]); !errors.Is(err, lists.ErrForeignSecret) {
			t.Errorf("another secret asks: %v", err)
		}
		if err := c.HSet(stocktest.Soon(t), meta, "schema", lua.Schema+1).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", two); !errors.Is(err, shard.ErrNewerSchema) {
			t.Errorf("a newer layout is changed: %v", err)
		}
		if _, err := has(t, s, secret, "vips", two[0]); !errors.Is(err, shard.ErrNewerSchema) {
			t.Errorf("a newer layout is read: %v", err)
		}
	})
}

// TestListOnFullRedis: a change that does not fit changes nothing.
func TestListOnFullRedis(t *testing.T) {
	b := redistest.Start(t)
	s, secret, c := stocktest.OpenStore(t, stocktest.Options(b)), listSecret(1), b.Client()
	if _, err := lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", []lists.Entry{stocktest.Text("any", "alice")}); err != nil {
		t.Fatal(err)
	}
	if err := c.ConfigSet(stocktest.Soon(t), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", []lists.Entry{stocktest.Text("any", "bob")}); n != 0 || !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "maxmemory") {
		t.Errorf("on a full redis: %d, %v", n, err)
	}
	if n, err := lists.New(s.Shard()).Count(stocktest.Soon(t), "vips"); n != 1 || err != nil {
		t.Errorf("%d entries, %v, want 1", n, err)
	}
	if n := c.XLen(stocktest.Soon(t), "stockgate:list:{vips}:log").Val(); n != 1 {
		t.Errorf("%d changes in the log, want 1", n)
	}
}

// TestListLogIsBounded: the log keeps the last 1,024 changes, one entry each.
func TestListLogIsBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s, secret := stocktest.OpenStore(t, stocktest.Options(b)), listSecret(1)
		for i := range 1030 {
			if _, err := lists.New(s.Shard()).Add(stocktest.Soon(t), secret, "vips", []lists.Entry{stocktest.Text("any", fmt.Sprint(i))}); err != nil {
				t.Fatal(err)
			}
		}
		changes := b.Client().XRange(stocktest.Soon(t), "stockgate:list:{vips}:log", "-", "+").Val()
		if len(changes) != 1024 || changes[0].ID != "7-0" || changes[1023].ID != "1030-0" {
			t.Fatalf("the log has %d changes", len(changes))
		}
		last := redis.XMessage{Values: map[string]any{"tip": changes[0].Values["prev"]}}
		for _, c := range changes {
			if c.Values["prev"] != last.Values["tip"] || c.Values["tip"] == c.Values["prev"] || len(c.Values["keys"].(string)) != 16 {
				t.Fatalf("%v follows %v", c, last)
			}
			last = c
		}
	})
}

// has reports whether exactly this entry is in the list: an address within a listed prefix is not.
func has(t *testing.T, s *reservation.Store, secret *identity.Secret, list string, e lists.Entry) (bool, error) {
	t.Helper()
	all, err := lists.New(s.Shard()).Has(stocktest.Soon(t), secret, list, []lists.Entry{e})
	return err == nil && all[0], err
}
