package doctor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

const ()

// sale opens a sale.
func sale(p *sitetest.Patient) sitetest.Shopper {
	p.T.Helper()
	p.OpenSale()
	return sitetest.NewShopper(p.T, p.Server)
}

// set changes a field of a key in Redis directly.
func set(p *sitetest.Patient, key, field string, value any) {
	p.T.Helper()
	if err := p.Server.Client().HSet(p.T.Context(), key, field, value).Err(); err != nil {
		p.T.Fatal(err)
	}
}

// stepped is the finding about a clock that has stepped back.
const stepped = "warning clock redis's clock has stepped back"

// later advances the sale's clock, as if Redis's clock had stepped back by as much.
func later(p *sitetest.Patient, by time.Duration) {
	p.T.Helper()
	set(p, sitetest.MetaOf, "clock", time.Now().Add(by).UnixMilli())
}

// settled waits until the ledger has all movements.
func settled(p *sitetest.Patient, s sitetest.Shopper) {
	p.T.Helper()
	p.Eventually("all in the ledger", func() (string, bool) {
		h, err := s.Journal().Head(p.T.Context(), "double11")
		return fmt.Sprint(h, err), err == nil && h.Behind() == 0
	})
}

// Without faults every check is ok, and named.
func TestDoctorFindsNothing(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", sitetest.GuardedGate)
	settled(p, sale(p))
	o := p.Doctor()
	o.Finds()
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
	if o := p.Doctor("--json"); json.Unmarshal([]byte(o.Out), &d) != nil || len(d.Findings) < 18 || d.Findings[0].Check != "config" || d.Errors != 0 || o.Status != 0 {
		t.Errorf("%+v", o)
	}
	if a := p.Admin("GET", "/stockgate/doctor?older=soon", ""); a.Status != 400 {
		t.Errorf("%+v", a)
	}
	if o := p.Doctor("--older", "x"); o.Status != 2 || !strings.Contains(o.Errors, "older must be a length of time such as 10m") {
		t.Errorf("%+v", o)
	}
}

func TestDoctorFindsAMisconfiguredRedis(t *testing.T) {
	p := sitetest.Admit(t, "maxmemory-policy allkeys-lru\nappendonly no", "ledger sqlite "+t.TempDir()+"/ledger.db", "", sitetest.GuardedGate)
	p.Doctor().Finds("error edge this edge does not sell", "error policy (maxmemory-policy allkeys-lru), so nothing is sold", "error persistence redis writes no append-only file",
		"warning memory redis has no maxmemory", "error signing no edge has registered its signing key")
	c := p.Server.Client()
	for name, value := range map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec", "maxmemory": "200mb"} {
		if err := c.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	p.Says("this edge may sell")
	p.Doctor().Finds("warning persistence (appendfsync everysec)")
	p.Well = true
	p.Change("ledger sqlite "+t.TempDir()+"/ledger.db\nrate_redis 127.0.0.1:1", "", sitetest.GuardedGate)
	p.Doctor().Finds("warning persistence (appendfsync everysec)", "error rate_redis gates with a shared rate answer 503: redis does not answer")
	p.Eventually("health says so", func() (string, bool) {
		a := p.Admin("GET", "/stockgate/health", "")
		return a.Body, a.Status == 200 && strings.Contains(a.Body, "gates with a shared rate answer 503, because of rate_redis: redis does not answer")
	})
	p.Change("rate_redis "+tlsPort(t), "", sitetest.GuardedGate)
	p.Doctor().Finds("warning persistence (appendfsync everysec)", "error rate_redis its port has TLS: write `tls` in `rate_redis`")
}

// tlsPort returns the address of a port that speaks TLS alone.
func tlsPort(t *testing.T) string {
	s := httptest.NewTLSServer(nil)
	t.Cleanup(s.Close)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	return s.Listener.Addr().String()
}

// A port that has TLS, which the configuration does not say, is a finding of its own.
func TestDoctorFindsTLS(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	p.Redis, p.Well = tlsPort(t), false
	p.Change("", "", sitetest.GuardedGate)
	p.Doctor().Finds("error edge redis does not answer", "error redis its port has TLS: write `tls` in `redis`")
}

// A Redis that is down is a finding, quickly; what is in it is not examined.
func TestDoctorFindsRedisDown(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	p.Server.Stop()
	heard := sitetest.Silence(t)
	p.Says("this edge does not sell")
	o := p.Doctor()
	o.Finds("error edge redis does not answer", "error redis redis does not answer")
	if !strings.Contains(o.Out, "stockgate_guard before it") {
		t.Errorf("the gates are looked at all the same: %s", o.Out)
	}
	p.Server.Restart()
	heard()
	p.Says("this edge may sell")
	p.Doctor().Finds()
}

// The replicas are examined as they are.
func TestDoctorFindsWhatAFailoverLoses(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", sitetest.GuardedGate)
	p.Doctor().Finds()
	first, second := stocktest.Replica(t, p.Server), stocktest.Replica(t, p.Server)
	p.Says("the replicas (2) of this redis")
	const few, split = "warning replicas the edges do not wait for the replicas (2) of this redis", "warning min_replicas takes writes when it is cut off from its replicas"
	p.Doctor().Finds(few, split)
	if err := second.Client().ConfigSet(t.Context(), "replica-priority", "10").Err(); err != nil {
		t.Fatal(err)
	}
	p.Doctor().Finds(few, split, "warning promotion have unequal replica-priority (")
	if err := p.Server.Client().ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := first.Client().ConfigSet(t.Context(), "replica-priority", "10").Err(); err != nil {
		t.Fatal(err)
	}
	o := p.Doctor()
	o.Finds(few)
	for _, check := range []string{"promotion", "min_replicas", "wait", "repl_timeout", "fork", "latency"} {
		if !strings.Contains(o.Out, "ok       "+check+" ") {
			t.Errorf("it says nothing of %s:\n%s", check, o.Out)
		}
	}
}

func TestDoctorFindsALateLedger(t *testing.T) {
	db := pgtest.Start(t)
	p := sitetest.Admit(t, sitetest.WellRedis, `ledger postgres "`+db.Database()+`"`, "", sitetest.GuardedGate)
	s := sale(p)
	settled(p, s)
	p.Doctor().Finds()
	db.Stop()
	s.Hold("r1", "plain", 1, time.Hour)
	later(p, 20*time.Second)
	p.Doctor().Finds(stepped, "error ledger the ledger does not answer, or cannot be used: ", "error journal the ledger does not have 1 movements of double11, the oldest for ")
	db.Restart()
	settled(p, s)
	p.Doctor().Finds(stepped)

	// another life of Redis, and one that has lost its last writes
	set(p, sitetest.MetaOf, "epoch", 1)
	p.Doctor().Finds(stepped, "error journal redis has lost sale double11 since the ledger followed it")
}

func TestDoctorFindsLostMovements(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", sitetest.GuardedGate)
	settled(p, sale(p))
	set(p, sitetest.MetaOf, "seq", 1)
	p.Says("redis has lost movements") // not while the edge fences the sale
	p.Doctor().Finds("error journal and redis only up to 1: redis has lost movements")
}

// A rebuild that broke off is a finding, with the command that continues it.
func TestDoctorFindsABrokenRebuild(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", sitetest.GuardedGate)
	settled(p, sale(p))
	set(p, sitetest.MetaOf, "merging", 1)
	p.Doctor().Finds("error sale cannot be opened, and some outcomes wait; if no rebuild is running, run 'caddy stockgate rebuild double11 --from ledger' again")
	set(p, sitetest.MetaOf, "restoring", 1)
	if err := p.Server.Client().HDel(t.Context(), sitetest.MetaOf, "merging", "epoch", "seq").Err(); err != nil {
		t.Fatal(err)
	}
	p.Doctor().Finds("error sale nothing is sold, and outcomes wait; if no rebuild is running, run 'caddy stockgate rebuild double11 --from ledger'")
}

func TestDoctorFindsWhatIsWrongWithSales(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	s := sale(p)
	p.Doctor().Finds("warning ledger double11 is open and no ledger is kept")
	s.Hold("lost", "plain", 2, time.Hour)
	s.Must(s.Doubt(t.Context(), "double11", "lost", "timeout"))
	p.Doctor().Finds("warning ledger")
	later(p, 11*time.Minute)
	p.Doctor().Finds(stepped, "warning ledger", "warning in_doubt , although a probe asks the shop: 'caddy stockgate holds double11'")
	p.Doctor("--older", "1h").Finds(stepped, "warning ledger")

	set(p, "stockgate:{double11.0}:cells", "few", "3 2 0 0 0")
	p.Doctor().Finds(stepped, "warning ledger", "warning in_doubt", "error sale and 'caddy stockgate reconcile double11' says what is wrong")
	set(p, "stockgate:{double11.0}:cells", "few", "3 3 0 0 0")

	c := p.Server.Client()
	const deadlines = "stockgate:{double11.0}:deadlines"
	if err := c.Set(t.Context(), deadlines, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.Doctor().Finds("error sale another client has written to the keys of sale double11: " + deadlines + " is no zset. Find that client, delete these keys with 'redis-cli DEL', then run 'caddy stockgate reconcile double11 --repair'")
	if err := c.Del(t.Context(), deadlines).Err(); err != nil { // nothing was held
		t.Fatal(err)
	}

	s.HoldAs(record.ModeBackend, "gone", "few", 3, time.Hour)
	s.Must(s.Release(t.Context(), "double11", "gone", reservation.SourceAnswer, "status_422"))
	s.Hold("other", "few", 3, time.Hour)
	if state, err := s.Confirm(t.Context(), "double11", "gone", reservation.SourceAnswer, "status_201"); state != record.Unbacked {
		t.Fatalf("%s %v", state, err)
	}
	p.Doctor().Finds(stepped, "warning ledger", "warning in_doubt", "warning unbacked 1 orders of double11 are taken by the shop or paid for without stock")

	sitetest.Do[any](p.Site, "PUT", "/stockgate/sales/over", sitetest.MoreSales["over"])
	sitetest.Do[any](p.Site, "POST", "/stockgate/sales/over/open", "")
	p.Doctor().Finds(stepped, "warning ledger double11", "warning ledger over", "warning in_doubt", "warning unbacked", "warning sale over has ended at ")
	set(p, "stockgate:{over.0}:meta", "schema", 99)
	p.Doctor().Finds(stepped, "warning ledger double11", "warning ledger over", "warning in_doubt", "warning unbacked", "warning sale", "error schema a newer stockgate has written the keys of over")
	// what would give it a newer schema is said before
	set(p, "stockgate:{over.0}:meta", "schema", 3)
	p.Doctor().Finds(stepped, "warning ledger double11", "warning ledger over", "warning in_doubt", "warning unbacked", "warning sale",
		"warning schema the keys of over have schema 3, and the first order of a gate with a queue gives it schema 4: edges of a version that does not know that then stop selling it, and it cannot go back to such a version. Update all edges before")
}

// The doctor reports a lead of the sale's clock, and the command that it names ends the lead.
func TestDoctorFindsAStep(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	s := sale(p)
	s.HoldAs(record.ModeBackend, "r1", "plain", 2, time.Hour)
	later(p, 2*time.Hour)
	p.Doctor().Finds("warning ledger", stepped+" by ")
	if r := sitetest.Run(t, "", "sale", "align", "double11", "--config", p.Path("Caddyfile")); r.Status != 0 || !strings.Contains(r.Out, "1 holds keep the time") {
		t.Errorf("%d: %s%s", r.Status, r.Out, r.Errors)
	}
	p.Doctor().Finds("warning ledger")
	if r := sitetest.Run(t, "", "sale", "align", "double11", "--config", p.Path("Caddyfile")); r.Status != 0 || !strings.Contains(r.Out, "nothing was changed") {
		t.Errorf("%d: %s%s", r.Status, r.Out, r.Errors)
	}
}

func TestDoctorFindsAnotherKey(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	set(p, "stockgate:secret", "signing", "not-ours")
	p.Says("this edge does not sell")
	p.Doctor().Finds("error edge key not-ours is registered", "error signing the edges sign with key not-ours, which this one does not have")
}

// A gate may name a sale that there is none of yet.
func TestDoctorFindsSalesThatDoNotExist(t *testing.T) {
	named := strings.Replace(sitetest.GuardedGate, "line", "sale nosuch\nline", 1)
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", named)
	p.Doctor().Finds(`warning sale the gate main names the sale nosuch, which does not exist`)
	sitetest.Do[any](p.Site, "PUT", "/stockgate/sales/nosuch", "id: nosuch\nstarts_at: 2080-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: plain, stock: 5}\n")
	p.Doctor().Finds()
}

func TestDoctorFindsWhatIsWrongWithGates(t *testing.T) {
	gate := "@order {\nmethod POST\npath /order\n}\nstockgate @order {\nbuyer {client_ip}\nline {json.sku}\n%s}\nrespond 201\n"
	wrapper := "servers {\nlistener_wrappers {\nstockgate\n}\n}"
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", fmt.Sprintf(gate, ""))
	o := p.Doctor()
	o.Finds("warning config the site has no stockgate_guard", "warning guard the gate without a name has no stockgate_guard before it")
	if !strings.Contains(o.Out, "keeps holds in doubt until an operator or the shop resolves them") {
		t.Error(o.Out)
	}
	p.Change("", "", "@static path /static/*\nstockgate_guard\nhandle @static {\nrespond 200\n}\nhandle {\n"+fmt.Sprintf(gate, "outcome backend\n")+"}\n")
	if o = p.Doctor(); !strings.Contains(o.Out, "leaves it to the shop to confirm or release") {
		t.Error(o.Out)
	}
	o.Finds("warning outcome this edge has neither stockgate_api nor stockgate_resolve: unless another edge has, no order is ever confirmed")
	p.Change("", "", "stockgate_guard\nhandle_path /api/* {\nstockgate_api {\nkey 0123456789abcdef\n}\n}\n"+fmt.Sprintf(gate, "outcome backend\n"))
	p.Doctor().Finds("warning config the site has a gate too, so buyers can reach the shop's API")
	p.Change("", wrapper, sitetest.GuardedGate)
	p.Doctor().Finds("warning fast_refusals has the listener wrapper stockgate, and none of its gates has fast_refusals")
	p.Change("", wrapper, "stockgate_guard\n"+fmt.Sprintf(gate, "fast_refusals\n"))
	p.Doctor().Finds()
	p.Change("", wrapper, "stockgate_guard\nvars client_ip 192.0.2.1\n"+fmt.Sprintf(gate, "fast_refusals\n"))
	p.Doctor().Finds("warning fast_refusals asks for fast refusals and has none because what stands before it can change the answer")
	p.Change("", "servers {\nexpected_underscore_headers X_A\nlistener_wrappers {\nstockgate\n}\n}", "stockgate_guard\n"+fmt.Sprintf(gate, "fast_refusals\n"))
	p.Doctor().Finds("warning fast_refusals has none on this server, because it expects header names with underscores or dots")
	for rate, want := range map[string][]string{
		"rate all 9 1s shared\n":         nil,
		"rate {client_ip} 9 1s shared\n": {"warning config a shared rate has keys that clients choose"},
	} {
		p.Change("", "", "stockgate_guard\n"+fmt.Sprintf(gate, rate))
		p.Doctor().Finds(want...)
		p.Change("rate_redis "+p.Server.Addr(), "", "stockgate_guard\n"+fmt.Sprintf(gate, rate))
		p.Doctor().Finds()
	}
	p.Change("", "", "stockgate_guard\n@order {\nmethod POST\npath /order\n}\nstockgate @order main {\nbuyer {header.X-User}\nidentity phone {json.phone}\nline {json.sku}\n}\nrespond 201\n")
	p.Doctor().Finds("warning config the buyer is taken from", "warning config no identity of this gate is verified (phone)")
	// without the file, as where the configuration is JSON
	for _, risk := range []string{"buyer          the gate main: the buyer is taken from", "identities     the gate main: no identity of this gate is verified (phone)"} {
		if out := p.Run("doctor").Out; !strings.Contains(out, "warning  "+risk) {
			t.Errorf("the doctor does not say %q:\n%s", risk, out)
		}
		if _, text, _ := strings.Cut(risk, ": "); !strings.Contains(p.Read("log"), `"msg":"`+text) {
			t.Errorf("the log does not say %q", text)
		}
	}
	// a file with one of the two gates that run
	two := "stockgate_guard\n@order {\nmethod POST\npath /order\n}\nstockgate @order main {\nbuyer {header.X-User}\nline {json.sku}\n}\nrespond 201\n"
	p.Change("", "", two+"@other {\nmethod POST\npath /other\n}\nstockgate @other other {\nbuyer {header.X-User}\nline {json.sku}\n}\n")
	p.Doctor().Finds("warning config the buyer is taken from", "warning config the buyer is taken from")
	p.File("one", "a.example {\n"+two+"}\n")
	if out := p.Run("doctor", "--config", p.Path("one"), "-a", "caddyfile").Out; strings.Count(out, "the buyer is taken from") != 2 {
		t.Errorf("two gates have that risk, and one is in the file:\n%s", out)
	}
	p.Change("", "", "respond 200\n")
	p.Doctor().Finds("warning gate the configuration has no gate")

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
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db\noutbox http://127.0.0.1:1/ {\nsecret whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\nsales another\n}", "", sitetest.GuardedGate)
	p.Says("the outbox's receiver is not behind")
	p.Doctor().Finds()
	m := meter.JournalService{} // the sale is not sent, so nothing else measures it
	t.Cleanup(func() { m.NoOutbox("double11") })
	m.OutboxLag("double11", 5, 2*time.Minute)
	p.Doctor().Finds("error outbox the outbox's receiver is behind with double11: another edge sends it")
	m.OutboxTrouble("double11", errors.New("the receiver answers 500"))
	p.Doctor().Finds("error outbox the outbox's receiver is behind with double11: the receiver answers 500")
	m.OutboxTrouble("double11", nil)
	m.OutboxLag("double11", 0, 0)
	p.Doctor().Finds()
}

// A limit per an identity that a gate does not read refuses every attempt there, or counts none.
func TestDoctorFindsIdentitiesThatNoGateReads(t *testing.T) {
	at := strings.LastIndex(sitetest.GuardedGate, "respond")
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", sitetest.GuardedGate[:at]+"@elsewhere {\nmethod POST\npath /other\n}\nstockgate @elsewhere fixed {\nsale another\nbuyer {http.vars.user}\nline {json.sku}\nin_doubt probe http://127.0.0.1:1/orders/{id}\n}\n"+sitetest.GuardedGate[at:])
	file := func(more string) string {
		return "id: limited\nstarts_at: 2080-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: plain, stock: 5}\n" + more
	}
	const another = "warning sale the gate fixed names the sale another, which does not exist"
	const limits = "limits:\n  - {per: [buyer, phone], every: sale, max: 1, count: units}\n  - {per: phone, every: order, max: 2, count: units}\n  - {per: device, every: sale, max: 1, count: units, shadow: true}\n"
	sitetest.Do[any](p.Site, "PUT", "/stockgate/sales/limited", file(limits))
	p.Says("does not read that identity")
	p.Doctor().Finds(`warning limits limited has a limit per phone, and the gate "main" does not read that identity: every attempt that the limit counts is refused there as malformed`, another)
	sitetest.Do[any](p.Site, "PUT", "/stockgate/sales/limited", file("missing: skip\n"+limits))
	p.Says("are not counted by it")
	p.Doctor().Finds(`warning limits limited has a limit per phone, and the gate "main" does not read that identity: attempts there are not counted by it`, another)
}

// A limit whose identity a client chooses protects no buyer, and can be used against them.
func TestDoctorFindsLimitsOfChosenIdentities(t *testing.T) {
	with := func(identities string) string {
		return strings.Replace(sitetest.GuardedGate, "line", identities+"\nline", 1)
	}
	p := sitetest.Admit(t, sitetest.WellRedis, "ledger sqlite "+t.TempDir()+"/ledger.db", "", with("identity phone {json.phone}"))
	const limits = "limits:\n  - {per: buyer, every: sale, max: 1, count: units}\n  - {per: phone, every: sale, max: 1, count: units}\n  - {per: phone, every: order, max: 2, count: units}\n  - {per: [phone, buyer], every: day, max: 1, count: orders}\n"
	sitetest.Do[any](p.Site, "PUT", "/stockgate/sales/limited", "id: limited\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: plain, stock: 5}\n"+limits)
	p.Doctor().Finds()
	sitetest.Do[any](p.Site, "POST", "/stockgate/sales/limited/open", "")
	const phone = `warning limits limited has a limit per phone, and the gate "main" takes that from what a client sends`
	p.Says("limit per phone")
	p.Doctor().Finds(phone)
	p.Change("ledger sqlite "+t.TempDir()+"/ledger2.db", "", strings.Replace(with("identity phone {json.phone}"), "{http.vars.user}", "{json.buyer}", 1))
	p.Says("limit per buyer, phone")
	p.Doctor().Finds("warning config the buyer is taken from {json.buyer}", "warning config no identity of this gate is verified (phone)", phone,
		"warning limits limited has a limit per buyer,", "warning limits limited has a limit per buyer, phone")
}
