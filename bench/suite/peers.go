package suite

import (
	"errors"

	"github.com/stockgate/stockgate/bench/peer"
)

// The peers. All that are Caddy are the same binary.
var (
	caddyRespond = peer.Spec{Name: "caddy-respond", Kind: peer.Caddy, Respond: true}
	caddyProxy   = peer.Spec{Name: "caddy-proxy", Kind: peer.Caddy}
	nginxProxy   = peer.Spec{Name: "nginx-proxy", Kind: peer.Nginx}
	nginxDict    = peer.Spec{Name: "nginx-dict", Kind: peer.Nginx, Lua: true, Flag: true}
	nginxEvalsha = peer.Spec{Name: "nginx-evalsha", Kind: peer.Nginx, Lua: true}
	gate         = peer.Spec{Name: "gate", Kind: peer.Caddy, Gate: true}
	gateFast     = peer.Spec{Name: "gate-fast", Kind: peer.Caddy, Gate: true, Fast: true}
	gateHS256    = peer.Spec{Name: "gate-hs256", Kind: peer.Caddy, Gate: true, HMAC: true}
	gateKey      = peer.Spec{Name: "gate-key", Kind: peer.Caddy, Gate: true, Key: true}
	gateFastKey  = peer.Spec{Name: "gate-fast-key", Kind: peer.Caddy, Gate: true, Fast: true, Key: true}
	gateStore    = peer.Spec{Name: "gate-store", Kind: peer.Caddy, Gate: true, Store: true}
	gateDurable  = peer.Spec{Name: "gate-redis-always", Kind: peer.Caddy, Gate: true, Durable: true}
	gateKeyHS256 = peer.Spec{Name: "gate-key-hs256", Kind: peer.Caddy, Gate: true, Key: true, HMAC: true}
)

// variants are gates with one thing changed, to see what it is worth.
func variants(b *bench) []peer.Spec {
	out := []peer.Spec{gate}
	add := func(name string, change func(*peer.Spec)) {
		s := gate
		s.Name = name
		change(&s)
		out = append(out, s)
	}
	if b.CaddyPlain != "" {
		add("gate-no-pgo", func(s *peer.Spec) { s.Binary = b.CaddyPlain })
	}
	for _, gogc := range []string{"100", "200", "800"} {
		add("gate-gogc-"+gogc, func(s *peer.Spec) { s.Env = []string{"GOGC=" + gogc} })
	}
	add("gate-gogc-off", func(s *peer.Spec) { s.Env = []string{"GOGC=off", "GOMEMLIMIT=512MiB"} })
	add("gate-no-guard", func(s *peer.Spec) { s.NoGuard = true })
	add("gate-no-idle", func(s *peer.Spec) { s.NoIdle = true })
	add("gate-hs256", func(s *peer.Spec) { s.HMAC = true })
	return out
}

// guarded are gates with and without the guard, to see in pairs of runs what it costs.
func guarded(*bench) []peer.Spec {
	out := []peer.Spec{gate, gate, gateFast, gateFast}
	for _, i := range []int{0, 2} {
		out[i].NoGuard = true
		out[i].Name += "-no-guard"
	}
	return out
}

// fenced are gates with and without the fence.
func fenced(*bench) []peer.Spec {
	without := gate
	without.Name, without.NoFence = gate.Name+"-no-fence", true
	return []peer.Spec{gate, without}
}

// neverAsks and alwaysAsks are challenges below and above their threshold. The work is little: what the
// server does for a solution does not depend on it.
const (
	neverAsks  = "above 1000000 100ms"
	alwaysAsks = "above 1 1h\n\t\t\tbits 4 4"
)

// challenged are gates without a challenge, with one that asks no attempt, and with one that asks
// all of them, to see in pairs of runs what it costs.
func challenged(*bench) (out []peer.Spec) {
	for _, g := range []peer.Spec{gate, gateFast} {
		below, asked := g, g
		below.Name, below.Challenge = g.Name+"-below", neverAsks
		asked.Name, asked.Challenge, asked.Asked = g.Name+"-asked", alwaysAsks, true
		out = append(out, g, below, asked)
	}
	return out
}

// solved are gates that get a solution with each attempt, and have a challenge or none.
func solved(*bench) (out []peer.Spec) {
	for _, g := range []peer.Spec{gate, gateFast} {
		g.Solved = true
		with := g
		with.Name, with.Challenge = g.Name+"-solved", alwaysAsks
		out = append(out, g, with)
	}
	return out
}

func isNotBuilt(err error) bool { return errors.Is(err, peer.ErrNotBuilt) }
