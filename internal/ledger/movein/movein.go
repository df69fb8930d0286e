package movein

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/sale"
)

// ShopRedis is a shop's Redis, as a sale file names its keys, or the query of its database in their place.
type ShopRedis struct {
	from          sale.MoveFrom
	key           Pattern               // of stock
	purchases     purchases             // nil: nothing is known of what was bought
	stock, bought redis.UniversalClient // nil: not asked

	seed maphash.Seed
	seen *sale.MoveSeen
	sum  uint64 // of the records, whatever their order
}

// purchases are what buyers have bought, as keys or a query say it.
type purchases interface {
	// scan reads all purchases once, in pieces. Other items and purchases of 0 units are
	// counted in skipped.
	// A query may take as long as within.
	scan(ctx context.Context, within time.Duration, each func([]sale.MovePurchase) error) (skipped int64, err error)
}

const (
	// examples is how many purchases are shown.
	examples = 3
	// enterFor is how much longer a query may take whose purchases are entered while its rows come.
	enterFor = time.Hour
)

// Open makes the source of a file. The addresses are without placeholders. It does not connect
// yet; Close ends it.
func Open(from sale.MoveFrom) (*ShopRedis, error) {
	s := &ShopRedis{from: from, seed: maphash.MakeSeed()}
	var err error
	if from.Stock != nil {
		if s.key, err = ParsePattern(from.Stock.Key, "sku"); err != nil {
			return nil, fmt.Errorf("stock_from.key: %w", err)
		}
		if !s.key.Has("sku") && len(from.Counted) > 1 {
			return nil, fmt.Errorf("stock_from.key: %q has no {sku}, and %d items would have the same stock", from.Stock.Key, len(from.Counted))
		}
	}
	var keys *records
	switch b := from.Bought; {
	case b == nil:
	case b.Query != "":
		s.purchases = newRows(&from)
	default:
		if keys, err = newRecords(&from); err != nil {
			return nil, fmt.Errorf("bought_from.%w", err)
		}
	}
	if from.Stock != nil {
		if s.stock, err = Connect(from.Stock.Redis); err != nil {
			return nil, fmt.Errorf("stock_from.redis: %w", err)
		}
	}
	if keys != nil {
		if s.bought, err = Connect(from.Bought.Redis); err != nil {
			s.Close()
			return nil, fmt.Errorf("bought_from.redis: %w", err)
		}
		keys.from, s.purchases = s.bought, keys
	}
	return s, nil
}

// Close ends the connections.
func (s *ShopRedis) Close() {
	for _, client := range []redis.UniversalClient{s.stock, s.bought} {
		if client != nil {
			_ = client.Close() // it has only read
		}
	}
}

// Look reads everything once, and says what the sale would load. It fails with the first value
// that is wrong.
func (s *ShopRedis) Look(ctx context.Context) (*sale.MoveSeen, *sale.MovedStock, error) {
	seen := &sale.MoveSeen{Bought: make(map[string]int64)}
	var err error
	if seen.Counted, err = s.count(ctx); err != nil {
		return nil, nil, err
	}
	s.seen, s.sum = seen, 0
	if s.purchases != nil {
		within, cancel := context.WithTimeout(ctx, s.from.Bought.Timeout)
		defer cancel()
		seen.Skipped, err = s.purchases.scan(within, s.from.Bought.Timeout, func(list []sale.MovePurchase) error {
			for i := range list {
				s.sum += s.hash(&list[i])
				s.add(seen, &list[i])
			}
			return nil
		})
		if within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("not all was read within %v: give it longer with timeout", s.from.Bought.Timeout)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("bought_from: %w", err)
		}
	}
	moved, err := s.load(seen)
	if err != nil {
		return nil, nil, err
	}
	return seen, moved, s.unchanged(ctx)
}

func (s *ShopRedis) add(seen *sale.MoveSeen, p *sale.MovePurchase) {
	components, bundle := s.from.Bundles[p.SKU]
	if !bundle {
		components = []sale.Component{{SKU: p.SKU, Units: 1}}
	}
	for _, c := range components {
		seen.Bought[c.SKU] += p.Units * c.Units // MaxPurchases of MaxUnits fit
		seen.Units += p.Units * c.Units
	}
	s.example(seen, p)
}

func (*ShopRedis) example(s *sale.MoveSeen, p *sale.MovePurchase) {
	s.Purchases++
	if len(s.Examples) < examples {
		s.Examples = append(s.Examples, *p)
	}
}

// load says how many units the sale has of each item: those that are left and those that were
// bought.
func (s *ShopRedis) load(seen *sale.MoveSeen) (*sale.MovedStock, error) {
	m := &sale.MovedStock{Stock: make(map[string]int64, len(seen.Counted)), In: sale.MovedIn{Purchases: seen.Purchases, Units: seen.Units, Done: seen.Purchases == 0}}
	for _, c := range seen.Counted {
		m.Stock[c.SKU] = c.Left + seen.Bought[c.SKU]
	}
	for sku, units := range seen.Bought {
		have, counted := m.Stock[sku]
		if !counted {
			have = s.from.Listed[sku]
		}
		switch {
		case have > sale.MaxUnits:
			return nil, fmt.Errorf("item %s: %d units are left and %d were bought, which is more than the %d that an item may have", sku, have-units, units, int64(sale.MaxUnits))
		case have < units:
			return nil, fmt.Errorf("item %s: bought_from has %d units, and the file loads %d: stock is what the sale has in all, sold or not", sku, units, have)
		}
	}
	return m, nil
}

func (s *ShopRedis) count(ctx context.Context) ([]sale.MoveCounted, error) {
	if s.stock == nil {
		return nil, nil
	}
	within, cancel := context.WithTimeout(ctx, s.from.Stock.Timeout)
	defer cancel()
	counted, err := readStock(within, s.stock, s.from.Stock, s.key, s.from.Counted)
	if err != nil {
		return nil, fmt.Errorf("stock_from: %w", err)
	}
	return counted, nil
}

// unchanged fails if the stock is not what Look has read.
func (s *ShopRedis) unchanged(ctx context.Context) error {
	now, err := s.count(ctx)
	if err != nil {
		return err
	}
	for i, c := range now {
		if was := s.seen.Counted[i]; c != was {
			return fmt.Errorf("stock_from: %s had %d units left and has %d now: the shop's own script still sells. Stop it first, because two that sell one stock oversell", quoteKey(c.Key), was.Left, c.Left)
		}
	}
	return nil
}

func (s *ShopRedis) hash(p *sale.MovePurchase) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = fmt.Fprintf(&h, "%q %q %s %d", p.Name, p.Buyer, p.SKU, p.Units)
	return h.Sum64()
}

// Each reads the purchases again and gives them away, up to most at a time. It fails if they,
// or the stock, are not what Look has read.
func (s *ShopRedis) Each(ctx context.Context, most int, give func([]sale.MovePurchase) error) error {
	sum := uint64(0)
	if s.purchases != nil {
		_, err := s.purchases.scan(ctx, s.from.Bought.Timeout+enterFor, func(list []sale.MovePurchase) error {
			for i := range list {
				sum += s.hash(&list[i])
			}
			for some := range slices.Chunk(list, most) {
				if err := give(some); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if sum != s.sum {
		return fmt.Errorf("bought_from: the purchases have changed while they were read: the shop's own script still sells. Stop it first, because two that sell one stock oversell")
	}
	return s.unchanged(ctx)
}
