package judge

import (
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/internal/sale"
)

// Seller holds stock for the attempts that its judge lets pass. It is a gate.
type Seller interface {
	option.SellerOptions
	// Describe returns what operators are told of the seller. all are the judges of the configuration.
	Describe(all []*Judge) Selling
	// Begin begins an attempt, and sets what tells of its earlier orders.
	Begin(Visit) *Case
	// LacksSlot refuses an attempt that would get no in-flight slot now; nil: it gets one.
	LacksSlot(*Case) *sale.Refusal
}

// Earlier tells what earlier orders of one attempt have left.
type Earlier interface {
	// Find looks for what an earlier attempt with the same idempotency key or ref has left. ends: the attempt has the
	// answer of that one, and no further rule judges it.
	Find(*http.Request) (no *sale.Refusal, ends bool)
	// Unless is the refusal of an attempt, unless it has the answer of an earlier one.
	Unless(*http.Request, *sale.Refusal) *sale.Refusal
	// Forget discards what was found, because the attempt is read again.
	Forget()
	// Found is the reservation that the attempt already has; empty: none. answered: the shop's answer to it is kept.
	Found() (reservation string, answered bool)
}

// Selling is how a seller sells.
type Selling struct {
	// Doubts is what resolves holds in doubt. Probes: a probe does.
	Doubts string
	Probes bool
	// ByShop: the shop confirms holds, through its API.
	ByShop bool
	// Most and Memory are how many orders may wait, and in how many bytes of Redis; 0: none waits.
	Most   int
	Memory int64
	// Risks are those that depend on the whole configuration.
	Risks []option.OptionRisk
}

// Seller holds stock for the attempts that the judge lets pass; nil: it only checks, or is not opened.
func (j *Judge) Seller() Seller { return j.seller }
