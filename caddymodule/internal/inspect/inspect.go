// Package inspect lets the tests of caddymodule look into the packages below it, whose API has
// nothing for tests. The package that a function looks into sets it; only tests call it.
package inspect

import (
	"time"

	"github.com/stockgate/stockgate/fastpath"
)

var (
	// OpenLists returns the lists that any current configuration has open, by pool key. Set by
	// accesslist.
	OpenLists func() map[any]any
	// ItemKeepers returns how many lists of unlisted items current configurations keep in
	// Caddy's storage. Set by app.
	ItemKeepers func() int
	// InFlight returns how many requests use an *edgeruntime.Runtime, and Shut makes it admit no
	// more, as when its last configuration ends. Set by edgeruntime.
	InFlight func(runtime any) int
	Shut     func(runtime any)
	// AgeEdge and AgeLists make Redis's last answer to an *edgeruntime.Runtime, and to all lists in
	// Redis, older, as if so much time had passed since. Set by edgeruntime and accesslist.
	AgeEdge  func(runtime any, by time.Duration)
	AgeLists func(by time.Duration)
	// Forget drops what the edge of an *edgeruntime.Runtime keeps for a failover of Redis. Set by
	// edgeruntime.
	Forget func(runtime any)
	// FastJudge returns what judges requests at the connection for a *fast.Listener; nil: Caddy's
	// server gets them all. Set by fast.
	FastJudge func(listener any) fastpath.Judge
)
