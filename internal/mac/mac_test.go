package mac_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"github.com/stockgate/stockgate/internal/mac"
)

// The sums are those of crypto/hmac, for messages of no byte to several blocks.
func TestSum(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for size := range 200 {
		var key [32]byte
		b := make([]byte, mac.BlockSize+size)
		random.Read(key[:])
		random.Read(b)
		want := hmac.New(sha256.New, key[:])
		want.Write(b[mac.BlockSize:])
		if got := mac.Sum(&key, b); !hmac.Equal(got[:], want.Sum(nil)) {
			t.Errorf("%d bytes: %x, crypto/hmac says %x", size, got, want.Sum(nil))
		}
	}
}
