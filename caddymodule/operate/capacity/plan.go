package capacity

import (
	"fmt"
	"math"
)

// Plan is what a sale needs, and why.
type Plan struct {
	Sale  Sale         `json:"sale"`
	Needs Requirements `json:"needs"`
	Steps []Step       `json:"steps"`
	Rates []Cost       `json:"rates"`
}

// Requirements are the results.
type Requirements struct {
	Edges          int64   `json:"edges"`
	Cores          float64 `json:"cores"`           // of all edges without the spare ones
	EdgeMemory     float64 `json:"edge_memory_gib"` // of each edge
	Files          int64   `json:"edge_open_files"` // of each edge
	Shards         int64   `json:"redis_shards"`
	RedisCores     float64 `json:"redis_cores"`
	RedisBandwidth float64 `json:"redis_mbit_per_s"`      // of all shards, both directions
	In             float64 `json:"buyers_in_mbit_per_s"`  // to all edges
	Out            float64 `json:"buyers_out_mbit_per_s"` // from all edges
}

// Step is one line of the arithmetic. A step without a formula is the heading of those below it.
type Step struct {
	Name    string  `json:"name"`
	Formula string  `json:"formula,omitempty"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit,omitempty"`
}

// New plans a sale. given are rates in the place of those of the table, by their flags.
func New(s Sale, given map[string]float64) (*Plan, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	rates, err := ratesFor(s.protocol(), given)
	if err != nil {
		return nil, err
	}
	p := &Plan{Sale: s, Rates: rates}
	c := p.count()
	cpu := p.processor(c)
	p.memory(c, cpu)
	p.redis(c)
	p.network(c)
	return p, p.bounded()
}

// beyond is more than any step may come to: numbers up to it are whole ones of 64 bits too.
const beyond = 1 << 62

// bounded returns an error if a step comes to no number that can be counted.
func (p *Plan) bounded() error {
	for _, s := range p.Steps {
		if !(s.Value < beyond) {
			return fmt.Errorf("%s would be %.3g: no machines do that; check the numbers of the sale and the rates", s.Name, s.Value)
		}
	}
	return nil
}

// rate is the value of a rate that is in use.
func (p *Plan) rate(flag string) float64 {
	for _, r := range p.Rates {
		if r.Flag == flag {
			return r.Value
		}
	}
	return 0
}

func (p *Plan) heading(name string) { p.Steps = append(p.Steps, Step{Name: name}) }

func (p *Plan) step(name string, value float64, unit, formula string, args ...any) float64 {
	p.Steps = append(p.Steps, Step{name, fmt.Sprintf(formula, args...), value, unit})
	return value
}

// counts is how often everything happens.
type counts struct{ attempts, orders, refusals, connections, full, resumed float64 }

// opened is how many connections are opened in the rush.
func (c *counts) opened() float64 { return c.full + c.resumed }

func (p *Plan) count() (c counts) {
	s := &p.Sale
	p.heading("What comes")
	c.attempts = p.step("attempts", float64(s.Buyers)*s.Attempts, "", "%s buyers × %s", number(float64(s.Buyers)), number(s.Attempts))
	p.step("attempts a second", c.attempts/s.Seconds, "/s", "%s / %s s", number(c.attempts), number(s.Seconds))
	c.orders = p.step("orders", float64(s.Units), "", "%s units, one each", number(float64(s.Units)))
	c.refusals = p.step("refusals", c.attempts-c.orders, "", "%s − %s", number(c.attempts), number(c.orders))
	if s.TLS {
		c.connections = p.step("connections", float64(s.Buyers), "", "%s buyers, one each", number(float64(s.Buyers)))
		opened := c.connections
		if s.Connected > 0 {
			opened = p.step("of them opened now", math.Round(c.connections*(1-s.Connected)), "", "%s × (1 − %s connected)", number(c.connections), number(s.Connected))
		}
		c.resumed = p.step("resumed handshakes", math.Round(opened*s.Resumed), "", "%s × %s", number(opened), number(s.Resumed))
		c.full = p.step("full handshakes", opened-c.resumed, "", "%s − %s", number(opened), number(c.resumed))
	}
	return c
}

// processor plans the cores of the edges, and how many edges there are.
func (p *Plan) processor(c counts) (edges int64) {
	s := &p.Sale
	p.heading("Cores of the edges")
	total := 0.0
	work := func(name string, times float64, flag string) {
		each := p.rate(flag)
		total += p.step(name, times*each/1e6, "core-seconds", "%s × %s µs", number(times), number(each))
	}
	if s.TLS {
		work("full handshakes", c.full, fullHandshake)
		work("resumed handshakes", c.resumed, resumedHandshake)
	}
	work("refusals", c.refusals, refusal)
	work("orders", c.orders, order)
	busy := p.step("cores in use", total/s.Seconds, "cores", "%s core-seconds / %s s", number(total), number(s.Seconds))
	p.Needs.Cores = p.step("cores with headroom", busy/s.Busy, "cores", "%s / %s busy", number(busy), number(s.Busy))
	working := int64(max(1, math.Ceil(p.Needs.Cores/float64(s.Cores))))
	p.Needs.Edges = working + int64(s.Spare)
	p.step("edges", float64(p.Needs.Edges), fmt.Sprintf("edges with %d cores", s.Cores), "%s / %d cores, rounded up, + %d spare", number(p.Needs.Cores), s.Cores, s.Spare)
	return working
}

// memory plans the memory and the open files of each of the edges that work.
func (p *Plan) memory(c counts, working int64) {
	p.heading("Memory of each edge, if the spare ones fail")
	connections, kib := 0.0, 0.0
	if p.Sale.TLS {
		connections = p.step("connections", math.Ceil(c.connections/float64(working)), "", "%s / %d edges", number(c.connections), working)
		kib = p.rate(connectionMemory) + p.rate(kernelMemory)
		p.step("of connections", connections*kib/1024/1024, "GiB", "%s × (%s + %s KiB)", number(connections), number(p.rate(connectionMemory)), number(p.rate(kernelMemory)))
	}
	base := p.rate(edgeMemory)
	p.Needs.EdgeMemory = p.step("together", connections*kib/1024/1024+base/1024, "GiB", "%s GiB + %s MiB", number(connections*kib/1024/1024), number(base))
	p.Needs.Files = int64(connections) + spareFiles
	p.step("open files", float64(p.Needs.Files), "(ulimit -n)", "%s + %s", number(connections), number(spareFiles))
}

// spareFiles are for what an edge has open beside the connections of buyers.
const spareFiles = 4096

// redis plans the cores and the bandwidth of Redis.
func (p *Plan) redis(c counts) {
	s := &p.Sale
	p.heading("Redis")
	pace := p.step("orders a second", c.orders/s.Seconds, "/s", "%s / %s s", number(c.orders), number(s.Seconds))
	p.Needs.RedisCores = p.step("cores with headroom", pace/p.rate(redisOrders)/s.Busy, "cores", "%s / %s a core / %s busy", number(pace), number(p.rate(redisOrders)), number(s.Busy))
	p.Needs.Shards = int64(p.step("shards, a core each", max(1, math.Ceil(p.Needs.RedisCores)), "", "%s cores, rounded up", number(p.Needs.RedisCores)))
	p.Needs.RedisBandwidth = p.step("bandwidth", pace*p.rate(redisBytes)*8/1e6, "Mbit/s", "%s × %s bytes × 8 bits", number(pace), number(p.rate(redisBytes)))
}

// network plans the bandwidth between buyers and edges.
func (p *Plan) network(c counts) {
	s := &p.Sale
	p.heading("Bandwidth between buyers and edges")
	direction := func(name, each, handshake string) float64 {
		if !s.TLS {
			return p.step(name, c.attempts*p.rate(each)*8/s.Seconds/1e6, "Mbit/s", "%s × %s bytes × 8 bits / %s s", number(c.attempts), number(p.rate(each)), number(s.Seconds))
		}
		bytes := c.attempts*p.rate(each) + c.opened()*p.rate(handshake)
		return p.step(name, bytes*8/s.Seconds/1e6, "Mbit/s", "(%s × %s + %s × %s bytes) × 8 bits / %s s",
			number(c.attempts), number(p.rate(each)), number(c.opened()), number(p.rate(handshake)), number(s.Seconds))
	}
	p.Needs.In = direction("in", requestBytes, handshakeIn)
	p.Needs.Out = direction("out", answerBytes, handshakeOut)
}
