package caddymodule_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/sitetest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// patient is a site of a Caddyfile for the doctor to look at.
type patient struct {
	*site
	server *redistest.Server
	well   bool // nothing is wrong with its Redis
}

const (
	guardedGate = "stockgate_guard\n@order {\nmethod POST\npath /order\n}\nstockgate @order main {\nbuyer {http.vars.user}\nline {json.sku}\nin_doubt probe http://127.0.0.1:1/orders/{id}\n}\nrespond 201\n"
	wellRedis   = "appendonly yes\nappendfsync always\nmaxmemory 200mb"
)

// admit starts a Caddy with these global options of stockgate, servers and directives
// of its site, on a Redis that is configured so. A sale is open.
func admit(t *testing.T, redis, options, servers, directives string) *patient {
	t.Helper()
	server := redistest.Start(t, redistest.Config(strings.Split(redis, "\n")...))
	p := &patient{openSite(t, nil), server, redis == wellRedis}
	p.change(options, servers, directives)
	return p
}

// change loads another configuration.
func (p *patient) change(options, servers, directives string) {
	p.t.Helper()
	p.Loads++
	file := p.File("Caddyfile", fmt.Sprintf("{\nadmin %s\npersist_config off\nauto_https off\nstorage file_system %s\nlog {\noutput file %s\n}\n%s\nstockgate {\nredis %s {\ntimeout 20s\n}\n%s\n}\n}\nhttp:// {\nbind unix/%s\n%s}\n",
		p.AdminAddress(), p.Path("storage"), p.Path("log"), servers, p.server.Addr(), options, p.Socket("http"), directives))
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": file})
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	if p.well {
		p.says("this edge may sell")
	}
}

// says waits until the doctor finds that.
func (p *patient) says(text string) {
	p.t.Helper()
	p.Eventually(text, func() (string, bool) {
		a := p.Admin("GET", "/stockgate/doctor", "").Body
		return a, strings.Contains(a, text)
	})
}

// opinion is the output of the doctor.
type opinion struct {
	sitetest.Ran
	t *testing.T
}

func (p *patient) doctor(args ...string) opinion {
	p.t.Helper()
	return opinion{sitetest.Run(p.t, "", append([]string{"doctor", "--config", p.Path("Caddyfile")}, args...)...), p.t}
}

// finds fails unless these are all findings that are not ok, each as "level check part of the
// text".
func (o opinion) finds(want ...string) {
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

// sale opens a sale.
func (p *patient) sale() sitetest.Shopper {
	p.t.Helper()
	p.OpenSale()
	return sitetest.NewShopper(p.t, p.server)
}

// set changes a field of a key in Redis directly.
func (p *patient) set(key, field string, value any) {
	p.t.Helper()
	if err := p.server.Client().HSet(p.t.Context(), key, field, value).Err(); err != nil {
		p.t.Fatal(err)
	}
}

// stepped is the finding about a clock that has stepped back.
const stepped = "warning clock redis's clock has stepped back"

const metaOf = "stockgate:{double11.0}:meta"

// later advances the sale's clock, as if Redis's clock had stepped back by as much.
func (p *patient) later(by time.Duration) {
	p.t.Helper()
	p.set(metaOf, "clock", time.Now().Add(by).UnixMilli())
}

// settled waits until the ledger has all movements.
func (p *patient) settled(s sitetest.Shopper) {
	p.t.Helper()
	p.Eventually("all in the ledger", func() (string, bool) {
		h, err := s.Journal().Head(p.t.Context(), "double11")
		return fmt.Sprint(h, err), err == nil && h.Behind() == 0
	})
}

// Without faults every check is ok, and named.
func TestDoctorFindsNothing(t *testing.T) {
	p := admit(t, wellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", guardedGate)
	p.settled(p.sale())
	o := p.doctor()
	o.finds()
	for _, check := range []string{"config", "caddy", "edge", "backlog", "clock", "version", "policy", "memory", "persistence", "replicas", "signing", "edges", "ledger", "schema", "sale", "journal", "guard", "probe"} {
		if !strings.Contains(o.Out, "ok       "+check+" ") {
			t.Errorf("it says nothing of %s:\n%s", check, o.Out)
		}
	}
	if !strings.HasSuffix(o.Out, "\nno errors, 0 warnings\n") {
		t.Error(o.Out)
	}
	var d struct {
		Findings         []struct{ Level, Check, Text string }
		Errors, Warnings int
	}
	if o := p.doctor("--json"); json.Unmarshal([]byte(o.Out), &d) != nil || len(d.Findings) < 18 || d.Findings[0].Check != "config" || d.Errors != 0 || o.Status != 0 {
		t.Errorf("%+v", o)
	}
	if a := p.Admin("GET", "/stockgate/doctor?older=soon", ""); a.Status != 400 {
		t.Errorf("%+v", a)
	}
	if o := p.doctor("--older", "x"); o.Status != 2 || !strings.Contains(o.Errors, "older must be a length of time such as 10m") {
		t.Errorf("%+v", o)
	}
}

func TestDoctorFindsAMisconfiguredRedis(t *testing.T) {
	p := admit(t, "maxmemory-policy allkeys-lru\nappendonly no", "ledger sqlite "+t.TempDir()+"/ledger.db", "", guardedGate)
	p.doctor().finds("error edge this edge does not sell", "error policy (maxmemory-policy allkeys-lru), so nothing is sold", "error persistence redis writes no append-only file",
		"warning memory redis has no maxmemory", "error signing no edge has registered its signing key")
	c := p.server.Client()
	for name, value := range map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec", "maxmemory": "200mb"} {
		if err := c.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	p.says("this edge may sell")
	p.doctor().finds("warning persistence (appendfsync everysec)")
	p.well = true
	p.change("ledger sqlite "+t.TempDir()+"/ledger.db\nrate_redis 127.0.0.1:1", "", guardedGate)
	p.doctor().finds("warning persistence (appendfsync everysec)", "error rate_redis gates with a shared rate answer 503: redis does not answer")
}

// A Redis that is down is a finding, quickly; what is in it is not examined.
func TestDoctorFindsRedisDown(t *testing.T) {
	p := admit(t, wellRedis, "", "", guardedGate)
	p.server.Stop()
	heard := silence(t)
	p.says("this edge does not sell")
	o := p.doctor()
	o.finds("error edge redis does not answer", "error redis redis does not answer")
	if !strings.Contains(o.Out, "stockgate_guard before it") {
		t.Errorf("the gates are looked at all the same: %s", o.Out)
	}
	p.server.Restart()
	heard()
	p.says("this edge may sell")
	p.doctor().finds()
}

// The replicas are examined as they are.
func TestDoctorFindsWhatAFailoverLoses(t *testing.T) {
	p := admit(t, wellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", guardedGate)
	p.doctor().finds()
	first, second := stocktest.Replica(t, p.server), stocktest.Replica(t, p.server)
	p.says("the replicas (2) of this redis")
	const few, split = "warning replicas the edges do not wait for the replicas (2) of this redis", "warning min_replicas takes writes when it is cut off from its replicas"
	p.doctor().finds(few, split)
	if err := second.Client().ConfigSet(t.Context(), "replica-priority", "10").Err(); err != nil {
		t.Fatal(err)
	}
	p.doctor().finds(few, split, "warning promotion have unequal replica-priority (")
	if err := p.server.Client().ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := first.Client().ConfigSet(t.Context(), "replica-priority", "10").Err(); err != nil {
		t.Fatal(err)
	}
	o := p.doctor()
	o.finds(few)
	for _, check := range []string{"promotion", "min_replicas", "wait", "repl_timeout", "fork", "latency"} {
		if !strings.Contains(o.Out, "ok       "+check+" ") {
			t.Errorf("it says nothing of %s:\n%s", check, o.Out)
		}
	}
}

func TestDoctorFindsALateLedger(t *testing.T) {
	db := pgtest.Start(t)
	p := admit(t, wellRedis, `ledger postgres "`+db.Database()+`"`, "", guardedGate)
	s := p.sale()
	p.settled(s)
	p.doctor().finds()
	db.Stop()
	s.Hold("r1", "plain", 1, time.Hour)
	p.later(20 * time.Second)
	p.doctor().finds(stepped, "error ledger the ledger does not answer, or cannot be used: ", "error journal the ledger does not have 1 movements of double11, the oldest for ")
	db.Restart()
	p.settled(s)
	p.doctor().finds(stepped)

	// another life of Redis, and one that has lost its last writes
	p.set(metaOf, "epoch", 1)
	p.doctor().finds(stepped, "error journal redis has lost sale double11 since the ledger followed it")
}

func TestDoctorFindsLostMovements(t *testing.T) {
	p := admit(t, wellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", guardedGate)
	p.settled(p.sale())
	p.set(metaOf, "seq", 1)
	p.says("redis has lost movements") // not while the edge fences the sale
	p.doctor().finds("error journal and redis only up to 1: redis has lost movements")
}

// A rebuild that broke off is a finding, with the command that continues it.
func TestDoctorFindsABrokenRebuild(t *testing.T) {
	p := admit(t, wellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", guardedGate)
	p.settled(p.sale())
	p.set(metaOf, "merging", 1)
	p.doctor().finds("error sale cannot be opened, and some outcomes wait; if no rebuild is running, run 'caddy stockgate rebuild double11 --from ledger' again")
	p.set(metaOf, "restoring", 1)
	if err := p.server.Client().HDel(t.Context(), metaOf, "merging", "epoch", "seq").Err(); err != nil {
		t.Fatal(err)
	}
	p.doctor().finds("error sale nothing is sold, and outcomes wait; if no rebuild is running, run 'caddy stockgate rebuild double11 --from ledger'")
}

func TestDoctorFindsWhatIsWrongWithSales(t *testing.T) {
	p := admit(t, wellRedis, "", "", guardedGate)
	s := p.sale()
	p.doctor().finds("warning ledger double11 is open and no ledger is kept")
	s.Hold("lost", "plain", 2, time.Hour)
	s.Must(s.Doubt(t.Context(), "double11", "lost", "timeout"))
	p.doctor().finds("warning ledger")
	p.later(11 * time.Minute)
	p.doctor().finds(stepped, "warning ledger", "warning in_doubt , although a probe asks the shop: 'caddy stockgate holds double11'")
	p.doctor("--older", "1h").finds(stepped, "warning ledger")

	p.set("stockgate:{double11.0}:cells", "few", "3 2 0 0 0")
	p.doctor().finds(stepped, "warning ledger", "warning in_doubt", "error sale and 'caddy stockgate reconcile double11' says what is wrong")
	p.set("stockgate:{double11.0}:cells", "few", "3 3 0 0 0")

	c := p.server.Client()
	const deadlines = "stockgate:{double11.0}:deadlines"
	if err := c.Set(t.Context(), deadlines, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.doctor().finds("error sale another client has written to the keys of sale double11: " + deadlines + " is no zset. Find that client, delete these keys with 'redis-cli DEL', then run 'caddy stockgate reconcile double11 --repair'")
	if err := c.Del(t.Context(), deadlines).Err(); err != nil { // nothing was held
		t.Fatal(err)
	}

	s.HoldAs(record.ModeBackend, "gone", "few", 3, time.Hour)
	s.Must(s.Release(t.Context(), "double11", "gone", reservation.SourceAnswer, "status_422"))
	s.Hold("other", "few", 3, time.Hour)
	if state, err := s.Confirm(t.Context(), "double11", "gone", reservation.SourceAnswer, "status_201"); state != record.Unbacked {
		t.Fatalf("%s %v", state, err)
	}
	p.doctor().finds(stepped, "warning ledger", "warning in_doubt", "warning unbacked 1 orders of double11 are taken by the shop or paid for without stock")

	do[any](p.site, "PUT", "/stockgate/sales/over", moreSales["over"])
	do[any](p.site, "POST", "/stockgate/sales/over/open", "")
	p.doctor().finds(stepped, "warning ledger double11", "warning ledger over", "warning in_doubt", "warning unbacked", "warning sale over has ended at ")
	p.set("stockgate:{over.0}:meta", "schema", 99)
	p.doctor().finds(stepped, "warning ledger double11", "warning ledger over", "warning in_doubt", "warning unbacked", "warning sale", "error schema a newer stockgate has written the keys of over")
}

// The doctor reports a lead of the sale's clock, and the command that it names ends the lead.
func TestDoctorFindsAStep(t *testing.T) {
	p := admit(t, wellRedis, "", "", guardedGate)
	s := p.sale()
	s.HoldAs(record.ModeBackend, "r1", "plain", 2, time.Hour)
	p.later(2 * time.Hour)
	p.doctor().finds("warning ledger", stepped+" by ")
	if r := sitetest.Run(t, "", "sale", "align", "double11", "--config", p.Path("Caddyfile")); r.Status != 0 || !strings.Contains(r.Out, "1 holds keep the time") {
		t.Errorf("%d: %s%s", r.Status, r.Out, r.Errors)
	}
	p.doctor().finds("warning ledger")
	if r := sitetest.Run(t, "", "sale", "align", "double11", "--config", p.Path("Caddyfile")); r.Status != 0 || !strings.Contains(r.Out, "nothing was changed") {
		t.Errorf("%d: %s%s", r.Status, r.Out, r.Errors)
	}
}

func TestDoctorFindsAnotherKey(t *testing.T) {
	p := admit(t, wellRedis, "", "", guardedGate)
	p.set("stockgate:secret", "signing", "not-ours")
	p.says("this edge does not sell")
	p.doctor().finds("error edge key not-ours is registered", "error signing the edges sign with key not-ours, which this one does not have")
}

func TestDoctorFindsWhatIsWrongWithGates(t *testing.T) {
	gate := "@order {\nmethod POST\npath /order\n}\nstockgate @order {\nbuyer {client_ip}\nline {json.sku}\n%s}\nrespond 201\n"
	wrapper := "servers {\nlistener_wrappers {\nstockgate\n}\n}"
	p := admit(t, wellRedis, "", "", fmt.Sprintf(gate, ""))
	o := p.doctor()
	o.finds("warning config the site has no stockgate_guard", "warning guard the gate without a name has no stockgate_guard before it")
	if !strings.Contains(o.Out, "keeps holds in doubt until an operator or the shop resolves them") {
		t.Error(o.Out)
	}
	p.change("", "", "@static path /static/*\nstockgate_guard\nhandle @static {\nrespond 200\n}\nhandle {\n"+fmt.Sprintf(gate, "outcome backend\n")+"}\n")
	if o = p.doctor(); !strings.Contains(o.Out, "leaves it to the shop to confirm or release") {
		t.Error(o.Out)
	}
	o.finds()
	p.change("", wrapper, guardedGate)
	p.doctor().finds("warning fast_refusals has the listener wrapper stockgate, and none of its gates has fast_refusals")
	p.change("", wrapper, "stockgate_guard\n"+fmt.Sprintf(gate, "fast_refusals\n"))
	p.doctor().finds()
	p.change("", wrapper, "stockgate_guard\nvars client_ip 192.0.2.1\n"+fmt.Sprintf(gate, "fast_refusals\n"))
	p.doctor().finds("warning fast_refusals asks for fast refusals and has none because what stands before it can change the answer")
	p.change("", "servers {\nexpected_underscore_headers X_A\nlistener_wrappers {\nstockgate\n}\n}", "stockgate_guard\n"+fmt.Sprintf(gate, "fast_refusals\n"))
	p.doctor().finds("warning fast_refusals has none on this server, because it expects header names with underscores or dots")
	for rate, want := range map[string][]string{
		"rate all 9 1s shared\n":         nil,
		"rate {client_ip} 9 1s shared\n": {"warning config a shared rate has keys that clients choose", "warning rate_redis the gate without a name has a shared rate with keys that clients choose"},
	} {
		p.change("", "", "stockgate_guard\n"+fmt.Sprintf(gate, rate))
		p.doctor().finds(want...)
		p.change("rate_redis "+p.server.Addr(), "", "stockgate_guard\n"+fmt.Sprintf(gate, rate))
		p.doctor().finds()
	}
	p.change("", "", "respond 200\n")
	p.doctor().finds("warning gate the configuration has no gate")

	p.File("broken", "a.example {\nstockgate {\nnonsense\n}\n}\n")
	if r := p.Run("doctor", "--config", p.Path("broken"), "-a", "caddyfile"); r.Status != 1 || !strings.Contains(r.Out, "cannot be adapted: ") {
		t.Errorf("%+v", r)
	}
	p.File("warned", "a.example {\nstockgate_guard\nstockgate {\nbuyer {http.vars.user}\nline a\n}\nhandle_path /api/* {\nstockgate_api {\nkey {env.KEY}\n}\n}\nhandle /hook {\nstockgate_resolve {\nverify stripe whsec_1\nref {json.a}\n@paid {\njson type paid\n}\nconfirm @paid\n}\n}\n}\n")
	out := p.Run("doctor", "--config", p.Path("warned"), "-a", "caddyfile").Out
	for _, warning := range []string{"no matcher restricts the method", "the site has a gate too, so buyers can reach the shop's API", "verify has the secret itself"} {
		if !strings.Contains(out, warning) {
			t.Errorf("it does not warn that %s: %s", warning, out)
		}
	}
	if r := p.Run("doctor", "--config", p.File("c.json", "{")); r.Status != 1 || !strings.Contains(r.Out, "c.json is no JSON") {
		t.Errorf("%+v", r)
	}
	if r := p.Run("doctor", "--config", p.Path("nothing")); r.Status != 1 || !strings.Contains(r.Out, "error    config         open ") {
		t.Errorf("%+v", r)
	}
	if r := p.Run("doctor", "--config", p.Path("Caddyfile"), "-a", "toml"); r.Status != 1 || !strings.Contains(r.Out, `there is no config adapter "toml" in this Caddy`) {
		t.Errorf("%+v", r)
	}
	if r := sitetest.Run(t, "", "doctor", "--address", "unix/"+p.Path("nothing.sock")); r.Status != 3 || r.Out != "" || !strings.Contains(r.Errors, "is it running?") {
		t.Errorf("%+v", r)
	}
}

// The receiver of an outbox is behind as in health and metrics.
func TestDoctorFindsTheOutboxBehind(t *testing.T) {
	p := admit(t, wellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db\noutbox http://127.0.0.1:1/ {\nsecret whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\nsales another\n}", "", guardedGate)
	p.says("the outbox's receiver is not behind")
	p.doctor().finds()
	m := meter.JournalService{} // the sale is not sent, so nothing else measures it
	t.Cleanup(func() { m.NoOutbox("double11") })
	m.OutboxLag("double11", 5, 2*time.Minute)
	p.doctor().finds("error outbox the outbox's receiver is behind with double11: another edge sends it")
	m.OutboxTrouble("double11", errors.New("the receiver answers 500"))
	p.doctor().finds("error outbox the outbox's receiver is behind with double11: the receiver answers 500")
	m.OutboxTrouble("double11", nil)
	m.OutboxLag("double11", 0, 0)
	p.doctor().finds()
}

// A limit per an identity that a gate does not read refuses every attempt there, or counts none.
func TestDoctorFindsIdentitiesThatNoGateReads(t *testing.T) {
	at := strings.LastIndex(guardedGate, "respond")
	p := admit(t, wellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", guardedGate[:at]+"@elsewhere {\nmethod POST\npath /other\n}\nstockgate @elsewhere fixed {\nsale another\nbuyer {http.vars.user}\nline {json.sku}\nin_doubt probe http://127.0.0.1:1/orders/{id}\n}\n"+guardedGate[at:])
	file := func(more string) string {
		return "id: limited\nstarts_at: 2080-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: plain, stock: 5}\n" + more
	}
	const limits = "limits:\n  - {per: [buyer, phone], every: sale, max: 1, count: units}\n  - {per: phone, every: order, max: 2, count: units}\n  - {per: device, every: sale, max: 1, count: units, shadow: true}\n"
	do[any](p.site, "PUT", "/stockgate/sales/limited", file(limits))
	p.says("does not read that identity")
	p.doctor().finds(`warning limits limited has a limit per phone, and the gate "main" does not read that identity: every attempt that the limit counts is refused there as malformed`)
	do[any](p.site, "PUT", "/stockgate/sales/limited", file("missing: skip\n"+limits))
	p.says("are not counted by it")
	p.doctor().finds(`warning limits limited has a limit per phone, and the gate "main" does not read that identity: attempts there are not counted by it`)
}

// A limit whose identity a client chooses protects no buyer, and can be used against them.
func TestDoctorFindsLimitsOfChosenIdentities(t *testing.T) {
	with := func(identities string) string { return strings.Replace(guardedGate, "line", identities+"\nline", 1) }
	p := admit(t, wellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", with("identity phone {json.phone}"))
	const limits = "limits:\n  - {per: buyer, every: sale, max: 1, count: units}\n  - {per: phone, every: sale, max: 1, count: units}\n  - {per: phone, every: order, max: 2, count: units}\n  - {per: [phone, buyer], every: day, max: 1, count: orders}\n"
	do[any](p.site, "PUT", "/stockgate/sales/limited", "id: limited\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: plain, stock: 5}\n"+limits)
	p.doctor().finds()
	do[any](p.site, "POST", "/stockgate/sales/limited/open", "")
	const phone = `warning limits limited has a limit per phone, and the gate "main" takes that from what a client sends`
	p.says("limit per phone")
	p.doctor().finds(phone)
	p.change("ledger sqlite "+t.TempDir()+"/ledger2.db", "", strings.Replace(with("identity phone {json.phone}"), "{http.vars.user}", "{json.buyer}", 1))
	p.says("limit per buyer, phone")
	p.doctor().finds("warning config the buyer is taken from {json.buyer}", "warning config no identity of this gate is verified (phone)", phone,
		"warning limits limited has a limit per buyer,", "warning limits limited has a limit per buyer, phone")
}
