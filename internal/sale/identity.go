package sale

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The identities that a limit may count by.
var identityKinds = []string{"buyer", "phone", "email", "address", "device", "ip"}

// IsIdentity reports whether a limit may count by a kind of identity.
func IsIdentity(kind string) bool { return slices.Contains(identityKinds, kind) }

// Identities says by what a limit tells buyers apart: one identity, such as "phone", or
// a union of several. In a union each identity has a counter of its own, an attempt is
// charged to all of them, and any full one refuses it: so attempts that share any of
// them share one count.
//
// Its text is the names joined by '+', sorted; Union makes it. In a file and in
// JSON one identity is a string and a union is a list.
type Identities string

// Union names several identities, in any order; a single one is itself.
func Union(kinds ...string) Identities {
	sorted := slices.Sorted(slices.Values(kinds))
	return Identities(strings.Join(slices.Compact(sorted), "+"))
}

// All calls yield for every identity. It allocates nothing.
func (i Identities) All(yield func(kind string) bool) {
	if i == "" {
		return
	}
	for kind := range strings.SplitSeq(string(i), "+") {
		if !yield(kind) {
			return
		}
	}
}

// IsUnion reports whether there is more than one identity.
func (i Identities) IsUnion() bool { return strings.Contains(string(i), "+") }

// MarshalJSON writes a string for one identity, a sorted list for a union.
func (i Identities) MarshalJSON() ([]byte, error) {
	if !i.IsUnion() {
		return json.Marshal(string(i))
	}
	return json.Marshal(slices.Sorted(i.All))
}

// UnmarshalJSON reads what MarshalJSON wrote. Whether there are such identities is
// for Decode and New to say.
func (i *Identities) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		if strings.Contains(one, "+") {
			return fmt.Errorf("per: several identities are a list, not %s", quote(one))
		}
		*i = Identities(one)
		return nil
	}
	var several []string
	if err := json.Unmarshal(data, &several); err != nil {
		return fmt.Errorf("per: must be an identity or a list of them: %w", err)
	}
	*i = Union(several...)
	return nil
}
