package adminapi

import (
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// TryBody bounds the body of a TryRequest in bytes: a request and an answer, in base64.
const TryBody = 8 << 20

// GateSummary is a gate in the list of all.
type GateSummary struct {
	Name  string `json:"name"`
	Check bool   `json:"check"`
}

// GateList answers GET gates.
type GateList struct {
	Gates []GateSummary `json:"gates"`
}

// TryRequest asks how a gate decides on a saved request, and on a saved answer of the shop.
// Nothing is reserved, counted or sent.
type TryRequest struct {
	// Request is a whole HTTP/1.1 request.
	Request []byte `json:"request"`
	// Answer is a whole HTTP/1.1 response.
	Answer []byte `json:"answer,omitempty"`
	// From is the address that the request comes from. Default: 127.0.0.1.
	From string `json:"from,omitempty"`
	// Placeholders are the values that directives outside of the gate would set, such as
	// http.auth.user.id.
	Placeholders map[string]string `json:"placeholders,omitempty"`
}

// TryAnswer says how a gate decides on a TryRequest.
type TryAnswer struct {
	Gate  string `json:"gate"`
	Check bool   `json:"check,omitempty"`
	// Passes says that the filters let the request through. Limits, and stock that the edge
	// does not know to be gone, are checked when a gate reserves.
	Passes bool `json:"passes"`
	// Refusal is the answer if they do not.
	Refusal *refuse.ProblemDocument `json:"refusal,omitempty"`
	// What was read, as far as it could be read.
	Buyer      string            `json:"buyer,omitempty"`
	Identities map[string]string `json:"identities,omitempty"`
	Region     string            `json:"region,omitempty"`
	Sale       string            `json:"sale,omitempty"`
	SaleStatus sale.Status       `json:"sale_status,omitempty"`
	Lines      []sale.Line       `json:"lines,omitempty"`
	Ref        string            `json:"ref,omitempty"`
	// Unlisted says that no sale lists the items, and that the gate lets them pass without a
	// reservation.
	Unlisted bool `json:"unlisted,omitempty"`
	// Reservation is the one that the attempt already has, by its idempotency key or its ref:
	// then nothing is reserved. Replayed says that the attempt gets the shop's stored answer;
	// otherwise it is forwarded again.
	Reservation string `json:"reservation,omitempty"`
	Replayed    bool   `json:"replayed,omitempty"`
	// Answer is what the shop's answer would mean.
	Answer *TryOutcome `json:"answer,omitempty"`
	// Notes say what a dry run cannot show.
	Notes []string `json:"notes"`
}

// TryOutcome is the outcome of an answer of the shop.
type TryOutcome struct {
	Status int `json:"status"`
	// Outcome is confirm, release, in_doubt, or keep where the shop decides later.
	Outcome string `json:"outcome"`
	// Rule is the rule that decides, and Matched its word that matches; empty: none matched.
	Rule    string `json:"rule,omitempty"`
	Matched string `json:"matched,omitempty"`
}
