package shard

import "github.com/redis/go-redis/v9"

// link is a client or a connection of go-redis. No type that other packages reach has a client, a connection or a
// pipeline of go-redis in a field or in the signature of a method: the compiler reads all types that a package
// reaches, and would compile go-redis's generic ones again in each package above this one, half the time of a build.
type link interface{ Close() error }

// behind returns the client behind a link.
func behind(l link) redis.UniversalClient { return l.(redis.UniversalClient) }

// Redis returns the client that runs the commands of this package. Other packages call the methods of
// Client: only tests reach through to Redis.
func Redis(s *Client) redis.UniversalClient { return behind(s.redis) }
