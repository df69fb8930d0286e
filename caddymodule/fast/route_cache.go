package fast

import (
	"hash/maphash"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// routeCache remembers where requests lead whose route depends on method, host and path
// only. It has a fixed number of entries, so clients that send many paths cannot make it grow.
type routeCache struct {
	entries [1024]atomic.Pointer[cachedRoute]
}

// cachedRoute is where one method, host and path leads.
type cachedRoute struct {
	method, host, path string
	url                url.URL // without its query
	destination        routeDestination
	kept               bool // the route depends on nothing else
}

// maxCachedRoute bounds method, host and path of a cached route, in bytes together.
const maxCachedRoute = 512

var routeCacheSeed = maphash.MakeSeed()

func (k *routeCache) place(method, host, path string) *atomic.Pointer[cachedRoute] {
	h := maphash.String(routeCacheSeed, path) ^ maphash.String(routeCacheSeed, host)<<1 ^ uint64(len(method))
	return &k.entries[h%uint64(len(k.entries))]
}

func (k *cachedRoute) is(method, host, path string) bool {
	return k.path == path && k.method == method && k.host == host
}

// wayOf finds where a request leads; nil: to the HTTP server. byQuery: that may depend on its query.
func (p *RoutePlan) wayOf(f *fastpath.Request, path string, byQuery bool) *cachedRoute {
	place := p.known.place(f.Method, f.Host, path)
	if k := place.Load(); k != nil && !byQuery && k.is(f.Method, f.Host, path) {
		if k.destination.judge == nil {
			return nil
		}
		return k
	}
	if !p.suits(f.Method, f.Host, path) {
		return nil
	}
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return nil
	}
	k := &cachedRoute{method: strings.Clone(f.Method), host: strings.Clone(f.Host), path: strings.Clone(path)}
	if k.url = *u; u.Scheme != "" || u.Host != "" || u.Opaque != "" {
		return nil
	}
	// the strings of u are substrings of path, which is not ours to keep
	k.url.Path, k.url.RawPath = strings.Clone(u.Path), strings.Clone(u.RawPath)
	s := takeScratch()
	defer s.giveBack()
	s.lay(f, k)
	w := walk{}
	w.walk(p.steps, &s.request)
	k.destination = w.destination
	if !w.headers && !byQuery && len(f.Method)+len(f.Host)+len(path) <= maxCachedRoute {
		if k.kept = true; w.destination.places == nil { // else each person asks for another path, and only its connection keeps it
			place.Store(k)
		}
	}
	if k.destination.judge == nil {
		return nil
	}
	return k
}

// suits reports whether Caddy's server passes a request to the routes unchanged. Requests
// that it answers itself, and those that gates let pass, are left to it.
func (p *RoutePlan) suits(method, host, path string) bool {
	return len(method) <= 32 && method != http.MethodOptions && strings.Trim(host, ".") != "" &&
		!strings.HasPrefix(host, ".") && !strings.HasPrefix(host, ":") && !strings.HasPrefix(path, "/.well-known/")
}
