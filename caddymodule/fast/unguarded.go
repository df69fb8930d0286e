package fast

import "github.com/stockgate/stockgate/caddymodule/gate"

// IsBare says whether a request can come to a gate without having met a guard; seen: the gate
// is in the routes that are known here.
func (p *Plan) IsBare(g *gate.Gate) (bare, seen bool) {
	all := make(map[*gate.Gate]bool)
	unguarded(p.steps, false, all)
	bare, seen = all[g]
	return bare, seen
}

// unguarded notes of every gate in the routes whether a request can come to it without
// having met a guard. It returns whether a guard stands before what follows them.
func unguarded(steps []planStep, guarded bool, bare map[*gate.Gate]bool) bool {
	for i := range steps {
		s := &steps[i]
		inner := guarded
		for _, a := range s.acts {
			switch {
			case a.guard != nil:
				inner = true
			case a.gate != nil:
				bare[a.gate] = bare[a.gate] || !inner
			case a.sub:
				inner = unguarded(a.steps, inner, bare)
			}
		}
		if len(s.sets) == 0 && s.opaque == "" { // a request that a matcher turns away does without it
			guarded = inner
		}
	}
	return guarded
}
