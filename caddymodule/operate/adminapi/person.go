package adminapi

import (
	"fmt"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// PersonKinds are the identities by which a person is found, in the order in which a page lists them.
var PersonKinds = []string{"buyer", "phone", "email", "device", "address", "ip"}

// PersonRequest names a person. The values are in the body, so that no log has them.
type PersonRequest struct {
	// Identities are values by their kind, as a client or the shop writes them.
	Identities map[string]string `json:"identities"`
	// After is the Next of the answer before this one.
	After string `json:"after,omitempty"`
	// DryRun and Lists are for person/erase: only say what would go, and remove the person from lists in Redis.
	DryRun bool `json:"dry_run,omitempty"`
	Lists  bool `json:"lists,omitempty"`
}

// PersonData answers POST person/show and person/erase.
type PersonData struct {
	Sales  []PersonSale   `json:"sales"`
	Lists  []PersonListed `json:"lists"`
	Ledger []PersonRows   `json:"ledger"`
	// Unsearched has a sentence for each place that was not searched.
	Unsearched []string `json:"unsearched"`
	// Next is not empty where sales are left: ask for them with After.
	Next string `json:"next,omitempty"`
	// Erased is what person/erase has removed, or with DryRun would remove; nil: the request did not ask.
	Erased *PersonErased `json:"erased,omitempty"`
	// Kept is what person/erase leaves.
	Kept []PersonKept `json:"kept,omitempty"`
}

// PersonSale is what one sale has of a person.
type PersonSale struct {
	ID     string      `json:"id"`
	Status sale.Status `json:"status"`
	reservation.Trace
}

// PersonListed is an entry of a list that is kept in Redis.
type PersonListed struct {
	List string `json:"list"`
	// Kind is the kind of the entry; any: an entry without a kind.
	Kind string `json:"kind"`
}

// PersonRows are the rows of the ledger that are about reservations of a person, for one kind of identity.
type PersonRows struct {
	Kind         string `json:"kind"`
	Sale         string `json:"sale"`
	Reservations int64  `json:"reservations"`
	Movements    int64  `json:"movements"`
}

// PersonErased counts what was removed.
type PersonErased struct {
	DryRun bool `json:"dry_run"`
	// Answers are the shop's answers to orders that were kept.
	Answers     int `json:"answers"`
	ListEntries int `json:"list_entries"`
}

// PersonKept is what stays, and until when.
type PersonKept struct {
	Sale  string `json:"sale,omitempty"`
	What  string `json:"what"`
	Until string `json:"until"`
}

// Kept says what an erasure leaves of a sale: what its books and limits need.
func (s *PersonSale) Kept() (all []PersonKept) {
	keep := func(n int, one, more, until string) {
		if n > 0 {
			all = append(all, PersonKept{s.ID, count(n, one, more), until})
		}
	}
	deleted := "`caddy stockgate sale delete " + s.ID + "`, for a closed sale"
	var stand, over, waiting, refs, forever, passing int
	for i := range s.Reservations {
		r := &s.Reservations[i]
		switch r.State {
		case "released", "expired":
			over++
		default:
			stand++
		}
		if r.State == "waiting" {
			waiting++
		}
		if r.Ref != "" {
			refs++
		}
	}
	for _, c := range s.Counters {
		if c.Limit != "" && c.Ends.IsZero() {
			forever++
		} else {
			passing++
		}
	}
	keep(stand, "reservation", "", deleted)
	keep(over, "reservation", " without an order", "up to seven days after its end, longer while a ledger is behind")
	keep(refs, "ref", ", as the shop wrote it", "its reservation is forgotten")
	keep(forever, "counter", " of limits", deleted)
	keep(passing, "counter", " for a time", "the window of the limit, or the time of unpaid holds, is over")
	keep(waiting, "order", " waiting for the shop, encrypted", "it is sent or released: `caddy stockgate queue drain "+s.ID+"`")
	keep(s.Shadow, "counter", " of dry runs", "`caddy stockgate sale forget-shadow "+s.ID+"`")
	if len(s.Reservations) > 0 {
		all = append(all, PersonKept{s.ID, "their movements in the journal", "it is trimmed: `journal { keep, most }`, or " + deleted})
	}
	return all
}

// Kept says when the rows of a ledger go.
func (r *PersonRows) Kept() PersonKept {
	return PersonKept{r.Sale, fmt.Sprintf("%s and %s in the ledger", count(int(r.Reservations), "reservation", ""), count(int(r.Movements), "movement", "")),
		"you delete the rows: Stockgate never does"}
}

// count is a number with its noun.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one + more
	}
	return fmt.Sprintf("%d %ss%s", n, one, more)
}
