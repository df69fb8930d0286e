package fast

import "github.com/stockgate/stockgate/caddymodule/gate/judge"

// IsBare reports whether a request can reach a gate without passing a guard. seen says
// whether the gate is in the routes that are known here.
func (p *RoutePlan) IsBare(j *judge.Judge) (bare, seen bool) {
	all := make(map[*judge.Judge]bool)
	unguarded(p.steps, false, all)
	bare, seen = all[j]
	return bare, seen
}

// unguarded notes for every gate in the routes whether a request can reach it without passing
// a guard. It reports whether a guard stands before the routes that follow.
func unguarded(steps []planStep, guarded bool, bare map[*judge.Judge]bool) bool {
	for i := range steps {
		s := &steps[i]
		inner := guarded
		for _, a := range s.acts {
			switch {
			case a.guard != nil:
				inner = true
			case a.judge != nil && a.places == nil:
				bare[a.judge] = bare[a.judge] || !inner
			case a.sub:
				inner = unguarded(a.steps, inner, bare)
			}
		}
		if len(s.sets) == 0 && s.opaque == "" { // a request that does not match skips it
			guarded = inner
		}
	}
	return guarded
}
