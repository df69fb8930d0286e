package chaos

// Class is what a store must keep for a promise to hold, and what then holds.
type Class string

const (
	// Kept: the store keeps what it has acknowledged. Nothing is sold twice.
	Kept Class = "a"
	// Acknowledged: every replica that can be promoted has what was acknowledged. Nothing is
	// sold twice unless all of them are lost together with the edges that sold.
	Acknowledged Class = "b"
	// AtRisk: replicas follow later. At most the units at risk are lost.
	AtRisk Class = "c"
)

// Config is one way to run Redis, and the promise that holds on it.
type Config struct {
	Name  string
	About string
	Class Class
	// Open says why no promise is known to hold on this build. What a failover loses is
	// then counted, not judged. Empty: every promise of the class is judged.
	Open string
	// Short configurations run in CI.
	Short bool

	ledger bool     // with PostgreSQL
	clock  bool     // Redis's clock can step
	queue  bool     // orders wait for the shop
	waits  bool     // people wait for units
	faults []string // of Redis
	build  func(r *Run) store
}

const lostTogether = "what is lost together with the edges that knew of it is sold again"

// Configs are all configurations.
var Configs = []*Config{
	{
		Name: "single", About: "one Redis, appendfsync always, with a ledger", Class: Kept, Short: true, ledger: true, clock: true,
		faults: []string{"kill", "pause", "slow-disk"},
		build:  func(r *Run) store { return newSingle(r, "always") },
	},
	{
		Name: "single-queue", About: "one Redis, appendfsync always, and orders that wait for the shop", Class: Kept, Short: true, clock: true, queue: true,
		faults: []string{"kill", "pause", "slow-disk"},
		build:  func(r *Run) store { return newSingle(r, "always") },
	},
	{
		Name: "single-waitlist", About: "one Redis, appendfsync always, and people who wait for units", Class: Kept, Short: true, clock: true, waits: true,
		faults: []string{"kill", "pause", "slow-disk"},
		build:  func(r *Run) store { return newSingle(r, "always") },
	},
	{
		Name: "single-everysec", About: "one Redis, appendfsync everysec, killed with -9 while its disk is slow", Class: AtRisk,
		Open:   lostTogether,
		clock:  true,
		faults: []string{"kill", "pause", "slow-disk", "slow-kill"},
		build:  func(r *Run) store { return newSingle(r, "everysec") },
	},
	{
		Name: "replicas-acks", About: "a primary and two replicas, replica_acks 2, promoted by hand", Class: Acknowledged, Short: true, clock: true,
		faults: []string{"kill", "pause", "slow-disk", "promote", "failover", "split", "isolate"},
		build:  func(r *Run) store { return newReplicated(r, 2, 2) },
	},
	{
		Name: "replicas-waitlist", About: "a primary and two replicas, replica_acks 2, promoted by hand, and people who wait for units", Class: Acknowledged, clock: true, waits: true,
		faults: []string{"kill", "pause", "slow-disk", "promote", "failover", "split", "isolate"},
		build:  func(r *Run) store { return newReplicated(r, 2, 2) },
	},
	{
		Name: "replicas-async", About: "a primary and one replica, no acknowledgement, promoted by hand", Class: AtRisk, Open: lostTogether, clock: true,
		faults: []string{"kill", "pause", "promote", "failover", "split", "isolate"},
		build:  func(r *Run) store { return newReplicated(r, 1, 0) },
	},
	{
		Name: "sentinel-acks", About: "three sentinels, a primary and two replicas, replica_acks 2", Class: Acknowledged, Short: true,
		faults: []string{"kill", "pause", "slow-disk", "promote", "failover", "split"},
		build:  func(r *Run) store { return newWatched(r, 2, 2) },
	},
	{
		Name: "sentinel-waitlist", About: "three sentinels, a primary and two replicas, replica_acks 2, and people who wait for units", Class: Acknowledged, Short: true, waits: true,
		faults: []string{"kill", "pause", "slow-disk", "promote", "failover", "split"},
		build:  func(r *Run) store { return newWatched(r, 2, 2) },
	},
	{
		Name: "sentinel-async", About: "three sentinels, a primary and one replica, no acknowledgement", Class: AtRisk, Open: lostTogether,
		faults: []string{"kill", "pause", "promote", "failover", "split"},
		build:  func(r *Run) store { return newWatched(r, 1, 0) },
	},
	{
		Name: "cluster", About: "three nodes of a cluster, appendfsync always, without replicas", Class: Kept, Short: true, clock: true,
		faults: []string{"kill", "pause", "slow-disk", "migrate", "migrate"},
		build:  func(r *Run) store { return newCluster(r, false) },
	},
	{
		Name: "cluster-replicas", About: "a cluster of three primaries, each with a replica", Class: AtRisk, Open: lostTogether,
		faults: []string{"kill", "pause", "promote", "failover", "migrate"},
		build:  func(r *Run) store { return newCluster(r, true) },
	},
}

// Find is the configuration of a name, or nil.
func Find(name string) *Config {
	for _, c := range Configs {
		if c.Name == name {
			return c
		}
	}
	return nil
}
