package edgeruntime

import (
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/token"
)

// signingKey is what a shard knows of a key that signs, without its public key.
func signingKey(k token.Key) shard.SigningKey {
	return shard.SigningKey{KID: k.KID(), Seal: [32]byte(k.Derive("stockgate identity secret"))}
}

// LostKey reads a lost key that signed before, with which the identity secret is kept.
func LostKey(pem string) (*shard.SigningKey, error) {
	k, err := token.ParseKey("ed25519", pem)
	if err != nil {
		return nil, err
	}
	lost := signingKey(k)
	return &lost, nil
}
