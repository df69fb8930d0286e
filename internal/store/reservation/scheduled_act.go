package reservation

import (
	"fmt"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// ScheduledAct is an act that is scheduled in a sale, or was done.
type ScheduledAct struct {
	// Number names it in its sale.
	Number int64        `json:"number"`
	At     time.Time    `json:"at"`
	Act    sale.ActKind `json:"act"`
	// SKU, Region and Change are of a change of stock only.
	SKU    string `json:"sku,omitempty"`
	Region string `json:"region,omitempty"`
	Change string `json:"change,omitempty"`
	// By is who planned it, and Planned when.
	By      string    `json:"by"`
	Planned time.Time `json:"planned,omitzero"`
	// Stale: the sale was restored or rebuilt since it was planned. At its time it fails.
	Stale bool `json:"stale,omitempty"`
	// DoneAt is when it was done, or failed; zero: it is to come.
	DoneAt time.Time `json:"done_at,omitzero"`
	Failed bool      `json:"failed,omitempty"`
	// Detail says why it failed, or what has come of it.
	Detail string `json:"detail,omitempty"`
}

// What says what the act does.
func (a *ScheduledAct) What() string {
	if a.Act != sale.ActStock {
		return string(a.Act)
	}
	item := a.SKU
	if a.Region != "" {
		item += " in " + a.Region
	}
	return "stock of " + item + " " + a.Change
}

// lateFrom is how late an act is of which that is said: edges look for acts twice a second.
const lateFrom = 5 * time.Second

// Late says how late an act was done; 0: in time.
func (a *ScheduledAct) Late() time.Duration {
	if late := a.DoneAt.Sub(a.At); !a.DoneAt.IsZero() && late >= lateFrom {
		return late.Round(time.Second)
	}
	return 0
}

// Outcome says what has become of an act that is not to come any more.
func (a *ScheduledAct) Outcome() string {
	text := "done"
	if a.Failed {
		text = "FAILED"
	}
	if a.Detail != "" {
		text += ": " + a.Detail
	}
	if late := a.Late(); late > 0 {
		text += fmt.Sprintf(" (%v late)", late)
	}
	return text
}

// detailOf puts what lua/perform.lua notes into words.
func detailOf(noted string) string {
	word, rest, _ := strings.Cut(noted, " ")
	switch word {
	case "same":
		return "it was so already"
	case "stock":
		return "stock " + rest
	case "restored":
		return "redis comes from a backup, or the sale was rebuilt, since this was planned, and whether it was done is not known; plan it again if it is still to be done"
	case "behind":
		return "the sale may lack what was sold, as `sale show` says: compare it with the shop, and open it yourself"
	case "unready":
		return "the sale does not have all purchases that were made before it: apply its file again, and open it yourself"
	case "ended":
		return "the sale had ended"
	case "conflict":
		if rest == "merging" {
			return "the sale is being rebuilt"
		}
		return "the sale was " + rest
	case "short":
		return "only " + rest + " units were available"
	case "too_many":
		return "a cell has " + rest + " units, and more would be beyond its bound"
	case "unknown":
		return "the sale did not have the item any more"
	}
	return noted
}
