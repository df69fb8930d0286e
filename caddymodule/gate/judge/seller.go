package judge

import (
	"context"
	"net/http"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Seller holds stock for the attempts that its judge lets pass. It is a gate.
type Seller interface {
	// Gives reports whether one of the seller's own options is there, by its name in the table of conflicts.
	Gives(option string) bool
	// SellingRisks returns the risks that the seller's own options have.
	SellingRisks() []OptionRisk
	// Describe returns what operators are told of the seller. all are the judges of the configuration.
	Describe(all []*Judge) Selling
	// FindRepeat looks for what an earlier attempt with the same idempotency key or ref has left. ends: the attempt has the
	// answer of that one, and no further rule judges it.
	FindRepeat(*http.Request, *Case) (no *sale.Refusal, ends bool)
	// UnlessRepeat is the refusal of an attempt, unless it has the answer of an earlier one.
	UnlessRepeat(*http.Request, *Case, *sale.Refusal) *sale.Refusal
	// LacksSlot refuses an attempt that would get no in-flight slot now; nil: it gets one.
	LacksSlot(*Case) *sale.Refusal
}

// AskAbout asks the shop whether it has the order of a reservation of a sale, and says why it is not known.
type AskAbout func(ctx context.Context, store *reservation.Store, sale string, due reservation.ProbeDue) (reservation.ProbeAnswer, string, error)

// Selling is how a seller sells.
type Selling struct {
	// Doubts is what resolves holds in doubt. AskAbout asks the shop about one; nil: no probe asks it.
	Doubts   string
	AskAbout AskAbout
	// ByShop: the shop confirms holds, through its API.
	ByShop bool
	// Most and Memory are how many orders may wait, and in how many bytes of Redis; 0: none waits.
	Most   int
	Memory int64
	// Risks are those that depend on the whole configuration.
	Risks []OptionRisk
}
