package bearer_test

import (
	"encoding/json"
	"testing"

	"github.com/stockgate/stockgate/filters/bearer"
)

// FuzzVerify sends any text, and any header and claims with a good signature.
// Nothing panics; an unsigned text is never accepted; and the claims of what is
// accepted are those that were signed, and one object to any parser.
func FuzzVerify(f *testing.F) {
	ed := newEd("d")
	for _, claims := range []string{good, `{}`, `{"sub":1,"sub":2}`, `{"aud":["a"],"exp":1e9,"nbf":null}`, `[]`, "{\"a\":\"\xff\"}"} {
		f.Add(ed.token(good), ed.header(), claims)
		f.Add("a.b.c", `{"alg":"EdDSA","crit":[]}`, claims)
	}
	v, err := bearer.New(bearer.Options{PublicKey: ed.pem(), Now: new(hand).time})
	if err != nil {
		f.Fatal(err)
	}
	genuine := ed.token(good)
	f.Fuzz(func(t *testing.T, text, header, claims string) {
		if got, err := v.Verify(t.Context(), text, nil); err == nil && text != genuine {
			t.Errorf("accepted %q as %s", text, got)
		}
		got, err := v.Verify(t.Context(), ed.raw(header, claims), nil)
		if err != nil {
			return
		}
		var object map[string]any
		if err := json.Unmarshal(got, &object); err != nil || object == nil || string(got) != claims {
			t.Errorf("%q became %q: %v", claims, got, err)
		}
	})
}
