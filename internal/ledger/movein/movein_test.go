package movein_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/ledger/movein"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// shop is a shop's own Redis.
type shop struct {
	*redis.Client
	t       *testing.T
	address string
}

func newShop(t *testing.T) *shop {
	server := redistest.Start(t)
	return &shop{server.Client(), t, "redis://" + server.Addr() + "/0"}
}

func (s *shop) do(args ...any) {
	s.t.Helper()
	if err := s.Do(s.t.Context(), args...).Err(); err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
}

// from is a file with the items a and b, and the file's own item c with 5 units.
func (s *shop) from(stock *sale.StockKeys, bought *sale.BoughtKeys) sale.MoveFrom {
	f := sale.MoveFrom{Sale: "s", Listed: map[string]int64{"a": 0, "b": 0, "c": 5}, Stock: stock, Bought: bought}
	if stock != nil {
		stock.Redis, stock.Timeout, f.Counted = s.address, time.Minute, []string{"a", "b"}
		if stock.Total == "" && stock.Left == "" {
			stock.Total, stock.Ordered = "total", "ordered"
		}
	}
	if bought != nil {
		bought.Redis, bought.Timeout, bought.Identity = s.address, time.Minute, orBuyer(bought.Identity)
	}
	return f
}

func orBuyer(identity string) string {
	if identity == "" {
		return "buyer"
	}
	return identity
}

func look(t *testing.T, from sale.MoveFrom) (*sale.MoveSeen, *sale.MovedStock, error) {
	t.Helper()
	s, err := movein.Open(from)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	return s.Look(t.Context())
}

// Each form of a key says how many units are left.
func TestStock(t *testing.T) {
	s := newShop(t)
	s.do("SET", "n:a", "63")
	s.do("SET", "n:b", "0")
	s.do("HSET", "h:a", "total", "100", "ordered", "37", "left", "12")
	s.do("HSET", "h:b", "total", "5", "ordered", "0", "left", "1000000000000")
	s.do("RPUSH", "u:a", "u1", "u2", "u3")
	s.do("SADD", "u:b", "u1", "u2")
	s.do("ZADD", "z:a", "1", "u1")
	s.do("SET", "{a}:n", "1")
	s.do("SET", "{b}:n", "2")
	for name, c := range map[string]struct {
		keys sale.StockKeys
		want string
	}{
		"numbers":         {sale.StockKeys{Key: "n:{sku}"}, "63 0"},
		"total, ordered":  {sale.StockKeys{Key: "h:{sku}"}, "63 5"},
		"what is left":    {sale.StockKeys{Key: "h:{sku}", Left: "left"}, "12 1000000000000"},
		"list and set":    {sale.StockKeys{Key: "u:{sku}"}, "3 2"},
		"absent":          {sale.StockKeys{Key: "z:{sku}", AbsentIsNone: true}, "1 0"},
		"braces in a key": {sale.StockKeys{Key: `\{{sku}\}:n`}, "1 2"},
	} {
		_, moved, err := look(t, s.from(&c.keys, nil))
		if err != nil || fmt.Sprint(moved.Stock["a"], " ", moved.Stock["b"]) != c.want || !moved.In.Done || moved.In.Units != 0 {
			t.Errorf("%s: %+v, %v; want %s", name, moved, err, c.want)
		}
	}
}

// A purchase of a bundle is one of its components.
func TestBoughtBundles(t *testing.T) {
	s := newShop(t)
	s.do("SET", "n:a", "63")
	s.do("SET", "n:b", "7")
	s.do("HSET", "bought:a", "ann", "1")
	s.do("HSET", "bought:six", "ann", "2", "bob", "1")
	from := s.from(&sale.StockKeys{Key: "n:{sku}"}, &sale.BoughtKeys{Key: "bought:{sku}", AbsentIsNone: true})
	from.Bundles = map[string][]sale.Component{"six": {{SKU: "a", Units: 6}, {SKU: "b", Units: 1}}}
	seen, moved, err := look(t, from)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(moved.Stock, seen.Bought, moved.In, seen.Purchases); got != "map[a:82 b:10] map[a:19 b:3] {3 22 false} 3" {
		t.Errorf("it loads %s", got)
	}
	from.Bundles["six"] = []sale.Component{{SKU: "c", Units: 2}} // the file has 5 of c
	if _, _, err := look(t, from); err == nil || !strings.Contains(err.Error(), "item c: bought_from has 6 units, and the file loads 5") {
		t.Errorf("more was bought than there is: %v", err)
	}
}

// Each form of a record says who has bought how much.
func TestBought(t *testing.T) {
	s := newShop(t)
	s.do("HSET", "buyers", "ann", "2", "bob", "1", "nil", "0")
	s.do("SADD", "won", "a:ann", "b:ann:x", "zz:carl")
	s.do("ZADD", "when:a", "1700000000", "ann")
	s.do("HSET", "orders:a", "o1", "ann", "o2", "ann", "o3", "bob")
	s.do("HSET", "flow", "D_1", `{"by":42,"n":"2","what":{"sku":"a"}}`, "D_2", `{"by":42,"n":1,"what":{"sku":"b"}}`, "I_1", `{}`)
	s.do("SET", "u:ann:a", "2")
	s.do("SET", "u:bob:b", "1")
	s.do("SET", "u*:bob:b", "9")
	s.do("HSET", "pairs:a", "ann", "2@shop", "bob_x", "1@web")
	for name, c := range map[string]struct {
		keys   sale.BoughtKeys
		listed string
		want   string
	}{
		"a hash":                 {sale.BoughtKeys{Key: "buyers"}, "a", "ann 2 a 1, bob 1 a 1; 1 left out"},
		"a hash of orders":       {sale.BoughtKeys{Key: "buyers", Orders: true}, "a", "ann 2 a 2, bob 1 a 1; 1 left out"},
		"a set":                  {sale.BoughtKeys{Key: "won", Member: "{sku}:{buyer}"}, "a b", "ann 1 a 1, ann:x 1 b 1; 1 left out"},
		"a sorted set":           {sale.BoughtKeys{Key: "when:{sku}"}, "a", "ann 1 a 1; 0 left out"},
		"buyers by order":        {sale.BoughtKeys{Key: "orders:{sku}", Value: "{buyer}"}, "a", "ann 1 a 1, ann 1 a 1, bob 1 a 1; 0 left out"},
		"flow records":           {sale.BoughtKeys{Key: "flow", Skip: "I_{other}", JSON: map[string]string{"buyer": "by", "units": "n", "sku": "what.sku"}}, "a b", "42 1 b 1, 42 2 a 1; 1 left out"},
		"a key for each":         {sale.BoughtKeys{Key: "u:{buyer}:{sku}"}, "a b", "ann 2 a 1, bob 1 b 1; 0 left out"},
		"units and more":         {sale.BoughtKeys{Key: "pairs:{sku}", Value: "{units}@{other}"}, "a", "ann 2 a 1, bob_x 1 a 1; 0 left out"},
		"nothing was bought yet": {sale.BoughtKeys{Key: "none:{sku}", AbsentIsNone: true}, "a", "; 0 left out"},
	} {
		from := s.from(nil, &c.keys)
		from.Listed = make(map[string]int64)
		for sku := range strings.FieldsSeq(c.listed) {
			from.Listed[sku] = 100
		}
		source, err := movein.Open(from)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		seen, moved, err := source.Look(t.Context())
		var have []string
		units := int64(0)
		if err == nil {
			err = source.Each(t.Context(), 1, func(list []sale.MovePurchase) error {
				for _, p := range list {
					have = append(have, fmt.Sprintf("%s %d %s %d", p.Buyer, p.Units, p.SKU, p.Orders))
					units += p.Units
				}
				return nil
			})
		}
		source.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprintf("%s; %d left out", strings.Join(sorted(have), ", "), seen.Skipped); got != c.want || moved.In.Units != units || moved.In.Purchases != int64(len(have)) {
			t.Errorf("%s: %s, %+v; want %s", name, got, moved.In, c.want)
		}
	}
}

func sorted(list []string) []string {
	for i := range list {
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}

// Whatever a foreign Redis has: the error names the key and what to do, and nothing is loaded.
func TestRefuses(t *testing.T) {
	s := newShop(t)
	for key, value := range map[string]string{
		"neg": "-3", "float": "1.5", "text": "many", "huge": "99999999999999999999999", "most": "1000000000001", "plus": "+5", "zero": "05", "empty": "", "php": "i:63;", "exp": "1e5",
		"java": "\xac\xed\x00\x05t\x00\x0263", "fine": "5", "v:ann": "x",
	} {
		s.do("SET", "n:a:"+key, value)
		s.do("SET", "n:b:"+key, "1")
	}
	s.do("HSET", "n:a:hash", "total", "10", "ordered", "11")
	s.do("HSET", "n:a:short", "total", "10")
	s.do("HSET", "n:a:text-field", "total", "ten", "ordered", "0")
	for _, key := range []string{"hash", "short", "text-field"} {
		s.do("HSET", "n:b:"+key, "total", "1", "ordered", "0")
	}
	s.do("XADD", "n:a:stream", "*", "k", "v")
	s.do("RPUSH", "l", "ann")
	s.do("SET", "str", "1")
	s.do("HSET", "b:neg", "ann", "-1")
	s.do("HSET", "b:huge", "ann", "99999999999999999999")
	s.do("HSET", "b:text", "ann", "x")
	s.do("HSET", "b:empty", "ann", "")
	s.do("HSET", "b:noname", "", "1")
	s.do("HSET", "b:bytes", "a\xff", "1")
	s.do("HSET", "b:java", "\xac\xed\x00\x05t\x00\x03ann", "1")
	s.do("HSET", "b:long", strings.Repeat("x", 600), "1")
	s.do("HSET", "b:form", "D_1", "1", "X_1", "1")
	s.do("HSET", "b:json", "1", `{"by":"ann"`)
	s.do("HSET", "b:nojson", "1", `{"by":["ann"]}`)
	s.do("HSET", "b:many", "ann", "6")
	s.do("HSET", "b:phone", "n/a", "1")
	s.do("HSET", "k:ann", "1", "1")
	stock := func(key string) sale.MoveFrom { return s.from(&sale.StockKeys{Key: key}, nil) }
	bought := func(keys sale.BoughtKeys) sale.MoveFrom {
		f := s.from(nil, &keys)
		f.Listed = map[string]int64{"a": 5}
		return f
	}
	twoItems := s.from(nil, &sale.BoughtKeys{Key: "buyers"})
	away := s.from(&sale.StockKeys{Key: "n:{sku}"}, nil)
	away.Stock.Redis = "redis://:s3cret@127.0.0.1:1/0"
	noAddress := s.from(&sale.StockKeys{Key: "n:{sku}"}, nil)
	noAddress.Stock.Redis = "s3cret:6379"
	for name, c := range map[string]struct {
		from sale.MoveFrom
		says string
	}{
		"below 0":               {stock("n:{sku}:neg"), `stock_from: the key "n:a:neg" is "-3": the script has counted below 0`},
		"a fraction":            {stock("n:{sku}:float"), `is "1.5", and should be a whole number in plain digits`},
		"an exponent":           {stock("n:{sku}:exp"), "in plain digits"},
		"a text":                {stock("n:{sku}:text"), `is "many", and should be a whole number`},
		"beyond int64":          {stock("n:{sku}:huge"), "which is more than the 1000000000000 units"},
		"beyond the bound":      {stock("n:{sku}:most"), "which is more than the 1000000000000 units"},
		"a sign":                {stock("n:{sku}:plus"), "in plain digits"},
		"a zero before":         {stock("n:{sku}:zero"), "in plain digits"},
		"nothing":               {stock("n:{sku}:empty"), `is "", and should be a whole number`},
		"PHP":                   {stock("n:{sku}:php"), "PHP has serialised it"},
		"Java":                  {stock("n:{sku}:java"), "StringRedisSerializer"},
		"no such key":           {stock("nothing:{sku}"), `the key "nothing:a" does not exist`},
		"oversold":              {stock("n:{sku}:hash"), "has 11 in ordered and 10 in total: the script has sold more than there was"},
		"no field":              {stock("n:{sku}:short"), `is a hash without the field "ordered"`},
		"a field of text":       {stock("n:{sku}:text-field"), `field "total" is "ten"`},
		"a stream":              {stock("n:{sku}:stream"), "is a stream: stock is a number"},
		"one key for all":       {stock("n"), "has no {sku}, and 2 items would have the same stock"},
		"a placeholder":         {stock("n:{item}"), "has the placeholder {item}: there are {sku} here"},
		"away":                  {away, "the shop's Redis does not answer"},
		"no address":            {noAddress, "it is no address of a Redis"},
		"a list of buyers":      {bought(sale.BoughtKeys{Key: "l"}), `bought_from: the key "l" is a list`},
		"a number of buyers":    {bought(sale.BoughtKeys{Key: "str"}), `the key "str" is a string`},
		"no such buyers":        {bought(sale.BoughtKeys{Key: "nothing"}), `the key "nothing" does not exist`},
		"no such keys":          {bought(sale.BoughtKeys{Key: "nothing:{buyer}"}), `there is no key like "nothing:{buyer}"`},
		"bought below 0":        {bought(sale.BoughtKeys{Key: "b:neg"}), `the key "b:neg", member "ann", is "-1"`},
		"bought beyond int64":   {bought(sale.BoughtKeys{Key: "b:huge"}), "which is more than the"},
		"bought a text":         {bought(sale.BoughtKeys{Key: "b:text"}), `member "ann", is "x"`},
		"bought nothing":        {bought(sale.BoughtKeys{Key: "b:empty"}), "has an empty value"},
		"no buyer":              {bought(sale.BoughtKeys{Key: "b:noname"}), "has not the form of member"},
		"bytes":                 {bought(sale.BoughtKeys{Key: "b:bytes"}), "which is no text"},
		"a Java buyer":          {bought(sale.BoughtKeys{Key: "b:java"}), "StringRedisSerializer"},
		"a long buyer":          {bought(sale.BoughtKeys{Key: "b:long"}), "gives a buyer of 600 bytes"},
		"another form":          {bought(sale.BoughtKeys{Key: "b:form", Member: "D_{buyer}"}), `member "X_1", has not the form of member in bought_from; if such members are no purchases, give their form in skip`},
		"broken JSON":           {bought(sale.BoughtKeys{Key: "b:json", JSON: map[string]string{"buyer": "by"}}), "which is no JSON"},
		"no such path":          {bought(sale.BoughtKeys{Key: "b:nojson", JSON: map[string]string{"buyer": "by"}}), `has no text or number at "by" in its JSON`},
		"more than the file":    {bought(sale.BoughtKeys{Key: "b:many"}), "item a: bought_from has 6 units, and the file loads 5"},
		"no phone":              {bought(sale.BoughtKeys{Key: "b:phone", Identity: "phone"}), `gives "n/a", which is no phone`},
		"hashes for each buyer": {bought(sale.BoughtKeys{Key: "k:{buyer}"}), `the key "k:ann" is no plain value`},
		"nothing says who":      {bought(sale.BoughtKeys{Key: "b:many", Member: "{other}"}), "nothing says who the buyer is"},
		"said twice":            {bought(sale.BoughtKeys{Key: "u:{buyer}", Value: "{buyer}"}), "{buyer} is in key and in value"},
		"of which item":         {twoItems, "nothing says of which item a record is"},
		"side by side":          {bought(sale.BoughtKeys{Key: "b:many", Member: "{buyer}{other}"}), "side by side"},
	} {
		_, moved, err := look(t, c.from)
		if err == nil || moved != nil && err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, it should say %q", name, err, c.says)
		}
	}
}

// A script that still sells is noticed, whatever it changes: what was read is not loaded.
func TestStillSelling(t *testing.T) {
	for name, sell := range map[string]func(*shop){
		"the stock":     func(s *shop) { s.do("DECR", "n:a") },
		"a buyer more":  func(s *shop) { s.do("HSET", "buyers", "new", "1") },
		"a buyer's sum": func(s *shop) { s.do("HINCRBY", "buyers", "ann", "1") },
		"a buyer less":  func(s *shop) { s.do("HDEL", "buyers", "ann") },
	} {
		s := newShop(t)
		s.do("SET", "n:a", "5")
		s.do("HSET", "buyers", "ann", "1", "bob", "1")
		from := s.from(&sale.StockKeys{Key: "n:{sku}"}, &sale.BoughtKeys{Key: "buyers"})
		from.Counted, from.Listed = []string{"a"}, map[string]int64{"a": 0}
		source, err := movein.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		if _, moved, err := source.Look(t.Context()); err != nil || moved.Stock["a"] != 7 {
			t.Fatal(moved, err)
		}
		sell(s)
		if err := source.Each(t.Context(), 10, func([]sale.MovePurchase) error { return nil }); err == nil || !strings.Contains(err.Error(), "still sells") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Many buyers are read in pieces, each once, while the hash grows and shrinks around them.
func TestManyBuyers(t *testing.T) {
	const buyers = 100_000
	s := newShop(t)
	s.do("EVAL", "for i = 1, "+fmt.Sprint(buyers)+" do redis.call('HSET', 'buyers', 'user' .. i, 2) end return 1", "0")
	from := s.from(nil, &sale.BoughtKeys{Key: "buyers"})
	from.Listed = map[string]int64{"a": 10 * buyers}
	source, err := movein.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	seen, moved, err := source.Look(t.Context())
	if err != nil || moved.In.Purchases != buyers || moved.In.Units != 2*buyers || len(seen.Examples) != 3 {
		t.Fatalf("%+v, %v", moved, err)
	}
	// each comes once although the scan returns some of them again while the table is rehashed
	got := make(map[string]int)
	grown := false
	err = source.Each(t.Context(), 1000, func(list []sale.MovePurchase) error {
		if len(list) > 1000 {
			t.Errorf("%d at a time", len(list))
		}
		for _, p := range list {
			got[p.Buyer]++
		}
		if !grown {
			grown = true
			s.do("EVAL", "for i = 1, 150000 do redis.call('HSET', 'buyers', 'later' .. i, 0) end return 1", "0")
		}
		return nil
	})
	if err != nil || len(got) != buyers {
		t.Errorf("%d buyers, %v", len(got), err)
	}
	for buyer, n := range got {
		if n != 1 {
			t.Fatalf("%s came %d times", buyer, n)
		}
	}
	failed := errors.New("enough")
	if err := source.Each(t.Context(), 10, func([]sale.MovePurchase) error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := source.Look(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A SKU that has the text in which its own placeholder ends would be read as another item's, and
// its buyers could buy again: such a file is refused before anything is read.
func TestSKUEndsEarly(t *testing.T) {
	for name, c := range map[string]struct {
		sku    string
		keys   sale.BoughtKeys
		refuse string // empty: the file is taken
	}{
		"key":                   {"1001:red", sale.BoughtKeys{Key: "bought:{sku}:{buyer}"}, `bought_from.key: in "bought:{sku}:{buyer}" a SKU ends at the first ":", which begins inside of "1001:red": its buyers could buy again. Sell that item in a sale of its own, whose file has the SKU in place of {sku}`},
		"member":                {"1001:red", sale.BoughtKeys{Key: "won", Member: "{sku}:{buyer}"}, `bought_from.member: in "{sku}:{buyer}" a SKU ends at the first ":", which begins inside of "1001:red"`},
		"value":                 {"1001@x", sale.BoughtKeys{Key: "orders", Value: "{sku}@{buyer}"}, `bought_from.value: in "{sku}@{buyer}" a SKU ends at the first "@", which begins inside of "1001@x"`},
		"at its end":            {"1001:", sale.BoughtKeys{Key: "won", Member: "{sku}::{buyer}"}, `bought_from.member: in "{sku}::{buyer}" a SKU ends at the first "::", which begins inside of "1001:"`},
		"a longer text":         {"1001:red", sale.BoughtKeys{Key: "won", Member: "{sku}::{buyer}"}, ""},
		"as its first byte":     {":1001", sale.BoughtKeys{Key: "won", Member: "{sku}:{buyer}"}, ""},
		"the text is the end":   {"1001:red", sale.BoughtKeys{Key: "won:{buyer}", Value: "{sku}:"}, ""},
		"the SKU is the end":    {"1001:red", sale.BoughtKeys{Key: "bought:{buyer}:{sku}"}, ""},
		"the SKU alone":         {"1001:red", sale.BoughtKeys{Key: "bought:{sku}"}, ""},
		"the SKU in its place":  {"1001:red", sale.BoughtKeys{Key: "bought:1001:red:{buyer}"}, ""},
		"between a text before": {"1001:red", sale.BoughtKeys{Key: "won", Member: "a:{sku}/{buyer}"}, ""},
	} {
		keys := c.keys
		keys.Redis, keys.Timeout, keys.Identity = "redis://127.0.0.1:1/0", time.Minute, "buyer"
		source, err := movein.Open(sale.MoveFrom{Sale: "s", Listed: map[string]int64{c.sku: 5}, Bought: &keys})
		if err == nil {
			source.Close()
		}
		if refused := err != nil; refused != (c.refuse != "") || refused && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("%s: %v, it should say %q", name, err, c.refuse)
		}
	}
}
