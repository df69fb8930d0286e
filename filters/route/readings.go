package route

import "strings"

const (
	// mostDecodings is how often a path is decoded: by a proxy, a server and a framework.
	mostDecodings = 3
	// mostReadings and mostBytes bound the readings of one path. Ordinary paths have 2 to 20.
	mostReadings = 160
	mostBytes    = 48 << 10
)

// Readings are the paths that servers may read in a path: the results of up to three
// decodings with the steps below in any order and number between them, each with and
// without a trailing slash. The first is the path itself. Letters keep their case: the
// caller must compare without regard to case.
//
// false: there are more than an honest path has, and only a part of them is returned.
func Readings(path string) (all []string, complete bool) {
	f := finder{seen: make(map[string]struct{}, 16)}
	complete = f.add(path)
	for from, decoded := 0, 0; complete; decoded++ {
		for i := from; i < len(f.all) && complete; i++ {
			complete = f.step(f.all[i])
		}
		end := len(f.all)
		if decoded == mostDecodings {
			break
		}
		for i := from; i < end && complete; i++ {
			complete = f.add(decode(f.all[i]))
		}
		if from = end; from == len(f.all) {
			break
		}
	}
	return f.slashed(), complete
}

// finder collects readings.
type finder struct {
	all   []string
	seen  map[string]struct{}
	bytes int
}

// add adds a reading. false: there are too many.
func (f *finder) add(path string) bool {
	if path == "" {
		path = "/"
	}
	if _, ok := f.seen[path]; ok {
		return true
	}
	if f.bytes += len(path); len(f.all) == mostReadings || f.bytes > mostBytes && len(f.all) > 0 {
		return false
	}
	f.seen[path] = struct{}{}
	f.all = append(f.all, path)
	return true
}

// step adds the result of one step.
func (f *finder) step(path string) bool {
	for _, s := range steps {
		if next := s(path); next != path && !f.add(next) {
			return false
		}
	}
	return true
}

// slashed adds the counterpart of each reading with or without a trailing slash.
func (f *finder) slashed() []string {
	for _, path := range f.all[:len(f.all):len(f.all)] {
		other := OtherSlash(path)
		if _, ok := f.seen[other]; !ok {
			f.seen[other] = struct{}{}
			f.all = append(f.all, other)
		}
	}
	return f.all
}

// OtherSlash is a path without its trailing slash, or with one if it has none.
func OtherSlash(path string) string {
	if short, ok := strings.CutSuffix(path, "/"); ok && short != "" {
		return short
	} else if ok {
		return path
	}
	return path + "/"
}

// Spellings are a path and what differs from it in slashes only: doubled ones, and one at the end.
func Spellings(path string) []string {
	all := []string{path, OtherSlash(path)}
	if merged := mergeSlashes(path); merged != path {
		all = append(all, merged, OtherSlash(merged))
	}
	return all
}
