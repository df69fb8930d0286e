package app

import (
	"crypto/rand"
	"sync"

	"github.com/stockgate/stockgate/challenge"
)

// ChallengeKeys are those of the edges' signing keys: the first makes tasks, all recognise
// them. Before the app has them, its own key serves, whose tasks are worth nothing later.
func (a *App) ChallengeKeys() []challenge.Key {
	if s := a.signing.Load(); s != nil {
		return s.challenge
	}
	return ownChallengeKey()
}

var ownChallengeKey = sync.OnceValue(func() []challenge.Key {
	var secret [32]byte
	rand.Read(secret[:])
	return []challenge.Key{challenge.NewKey(secret)}
})
