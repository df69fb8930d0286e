package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/movein"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Target is a key, or a field of a hash, that has a number of each item.
type Target struct {
	// Key has {sku}, and if wanted {region} and {sale}. Without {region}, the regions of an item
	// are summed up.
	Key string
	// Field is the field of a hash; empty: the key is a number itself.
	Field string
	// Value is one of Values.
	Value string
}

// Values are the numbers that can be mirrored: the columns of the stock, and taken, which is what
// is held, in doubt or confirmed.
var Values = []string{"available", "taken", "confirmed", "stock"}

// Options say which Redis has the keys, and which they are.
type Options struct {
	// Address is a URL as movein.Connect takes it.
	Address string
	// Sales are those that are mirrored; empty: all, and every key must have {sale}.
	Sales   []string
	Targets []Target
}

// Validate says what is wrong with the options. It does not repeat the address.
func (o *Options) Validate() error {
	client, err := movein.Connect(o.Address)
	if err != nil {
		return err
	}
	_ = client.Close() // it has not connected
	for _, id := range o.Sales {
		if !sale.IsID(id) {
			return fmt.Errorf("%.80q is no id of a sale: 1 to 64 of a-z, 0-9, dot, underscore and hyphen, beginning with a letter or digit", id)
		}
	}
	if len(o.Targets) == 0 {
		return errors.New("it has no key: write `set store_{sku} available` or `hset goods_{sku} ordered taken`")
	}
	for i, t := range o.Targets {
		key, err := parseKey(t.Key)
		switch {
		case err != nil:
			return err
		case !key.Has("sku"):
			return fmt.Errorf("the key %.80q has no {sku}: all items would write the same key", t.Key)
		case len(o.Sales) != 1 && !key.Has("sale"):
			return fmt.Errorf("the key %.80q has no {sale}, and several sales would write it: name one with `sales`, or put {sale} into the key", t.Key)
		case !slices.Contains(Values, t.Value):
			return fmt.Errorf("there is no number %.80q: there are %s", t.Value, strings.Join(Values, ", "))
		}
		for _, before := range o.Targets[:i] {
			if before.Key == t.Key && (before.Field == t.Field || before.Field == "" || t.Field == "") {
				return fmt.Errorf("the key %.80q is written twice", t.Key)
			}
		}
	}
	return nil
}

func parseKey(text string) (movein.Pattern, error) {
	return movein.ParsePattern(text, "sku", "region", "sale")
}

// Journals is where the mirror learns of changes, and has its lease: a journal.Journal.
type Journals interface {
	ledger.Sales
	Head(ctx context.Context, sale string) (journal.Head, error)
	AcquireMirror(ctx context.Context, sale, owner string, forHow time.Duration, state *journal.MirrorState) (bool, error)
}

// Stock is where the numbers come from: a reservation.Store.
type Stock interface {
	SaleStock(ctx context.Context, id string) (*reservation.SaleStock, error)
}

// Metrics receives what a mirror counts. Implementations must be safe for concurrent use.
type Metrics interface {
	// MirrorLag: the shop's Redis lacks changes of a sale for this long; 0: it has all.
	MirrorLag(sale string, lag time.Duration)
	// NoMirror: another edge mirrors the sale, or none does.
	NoMirror(sale string)
	// MirrorDrift: this many keys had another number than the mirror had written.
	MirrorDrift(sale string, keys int)
}

// Mirror writes the numbers of sales. Any number of them, in any number of processes, may have
// the same options: one writes a sale at a time, and another takes over when it dies.
type Mirror struct {
	journals Journals
	stock    Stock
	options  Options
	keys     []movein.Pattern
	owner    string
	client   redis.UniversalClient
	log      *zap.Logger
	metrics  Metrics
}

// New makes a mirror. The options are valid.
func New(from Journals, stock Stock, o Options, log *zap.Logger, m Metrics) (*Mirror, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	client, err := movein.Connect(o.Address)
	if err != nil {
		return nil, err
	}
	out := &Mirror{journals: from, stock: stock, options: o, owner: ledger.Owner(), client: client, log: log, metrics: m}
	for _, t := range o.Targets {
		key, err := parseKey(t.Key)
		if err != nil {
			return nil, err
		}
		out.keys = append(out.keys, key)
	}
	return out, nil
}

// Run mirrors the sales until ctx ends, each in its own goroutine. It gives up its leases at the
// end, and is not run again.
func (m *Mirror) Run(ctx context.Context) {
	defer m.client.Close()
	ledger.EachSale(ctx, m.journals, func() {}, func(ctx context.Context, sale string) {
		if len(m.options.Sales) == 0 || slices.Contains(m.options.Sales, sale) {
			(&mirroring{Mirror: m, sale: sale}).run(ctx)
		}
	})
}
