// Package sale has the basic types of Stockgate: a sale, its items and limits, an
// attempt to buy, and the reasons for which an attempt is refused. It depends on
// neither Caddy nor Redis.
package sale

import (
	"time"

	"github.com/stockgate/stockgate/token"
)

// Bounds of a sale and an attempt. They keep a script call in Redis short and a request
// cheap to read.
const (
	MaxLines     = 50             // lines of one attempt
	MaxLimits    = 16             // limits of one sale
	MaxQuantity  = 10_000         // units of one line
	MaxName      = 128            // bytes of a SKU, a region, a buyer
	MaxID        = 64             // bytes of a sale's id
	MaxItems     = 100_000        // items of one sale, its stock cells, and the ids of its items
	MaxItemIDs   = 16             // ids of one item
	MaxUnits     = token.MaxUnits // units of one cell
	MaxTimeYears = 100            // years after 2000 in which a sale may be
	MaxFile      = 16 << 20       // bytes of a sale's file
)

// Status is set by the operator: only an open sale sells, and only inside its window.
type Status string

// draft → open ⇄ paused → closed.
const (
	Draft  Status = "draft"
	Open   Status = "open"
	Paused Status = "paused"
	Closed Status = "closed"
)

// Sale is one event: what is sold, when, and how much of it one person may buy.
//
// Parse, Decode and New make a sale that is checked, has its defaults filled in and finds
// its items fast. It must not be changed afterwards, so any number of goroutines may read
// it. A literal works too: every method reads a zero value as the field's default, but
// Item searches it linearly.
//
// Its JSON is canonical: a sale that was parsed, marshalled and decoded is Equal
// to the first one and marshals to the same bytes.
type Sale struct {
	// ID names the sale: [a-z0-9][a-z0-9._-]{0,63}.
	ID string `json:"id" yaml:"id"`
	// StartsAt and EndsAt are the window [StartsAt, EndsAt), by Redis's clock.
	StartsAt time.Time `json:"starts_at" yaml:"starts_at"`
	EndsAt   time.Time `json:"ends_at" yaml:"ends_at"`
	// Timezone is the time zone of calendar limits, an IANA name. Default: UTC.
	Timezone string  `json:"timezone,omitempty" yaml:"timezone,omitempty"`
	Items    []Item  `json:"items" yaml:"items"`
	Limits   []Limit `json:"limits,omitempty" yaml:"limits,omitempty"`
	// Missing says what happens to an attempt without an identity that a limit names.
	// Default: refuse, which its JSON leaves out.
	Missing Missing `json:"missing,omitzero" yaml:"missing,omitempty"`
	// Unpaid bounds the unpaid holds of one person, see UnpaidOf; nil: the default
	// applies, and the JSON leaves it out.
	Unpaid *Unpaid `json:"unpaid,omitempty" yaml:"unpaid,omitempty"`
	// Waitlist lets people wait for units that others hold; nil: the sale has no waiting list.
	Waitlist *Waitlist `json:"waitlist,omitempty" yaml:"waitlist,omitempty"`
	// MaxHold is the longest time from a reservation to its deadline, however often the
	// shop extends it: 3s to 168h. Default: 1h, which its JSON leaves out.
	MaxHold Span `json:"max_hold,omitzero" yaml:"max_hold,omitempty"`
	// MovedIn says that the stock was read from keys of the shop's own, and how much buyers
	// had bought before; nil: it was not. `sale apply` writes it, and nothing takes it away.
	MovedIn *MovedIn `json:"moved_in,omitempty" yaml:"moved_in,omitempty"`

	index *index
}

// Item is one SKU of a sale with its stock.
type Item struct {
	// SKU is 1 to 128 printable ASCII characters without space.
	SKU string `json:"sku" yaml:"sku"`
	// IDs are other names under which attempts may order the item, such as the shop's number
	// of the variant. No two items of a sale share a name. Default: none.
	IDs []string `json:"ids,omitempty" yaml:"ids,omitempty"`
	// Stock is the number of units that the file loads; an error beside Regions.
	Stock int64 `json:"stock,omitempty" yaml:"stock,omitempty"`
	// Regions isolates stock by region: a region never sells another's units.
	Regions map[string]int64 `json:"regions,omitempty" yaml:"regions,omitempty"`
	// Components makes the item a bundle: an order of one takes their units, all or none. A bundle has
	// no stock of its own. Default: none.
	Components []Component `json:"components,omitempty" yaml:"components,omitempty"`
	// Min and Max are the units that one order may take under the item's own names. Default: 1 and 10,000, of a
	// bundle as many as take 10,000 units of a component.
	Min int64 `json:"min,omitempty" yaml:"min,omitempty"`
	Max int64 `json:"max,omitempty" yaml:"max,omitempty"`
}

// Missing says what happens to an attempt that lacks an identity which a limit of the sale names.
type Missing string

// RefuseMissing refuses the attempt. SkipMissing counts it by the identities that it
// has: so guests are limited by the others, and a client that leaves an identity out is
// not limited by it.
const (
	RefuseMissing Missing = "refuse"
	SkipMissing   Missing = "skip"
)

// IsZero reports whether it is the default, in either form.
func (m Missing) IsZero() bool { return m == "" || m == RefuseMissing }

// Limit is a purchase limit: at most Max units or orders per identity and
// window. Its ID tells kinds of limits apart.
type Limit struct {
	// Per is the identity that is counted, or a union of several: buyer, phone,
	// email, address, device, ip.
	Per Identities `json:"per" yaml:"per"`
	// Every is the window of the count: order, hour, day, week (from Monday), month
	// or sale. order limits each order by itself: nothing is counted across orders.
	Every string `json:"every" yaml:"every"`
	// Max is at least 1.
	Max int64 `json:"max" yaml:"max"`
	// Count is what is counted: units or orders.
	Count string `json:"count" yaml:"count"`
	// SKU narrows the limit to one item. Default: the whole sale.
	SKU string `json:"sku,omitempty" yaml:"sku,omitempty"`
	// Shadow: the limit counts and refuses nothing. What it would have refused is reported.
	// Default: false.
	Shadow bool `json:"shadow,omitempty" yaml:"shadow,omitempty"`
}

// Line is an item and how many units of it. It has a package of its own for shops, which
// import nothing else of this one.
type Line = token.Line

// Cell names one stock cell: "sku" or "sku@region".
func Cell(sku, region string) string { return token.Line{SKU: sku, Region: region}.Cell() }

// Attempt is one request to buy, as the gate read it.
type Attempt struct {
	// Sale is the sale's id; empty: the open sale that lists the items.
	Sale string
	// Buyer is the identity that every attempt must have.
	Buyer string
	// Identities are further ways to recognise the person: phone, email, address, …
	// NormaliseIdentity gives the form in which they are counted.
	Identities map[string]string
	Region     string
	Lines      []Line
	// Ref is the shop's own name of the order or cart: at most one reservation of a
	// buyer in a sale is live or confirmed under it or, where it is RefShared, one of the
	// sale. 1 to 128 printable ASCII characters without space; empty: none.
	Ref       string
	RefShared bool
	// Key is the client's idempotency key; empty: none. Print is a hash of the request
	// made with it: the same key with another print is refused.
	Key, Print string
	// RateKeys are the keys under which the attempt counts, one for each rate of the
	// gate.
	RateKeys []string
	// AssumedOne says that the gate names a quantity which the request does not have, so that
	// one unit is assumed.
	AssumedOne bool
}
