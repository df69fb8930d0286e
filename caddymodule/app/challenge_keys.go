package app

import (
	"crypto/rand"
	"sync"

	"github.com/stockgate/stockgate/filters/challenge"
)

// ChallengeKeys are derived from the edges' signing keys: the first one makes tasks, all of
// them verify. Before Start it returns a temporary key, whose tasks are not accepted later.
func (a *App) ChallengeKeys() []challenge.TaskKey {
	if s := a.signing.Load(); s != nil {
		return s.challenge
	}
	return ownChallengeKey()
}

var ownChallengeKey = sync.OnceValue(func() []challenge.TaskKey {
	var secret [32]byte
	rand.Read(secret[:])
	return []challenge.TaskKey{challenge.NewKey(secret)}
})
