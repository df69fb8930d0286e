package move

import "github.com/stockgate/stockgate/internal/store/shard"

// Client is the connection to a destination.
func (t *Destination) Client() *shard.Client { return t.client }
