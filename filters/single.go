package filters

import (
	"hash/maphash"
	"sync"
)

// Single lets one attempt of a kind be under way at a time on this edge: a double
// click must not buy twice, and one buyer must not fill the queue to Redis. The
// zero value is ready.
type Single struct {
	once   sync.Once
	seed   maphash.Seed
	shards [64]singleShard
}

type singleShard struct {
	mu   sync.Mutex
	keys map[string]struct{}
	_    [40]byte // a cache line each
}

// Enter reports whether no other attempt with this key is under way. A caller that entered
// must call Leave.
func (s *Single) Enter(key string) bool {
	shard := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if _, taken := shard.keys[key]; taken {
		return false
	}
	if shard.keys == nil {
		shard.keys = make(map[string]struct{})
	}
	shard.keys[key] = struct{}{}
	return true
}

// Entered reports whether an attempt with this key is under way.
func (s *Single) Entered(key string) bool {
	shard := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	_, taken := shard.keys[key]
	return taken
}

// Leave lets the next one with this key in.
func (s *Single) Leave(key string) {
	shard := s.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	delete(shard.keys, key)
}

func (s *Single) shard(key string) *singleShard {
	s.once.Do(func() { s.seed = maphash.MakeSeed() })
	return &s.shards[maphash.String(s.seed, key)%uint64(len(s.shards))]
}
