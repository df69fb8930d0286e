package suite

import (
	"context"
	"fmt"
	"net/url"
	"syscall"

	"github.com/stockgate/stockgate/bench/connect"
	"github.com/stockgate/stockgate/bench/load"
	"github.com/stockgate/stockgate/bench/measure"
	"github.com/stockgate/stockgate/bench/peer"
)

// manyRequests are as many as a driver gets by its command line.
const manyRequests = 200

// connectPlan is what a driver does with a peer.
func (b *bench) connectPlan(s scenario, c *contender) (connect.Plan, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return connect.Plan{}, err
	}
	p := connect.Plan{Addr: c.Addr, HTTP2: s.h2, Host: u.Host, Says: s.want.Says, AtOnce: b.Connections, Resume: s.resume, For: b.For}
	for i := range manyRequests {
		if s.h2 {
			p.Requests = append(p.Requests, c.orders.Target(i))
		} else {
			p.Requests = append(p.Requests, c.orders.Request(i))
		}
	}
	return p, nil
}

// newConnections measures what new buyers cost: a TLS handshake, an attempt that is refused, and the
// end of the connection.
func newConnections(ctx context.Context, b *bench, s scenario, out *measure.Case) error {
	field, err := b.start(ctx, s)
	defer func() {
		for _, c := range field {
			c.Stop()
		}
	}()
	if err != nil {
		return err
	}
	for range b.Runs {
		for _, c := range field {
			if err := b.connectOnce(ctx, s, c); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for _, c := range field {
		out.Rows = append(out.Rows, c.row())
	}
	return nil
}

func (b *bench) connectOnce(ctx context.Context, s scenario, c *contender) error {
	p, err := b.connectPlan(s, c)
	if err != nil {
		return err
	}
	d, err := startDriver(ctx, b, "connect", p)
	if err != nil {
		return err
	}
	// it has opened connections for a second, and waits
	begin, err := c.rest()
	if err != nil {
		return err
	}
	var result connect.Result
	if err := d.measure(&result); err != nil {
		return err
	}
	end, err := c.CPU()
	if err != nil {
		return err
	}
	if err := d.end(); err != nil {
		return err
	}
	c.runs = append(c.runs, run{
		Load: measure.Load{Requests: result.Connections, Seconds: result.Seconds, P50: result.P50, P99: result.P99}, cpu: end - begin,
	})
	return nil
}

// idleSizes are how many idle connections a server gets.
var idleSizes = []int{10_000, 18_000}

// idleConnections measures what memory idle connections take. Each run has a server of its own,
// so that none begins with the memory of another.
func idleConnections(ctx context.Context, b *bench, s scenario, out *measure.Case) error {
	var sizes []int
	files, err := fileLimit()
	if err != nil {
		return err
	}
	for _, n := range idleSizes {
		if uint64(n+1000) > files {
			b.left("%s: no %d connections: a process may have %d open files (ulimit -n)", s.name, n, files)
			continue
		}
		sizes = append(sizes, n)
	}
	if len(sizes) == 0 {
		return nil
	}
	for _, spec := range s.peers(b) {
		rss, live := make([][]float64, len(sizes)), make([][]float64, len(sizes))
		for n := range b.Runs {
			dir, err := b.dir(fmt.Sprintf("%s-%s-%d", s.name, spec.Name, n))
			if err != nil {
				return err
			}
			c, err := b.enter(ctx, s, s.setup(b, dir), spec, spec.Name)
			if err == nil {
				err = b.idleOnce(ctx, s, c, sizes, rss, live)
			}
			if c != nil {
				c.Stop()
			}
			if isNotBuilt(err) {
				b.left("%s: %s: %v", s.name, spec.Name, err)
				break
			} else if err != nil {
				return fmt.Errorf("%s: %w", spec.Name, err)
			}
		}
		for i, n := range sizes {
			if len(rss[i]) > 0 {
				out.Rows = append(out.Rows, measure.Row{Peer: spec.Name, Connections: n, Memory: measure.Over(rss[i]), Live: measure.Over(live[i])})
			}
		}
	}
	return nil
}

// idleOnce adds to rss and live what each connection takes, in KiB, for each size.
func (b *bench) idleOnce(ctx context.Context, s scenario, c *contender, sizes []int, rss, live [][]float64) error {
	p, err := b.connectPlan(s, c)
	if err != nil {
		return err
	}
	p.Idle = append([]int{p.AtOnce}, sizes...)
	d, err := startDriver(ctx, b, "connect", p)
	if err != nil {
		return err
	}
	// as many are open as will be opened at once: what that takes is not of idle ones
	before, liveBefore, err := memory(ctx, c)
	if err != nil {
		return err
	}
	for i, n := range sizes {
		if _, err := d.proceed(); err != nil {
			return err
		}
		after, liveAfter, err := memory(ctx, c)
		if err != nil {
			return err
		}
		each := func(bytes float64) float64 { return bytes / float64(n-p.AtOnce) / 1024 }
		rss[i] = append(rss[i], each(after-before))
		live[i] = append(live[i], each(liveAfter-liveBefore))
	}
	if _, err := d.proceed(); err != nil { // all are still open
		return err
	}
	return d.end()
}

// memory is how many bytes of the server are resident, and after that how many are live once
// Go's garbage collector has run.
func memory(ctx context.Context, c *contender) (resident, live float64, err error) {
	bytes, err := c.Resident()
	if err != nil {
		return 0, 0, err
	}
	live, err = c.Live(ctx)
	return float64(bytes), live, err
}

func fileLimit() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return limit.Max, nil
}

// connecting are the cases about connections.
func connecting() (all []scenario) {
	add := func(name, about string, measure func(context.Context, *bench, scenario, *measure.Case) error, change func(*scenario), specs ...peer.Spec) {
		s := scenario{
			name: name, about: about, measure: measure, peers: peers(specs...), method: "GET", tls: true, stock: 1, want: load.Answer{Status: soldOut.Status, Says: soldOut.Says},
			streams: 1, stray: 0.01,
		}
		change(&s)
		all = append(all, s)
	}
	for _, http := range []struct {
		name, about string
		h2          bool
	}{{"h1", "HTTP/1.1", false}, {"h2", "HTTP/2", true}} {
		add("new-"+http.name, "new buyers by "+http.about+": a full TLS handshake and a refusal each", newConnections, func(s *scenario) { s.h2 = http.h2 },
			nginxDict, caddyRespond, gate, gateFast)
		add("again-"+http.name, "buyers who return by "+http.about+": a resumed TLS session and a refusal each", newConnections, func(s *scenario) { s.h2, s.resume = http.h2, true },
			nginxDict, caddyRespond, gate, gateFast)
	}
	for _, http := range []struct {
		name, about string
		h2          bool
	}{{"h1", "HTTP/1.1", false}, {"h2", "HTTP/2", true}} {
		add("idle-"+http.name, "idle connections by "+http.about+" over TLS, after one refusal each", idleConnections, func(s *scenario) { s.h2 = http.h2 },
			gate, gateFast)
	}
	return all
}
