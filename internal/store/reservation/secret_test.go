package reservation_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/identity"
)

// What is hashed without memory of its own has the hashes of crypto/hmac: Redis keeps
// them, and other versions have written them.
func TestSecretHashes(t *testing.T) {
	s := identity.Secret{1, 2, 3, 31: 9}
	want := func(kind, value string) string {
		mac := hmac.New(sha256.New, s[:])
		mac.Write([]byte(kind + "\x00" + value))
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
	}
	for _, size := range []int{0, 1, 47, 48, 64, 200, 319, 320, 321, 5000} {
		value := strings.Repeat("ä", size/2) + strings.Repeat("b", size%2)
		length := strconv.Itoa(len(value)) + ":" + value
		if got := s.Identity("buyer", value); got != want("buyer", value) {
			t.Errorf("identity of %d bytes: %s", size, got)
		}
		if got := s.Key(value, "some key"); got != "k|"+want("key", length+"some key") {
			t.Errorf("key of a buyer of %d bytes: %s", size, got)
		}
		lines := []sale.Line{{SKU: "b", Quantity: 2}, {SKU: "a", Region: "north", Quantity: 1}}
		if got := s.Single(value, lines); got != "d|"+want("single", length+"a@north 1 b 2") {
			t.Errorf("single of a buyer of %d bytes: %s", size, got)
		}
		if got := s.Single(value, lines[1:]); got != "d|"+want("single", length+"a@north 1") {
			t.Errorf("single of a buyer of %d bytes and one line: %s", size, got)
		}
	}
}
