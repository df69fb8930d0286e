package movein_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/ledger/movein"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A shop's keys lie on all nodes of its cluster.
func TestCluster(t *testing.T) {
	nodes := redistest.Cluster(t, 2)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr()}, DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	defer c.Close()
	ctx := stocktest.Soon(t)
	for key, value := range map[string]string{"n:a": "63", "n:b": "7"} {
		if err := c.Set(ctx, key, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if err := c.Set(ctx, "bought:a:u"+strconv.Itoa(i), 2, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		if keys := n.Client().DBSize(ctx).Val(); keys < 20 {
			t.Fatalf("a node has %d of 102 keys: the keys do not lie on both", keys)
		}
	}
	address := "redis+cluster://" + nodes[1].Addr() + "?addr=" + nodes[0].Addr()
	s := &shop{t: t, address: address}
	seen, moved, err := look(t, s.from(&sale.StockKeys{Key: "n:{sku}"}, &sale.BoughtKeys{Key: "bought:{sku}:{buyer}"}))
	if err != nil {
		t.Fatal(err)
	}
	if seen.Purchases != 100 || seen.Units != 200 || moved.Stock["a"] != 263 || moved.Stock["b"] != 7 {
		t.Errorf("the cluster has %d purchases of %d units and %v, want 100 of 200, 263 and 7", seen.Purchases, seen.Units, moved.Stock)
	}
}

// The primary is the one that a sentinel names, with credentials of its own.
func TestSentinel(t *testing.T) {
	primary := redistest.Start(t, redistest.Password("shop"))
	for key, value := range map[string]string{"n:a": "3", "n:b": "4"} {
		if err := primary.Client().Set(stocktest.Soon(t), key, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	sentinel := redistest.Sentinel(t, primary, redistest.Password("watch"))
	s := &shop{t: t, address: "redis+sentinel://:watch@127.0.0.1:1/0?master_name=main&password=shop&addr=" + sentinel.Addr()}
	_, moved, err := look(t, s.from(&sale.StockKeys{Key: "n:{sku}"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if moved.Stock["a"] != 3 || moved.Stock["b"] != 4 {
		t.Errorf("the stock is %v, want 3 and 4", moved.Stock)
	}
}

// An address that means nothing is refused before anything connects, without its password.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"redis://u:secret@h:6379/0":                              "",
		"rediss://h":                                             "",
		"unix:///run/redis.sock?db=2":                            "",
		"redis+cluster://h:6379?addr=h2:6379":                    "",
		"rediss+cluster://h:6379/":                               "",
		"redis+sentinel://h:26379/2?master_name=m&addr=h2:26379": "",
		"h:6379":                              "no address of a Redis",
		"http://h":                            "no address of a Redis",
		"redis+elsewhere://u:secret@h:6379":   "no address of a Redis",
		"redis+cluster://u:secret@h:6379/3":   "a cluster has no databases",
		"redis+cluster://":                    "no address of a Redis",
		"redis+sentinel://u:secret@h:26379/0": "add ?master_name=NAME",
		"redis+sentinel://":                   "no address of a Redis",
		"redis+sentinel://u:secret@h:26379/0?master_name=m&unheard=x": "no address of a Redis",
		"unix+cluster:///run/redis.sock":                              "no address of a Redis",
	} {
		c, err := movein.Connect(address)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s is refused: %v", address, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s gives %v, want %q", address, err, want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("the error has the password: %v", err)
		}
		if c != nil {
			_ = c.Close() // it has not connected
		}
	}
}
