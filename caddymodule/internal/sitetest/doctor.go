package sitetest

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Patient is a site of a Caddyfile for the doctor to look at.
type Patient struct {
	*Site
	Server *redistest.Server
	Well   bool // nothing is wrong with its Redis
}

// GuardedGate has nothing that the doctor warns of.
const GuardedGate = "stockgate_guard\n@order {\nmethod POST\npath /order\n}\nstockgate @order main {\nbuyer {http.vars.user}\nline {json.sku}\nin_doubt probe http://127.0.0.1:1/orders/{id}\n}\nrespond 201\n"

// WellRedis is the configuration of a Redis with which nothing is wrong.
const WellRedis = "appendonly yes\nappendfsync always\nmaxmemory 200mb"

// Admit starts a Caddy with these global options of stockgate, servers and directives
// of its site, on a Redis that is configured so. A sale is open.
func Admit(t *testing.T, redis, options, servers, directives string) *Patient {
	t.Helper()
	server := redistest.Start(t, redistest.Config(strings.Split(redis, "\n")...))
	p := &Patient{Open(t, nil), server, redis == WellRedis}
	p.Redis = server.Addr()
	p.Change(options, servers, directives)
	return p
}

// Change loads another configuration.
func (p *Patient) Change(options, servers, directives string) {
	p.T.Helper()
	p.Loads++
	file := p.File("Caddyfile", p.caddyfile("off", options, servers, "http:// {\nbind unix/"+p.Socket("http")+"\n"+directives+"}\n"))
	text, err := os.ReadFile(file)
	if err != nil {
		p.T.Fatal(err)
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": file})
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		p.T.Fatal(err)
	}
	if p.Well {
		p.Says("this edge may sell")
	}
}

// Says waits until the doctor finds that.
func (p *Patient) Says(text string) {
	p.T.Helper()
	p.Eventually(text, func() (string, bool) {
		a := p.Admin("GET", "/stockgate/doctor", "").Body
		return a, strings.Contains(a, text)
	})
}

// Opinion is the output of the doctor.
type Opinion struct {
	Ran
	t *testing.T
}

// Doctor asks the doctor.
func (p *Patient) Doctor(args ...string) Opinion {
	p.T.Helper()
	return Opinion{Run(p.T, "", append([]string{"doctor", "--config", p.Path("Caddyfile")}, args...)...), p.T}
}

// Finds fails unless these are all findings that are not ok, each as "level check part of the
// text".
func (o Opinion) Finds(want ...string) {
	o.t.Helper()
	left := append([]string(nil), want...)
	errors := 0
	for line := range strings.Lines(o.Out) {
		words := strings.Fields(line)
		if words[0] == "no" { // no errors, …
			continue
		}
		if words[0] == "error" {
			errors++
		}
		known := words[0] == "ok"
		for i, w := range left {
			level, rest, _ := strings.Cut(w, " ")
			check, text, _ := strings.Cut(rest, " ")
			if words[0] == level && words[1] == check && strings.Contains(line, text) {
				left, known = append(left[:i:i], left[i+1:]...), true
				break
			}
		}
		if !known {
			o.t.Errorf("it also finds: %s", line)
		}
	}
	status, says := 0, ""
	if errors > 0 {
		status, says = 1, "caddy stockgate doctor: "+strconv.Itoa(errors)+" error"
	}
	if len(left) > 0 || o.Status != status || !strings.Contains(o.Errors, says) {
		o.t.Errorf("it does not find %q, exit status %d:\n%s%s", left, o.Status, o.Out, o.Errors)
	}
}

// MetaOf is the key of the sale's meta data.
const MetaOf = "stockgate:{double11.0}:meta"
