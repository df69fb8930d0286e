package route

import "strings"

const (
	// mostDecodings is how often a path is decoded: by a proxy, a server and a framework.
	mostDecodings = 3
	// mostReadings and mostBytes bound what is made of one path. Ordinary ones have 2 to 20.
	mostReadings = 160
	mostBytes    = 48 << 10
)

// Readings are the paths that servers may find in a path: what up to three decodings,
// and the steps below in any order and number between them, make of it; and each of
// these with and without a slash at its end. The first is the path itself. Letters keep
// their case: whoever compares ignores it.
//
// false: there are more than anybody would send who means one path. What is returned
// is a part of them.
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

// add takes a reading in. false: there are too many.
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

// step adds what one step makes of a path.
func (f *finder) step(path string) bool {
	for _, s := range steps {
		if next := s(path); next != path && !f.add(next) {
			return false
		}
	}
	return true
}

// slashed adds to each reading the one with or without a slash at its end.
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

// OtherSlash is a path without the slash at its end, or with one if it has none.
func OtherSlash(path string) string {
	if short, ok := strings.CutSuffix(path, "/"); ok && short != "" {
		return short
	} else if ok {
		return path
	}
	return path + "/"
}
