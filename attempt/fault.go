package attempt

import "github.com/stockgate/stockgate/sale"

// fault is why a request is malformed: which input, and what is wrong with it.
// Both are words of ours and of the configuration, never the client's. The
// zero fault is none.
type fault struct {
	input string // "json.sku", "the body"
	what  string // "the name appears twice"
}

func (f fault) bad() bool { return f.what != "" }

// refusal is the answer that a fault leads to.
func (f fault) refusal() *sale.Refusal {
	return &sale.Refusal{Reason: sale.Malformed, Detail: f.input + ": " + f.what}
}

func malformed(input, what string) *sale.Refusal { return fault{input, what}.refusal() }
