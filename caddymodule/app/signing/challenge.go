package signing

import (
	"crypto/rand"
	"sync"

	"github.com/stockgate/stockgate/filters/challenge"
)

// Challenge returns keys that are derived from those that sign tokens: the first one makes tasks, all of
// them verify. Of nil, before an app has started, it returns a temporary key, whose tasks are not accepted later.
func (k *Keys) Challenge() []challenge.TaskKey {
	if k != nil {
		return k.challenge
	}
	return ownChallengeKey()
}

var ownChallengeKey = sync.OnceValue(func() []challenge.TaskKey {
	var secret [32]byte
	rand.Read(secret[:])
	return []challenge.TaskKey{challenge.NewKey(secret)}
})
