package adminapi

import (
	"fmt"
	"strings"
	"time"
)

// The bounds of BypassRequest.
const (
	LeastBypass   = time.Second
	MostBypass    = 24 * time.Hour
	MaxBypassText = 200 // bytes of a reason
)

// BypassRequest lets the orders of a gate pass without a reservation.
type BypassRequest struct {
	// For is how long, such as 15m.
	For string `json:"for"`
	// Reason is for the log, the journal and other operators.
	Reason string `json:"reason,omitempty"`
}

// Bypass is a time in which the orders of a gate pass without a reservation at one edge.
type Bypass struct {
	ID   string `json:"id"`
	Gate string `json:"gate,omitempty"`
	// Edge is the host name of the edge.
	Edge   string    `json:"edge"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	// Sales are those that the gate sells; none: any.
	Sales []string `json:"sales,omitempty"`
	// Orders have passed; of these the shop has answered Taken with a status of 2xx.
	Orders int64 `json:"orders"`
	Taken  int64 `json:"taken"`
	// Restarted: the process was ended in it, and orders may be missing from the counts.
	Restarted bool `json:"restarted,omitempty"`
	// Check: it is one of a stockgate_check, which reserves nothing.
	Check bool `json:"check,omitempty"`
	// Ended: the gate decides again as soon as its sales are paused.
	Ended bool `json:"ended,omitempty"`
}

// BypassList answers GET bypasses, with the bypasses of all edges that Redis knows.
type BypassList struct {
	Bypasses []Bypass `json:"bypasses"`
	// Unread is why the file of this edge's bypasses cannot be read.
	Unread string `json:"unread,omitempty"`
}

// BypassBegun answers POST gates/{name}/bypass.
type BypassBegun struct {
	Bypass
	// Deciding are gates and checks of this edge that go on deciding.
	Deciding []string `json:"deciding"`
}

// Title names the gate, or the check.
func (b *Bypass) Title() string {
	title := "the gate"
	if b.Check {
		title = "the check"
	}
	if b.Gate == "" {
		return title
	}
	return title + " " + b.Gate
}

// Off is the command that ends it.
func (b *Bypass) Off() string { return strings.TrimSpace("caddy stockgate bypass off " + b.Gate) }

// Sentence says what a bypass is, to operators.
func (b *Bypass) Sentence() string {
	who := fmt.Sprintf("by %s since %s", b.By, LocalTime(b.From))
	if b.Reason != "" {
		who += ": " + b.Reason
	}
	switch {
	case b.Check:
		return fmt.Sprintf("%s at %s refuses nothing until %s (bypass %s)", b.Title(), b.Edge, LocalTime(b.Until), who)
	case b.Ended:
		return fmt.Sprintf("a bypass of %s at %s has ended after %s (%s): its sales are paused as soon as redis answers, and the gate refuses orders until then", b.Title(), b.Edge, orders(b), who)
	}
	return fmt.Sprintf("orders of %s at %s pass without a reservation until %s (bypass %s), so units may be sold twice: so far %s", b.Title(), b.Edge, LocalTime(b.Until), who, orders(b))
}

func orders(b *Bypass) string {
	text := fmt.Sprintf("%d orders, of which the shop has taken %d", b.Orders, b.Taken)
	if b.Restarted {
		text += ", and perhaps some more before a restart"
	}
	return text
}
