package e2e_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	pemfile "encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/spawn"
	"github.com/stockgate/stockgate/token"
)

const apiKey = "an-api-key-of-the-shop-0123456789"

// apiSite is a private site with the shop's API.
func apiSite(addr string) string {
	return fmt.Sprintf("http://%s {\n\tbind 127.0.0.1\n\thandle_path /stockgate/* {\n\t\tstockgate_api {\n\t\t\tkey {env.STOCKGATE_API_KEY}\n\t\t}\n\t}\n}\n", addr)
}

// exampleShop is a program of examples/ that runs behind an edge.
type exampleShop struct {
	counter
	listens string // host:port
	direct  string // its own URL
	api     string // where the API is mounted
	key     token.Key
	secret  ed25519.PrivateKey // of key
	env     []string

	mu     sync.Mutex
	tokens []string // that the edge sent it
}

// startExamples starts an edge with a site for each of these shops. nil is the program that run starts.
func startExamples(t *testing.T, shops ...http.Handler) []*exampleShop {
	t.Helper()
	key, pem, err := token.GenerateEd25519()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	block, _ := pemfile.Decode(pem)
	secret, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	counters, apiAddr := newCounters(t, len(shops)), freeAddr(t)
	all, sites := make([]*exampleShop, len(shops)), make([]site, len(shops))
	for i, shop := range shops {
		x := &exampleShop{counter: counters[i], listens: freeAddr(t), api: "http://" + apiAddr + "/stockgate", key: key, secret: secret.(ed25519.PrivateKey)}
		x.direct = "http://" + x.listens
		target, err := url.Parse(x.direct)
		if err != nil {
			t.Fatal(err)
		}
		if shop == nil {
			shop = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				x.mu.Lock()
				x.tokens = append(x.tokens, r.In.Header.Get(token.Header))
				x.mu.Unlock()
			}}
		}
		_, port, _ := net.SplitHostPort(x.listens)
		x.env = append(os.Environ(), "PORT="+port, "STOCKGATE_JWKS_URL="+x.url+"/.well-known/jwks.json",
			"STOCKGATE_API_URL="+x.api, "STOCKGATE_API_KEY="+apiKey)
		all[i], sites[i] = x, site{shop: serve(t, shop)}
	}
	counters[0].env = []string{"STOCKGATE_API_KEY=" + apiKey}
	sites[0].redis, sites[0].app, sites[0].others = redisAt(redistest.Start(t).Addr()), "token {\n key ed25519 {file."+file+"}\n}", apiSite(apiAddr)
	open(counters, sites)
	return all
}

// run runs the program until the test ends, and waits until it listens.
func (x *exampleShop) run(cmd *exec.Cmd) {
	x.t.Helper()
	cmd.Env = x.env
	runProgram(x.t, cmd, x.listens)
}

// ask asks the shop without the edge.
func (x *exampleShop) ask(buyer string, units int, tokens ...string) (int, string) {
	x.t.Helper()
	r, err := http.NewRequest("POST", x.direct+"/api/order", strings.NewReader(fmt.Sprintf(`{"sku":"7","quantity":%d}`, units)))
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header = http.Header{"X-User-Id": {buyer}, "Content-Type": {"application/json"}, token.Header: tokens}
	return send(x.t, r)
}

// orders are the reservations for which the shop has orders.
func (x *exampleShop) orders() []string {
	x.t.Helper()
	r, err := http.NewRequest("GET", x.direct+"/orders", nil)
	if err != nil {
		x.t.Fatal(err)
	}
	_, body := send(x.t, r)
	var ids []string
	if err := json.Unmarshal([]byte(body), &ids); err != nil {
		x.t.Fatalf("%v in %q", err, body)
	}
	return ids
}

func send(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// The programs of examples/ in every language: they sell what is held, once, confirm
// it through the API, and sell nothing else.
func TestExampleShops(t *testing.T) {
	t.Parallel()
	languages := slices.Sorted(maps.Keys(exampleCommands))
	shops := startExamples(t, make([]http.Handler, len(languages))...)
	for i, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			x := shops[i]
			x.counter = x.of(t)
			x.sell(x.sale, `  - {sku: "7", stock: 20}`)
			x.run(exampleCommands[language](t))
			r := x.buy(one("ann", "7", 1, ""))
			if r.status != http.StatusCreated {
				t.Fatalf("the order: %v %q", r, r.body)
			}
			if kept := x.record(r.reservation); kept.State != "confirmed" || kept.Cause != "api" {
				t.Errorf("the reservation: %+v", kept)
			}
			x.mu.Lock()
			good := x.tokens[0]
			x.mu.Unlock()
			for range 2 { // the same request again has the same answer
				if status, body := x.ask("ann", 1, good); status != http.StatusCreated || !strings.Contains(body, r.reservation) {
					t.Errorf("the same token again: %d %s", status, body)
				}
			}
			for name, c := range x.forgeries(t, good) {
				if status, body := x.ask(c.buyer, c.units, c.tokens...); status != http.StatusForbidden {
					t.Errorf("%s: %d %s", name, status, body)
				}
			}
			// a genuine token of what the edge does not hold
			unknown := x.sign(t, x.claims("019a7d3e-5b1c-7f6e-9d5a-3f0d6f6b2c11", time.Minute), "order-backend")
			if status, body := x.ask("ann", 1, unknown); status != http.StatusConflict {
				t.Errorf("an unknown reservation: %d %s", status, body)
			}
			// one that is late, for an order that is there
			late := x.sign(t, x.claims(r.reservation, -time.Minute), "order-backend")
			if status, body := x.ask("ann", 1, late); status != http.StatusCreated {
				t.Errorf("a late repetition: %d %s", status, body)
			}
			if got := x.orders(); !slices.Contains(got, r.reservation) || len(got) > 2 {
				t.Errorf("the shop has orders for %q", got)
			}
			x.expect(x.sale, 19, 0, 0, 1)
		})
	}
}

// An example behind the Caddyfile beside it: the shop hears from the edge who the buyer is, whatever a client says.
func TestExampleBehindItsCaddyfile(t *testing.T) {
	t.Parallel()
	x := &exampleShop{counter: counter{newEdge(t, ""), "flash"}, listens: freeAddr(t)}
	api := freeAddr(t)
	x.edge.env = []string{
		"STOCKGATE_SITE=" + x.url, "STOCKGATE_STORE=" + filepath.Join(x.dir, "store"), "STOCKGATE_STORE_TIMEOUT=20s", "STOCKGATE_SHOP=" + x.listens,
		"STOCKGATE_API=http://" + api, "STOCKGATE_API_KEY=" + apiKey, "CADDY_ADMIN=unix/" + x.admin,
	}
	x.startFile("../examples/Caddyfile")
	x.sell("flash", `  - {sku: "7", stock: 2}`)
	_, port, _ := net.SplitHostPort(x.listens)
	x.env = append(os.Environ(), "PORT="+port, "STOCKGATE_JWKS_URL="+x.url+"/.well-known/jwks.json", "STOCKGATE_API_URL=http://"+api+"/stockgate", "STOCKGATE_API_KEY="+apiKey)
	x.run(exampleCommands["python"](t))
	order := one("", "7", 1, "")
	order.header = http.Header{"Authorization": {"Basic YnV5ZXI6c3RvY2tnYXRl"}, "X-User-Id": {"another"}}
	if r := x.buy(order); r.status != http.StatusCreated {
		t.Errorf("the order: %v %q", r, r.body)
	}
	x.expect("flash", 1, 0, 0, 1)
}

func (x *exampleShop) claims(id string, expiresIn time.Duration) token.Claims {
	now := time.Now()
	return token.Claims{Subject: "ann", ID: id, IssuedAt: now.Add(-time.Hour).Unix(), ExpiresAt: now.Add(expiresIn).Unix(),
		Epoch: now.Add(time.Hour).UnixMilli(), Sale: x.sale, Lines: []sale.Line{{SKU: "7", Quantity: 1}}}
}

func (x *exampleShop) sign(t *testing.T, claims token.Claims, audience string) string {
	t.Helper()
	signer, err := token.NewSigner("", audience, x.key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

type forgery struct {
	buyer  string
	units  int
	tokens []string
}

// forgeries are requests that no shop may sell on.
func (x *exampleShop) forgeries(t *testing.T, good string) map[string]forgery {
	t.Helper()
	const other = "019a7d3e-5b1c-7f6e-9d5a-3f0d6f6b2c12"
	parts := strings.Split(good, ".")
	jwk, _ := x.key.PublicJWK()
	var public struct{ X string }
	if err := json.Unmarshal(jwk, &public); err != nil {
		t.Fatal(err)
	}
	two := x.claims(other, time.Minute)
	two.Lines = append(two.Lines, sale.Line{SKU: "8", Quantity: 1})
	stranger, _, err := token.GenerateEd25519()
	if err != nil {
		t.Fatal(err)
	}
	strange := &exampleShop{key: stranger}
	return map[string]forgery{
		"no token":           {"ann", 1, nil},
		"an empty token":     {"ann", 1, []string{""}},
		"two tokens":         {"ann", 1, []string{good, good}},
		"another buyer":      {"bob", 1, []string{good}},
		"no buyer":           {"", 1, []string{good}},
		"more than is held":  {"ann", 2, []string{good}},
		"more lines":         {"ann", 1, []string{x.sign(t, two, "order-backend")}},
		"expired":            {"ann", 1, []string{x.sign(t, x.claims(other, -time.Second), "order-backend")}},
		"for another shop":   {"ann", 1, []string{x.sign(t, x.claims(other, time.Minute), "others")}},
		"of another edge":    {"ann", 1, []string{strange.sign(t, x.claims(other, time.Minute), "order-backend")}},
		"without signature":  {"ann", 1, []string{parts[0] + "." + parts[1] + "."}},
		"of two parts":       {"ann", 1, []string{parts[0] + "." + parts[1]}},
		"alg none":           {"ann", 1, []string{b64(`{"alg":"none","typ":"stockgate+jwt","kid":"`+x.key.KID()+`"}`) + "." + parts[1] + "."}},
		"alg HS256":          {"ann", 1, []string{hs256(`{"alg":"HS256","typ":"stockgate+jwt","kid":"`+x.key.KID()+`"}`, parts[1], public.X)}},
		"changed claims":     {"ann", 2, []string{parts[0] + "." + b64(strings.Replace(unb64(parts[1]), `"qty":1`, `"qty":2`, 1)) + "." + parts[2]}},
		"a JWT of other use": {"ann", 1, []string{ed25519JWT(x.secret, strings.Replace(unb64(parts[0]), "stockgate+jwt", "JWT", 1), unb64(parts[1]))}},
	}
}

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func unb64(text string) string {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// hs256 is a token that takes the public key for a shared secret.
func hs256(header, claims, secret string) string {
	signed := b64(header) + "." + claims
	mac := hmac.New(sha256.New, []byte(unb64(secret)))
	mac.Write([]byte(signed))
	return signed + "." + b64(string(mac.Sum(nil)))
}

func ed25519JWT(key ed25519.PrivateKey, header, claims string) string {
	signed := b64(header) + "." + b64(claims)
	return signed + "." + b64(string(ed25519.Sign(key, []byte(signed))))
}

// exampleCommands start the programs; what they need must be there.
var exampleCommands = map[string]func(*testing.T) *exec.Cmd{
	"go": func(t *testing.T) *exec.Cmd {
		program := filepath.Join(t.TempDir(), "shop")
		build := exec.Command("go", "build", "-ldflags=-w", "-o", program, "../examples/go")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as go vet has compiled what it imports
		must(t, build)
		return exec.Command(program)
	},
	"java": func(t *testing.T) *exec.Cmd {
		classes := t.TempDir()
		must(t, exec.Command("javac", "-J-XX:TieredStopAtLevel=1", "-Xlint:all,-serial", "-Werror", "-d", classes, "../examples/java/StockgateToken.java", "../examples/java/Shop.java"))
		return exec.Command("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classes, "Shop")
	},
	"node": func(*testing.T) *exec.Cmd { return exec.Command("node", "../examples/node/shop.mjs") },
	"python": func(t *testing.T) *exec.Cmd {
		return exec.Command(spawn.Python(t, "cryptography"), "-B", "../examples/python/shop.py")
	},
}

// must runs a command to its end.
func must(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// The script of examples/curl says to the edge what it should.
func TestExampleScript(t *testing.T) {
	t.Parallel()
	working, answer := make(chan string, 1), make(chan int, 1)
	x := startExamples(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		working <- ""
		w.WriteHeader(<-answer)
	}))[0]
	x.sell(x.sale, `  - {sku: "7", stock: 20}`)
	script := func(args ...string) (string, error) {
		cmd := exec.Command("../examples/curl/reservation.sh", args...)
		cmd.Env = x.env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, step := range []struct {
		args []string
		fail bool
		says string
	}{
		{[]string{"show", "nosuch"}, true, `"reason":"not_found"`},
		{[]string{"confirm", "nosuch"}, true, `"reason":"not_found"`},
		{[]string{"extend", "nosuch", "10"}, true, `"reason":"malformed"`},
		{[]string{"destroy", "nosuch"}, true, "there is no destroy"},
	} {
		if out, err := script(step.args...); (err != nil) != step.fail || !strings.Contains(out, step.says) {
			t.Errorf("%q: %v %s", step.args, err, out)
		}
	}
	answer <- http.StatusBadRequest
	r := x.buy(one("ann", "7", 2, ""))
	await(t, "the order was at the shop", working)
	if out, err := script("confirm", r.reservation); err == nil || !strings.Contains(out, `"state":"released"`) {
		t.Errorf("confirm: %v %s", err, out)
	}
	if out, err := script("release", r.reservation); err != nil || !strings.Contains(out, `"state":"released"`) {
		t.Errorf("release: %v %s", err, out)
	}

	done := x.goBuy(one("bob", "7", 3, ""))
	await(t, "the order is at the shop", working)
	id := x.holds(x.sale, "held")[0].ID
	before := x.record(id)
	if out, err := script("extend", id, "30m"); err != nil {
		t.Errorf("extend: %v %s", err, out)
	}
	if after := x.record(id); !after.Deadline.After(before.Deadline.Add(5 * time.Minute)) {
		t.Errorf("held until %v, was %v", after.Deadline, before.Deadline)
	}
	if out, err := script("confirm", id); err != nil || !strings.Contains(out, `"state":"confirmed"`) {
		t.Errorf("confirm: %v %s", err, out)
	}
	answer <- http.StatusCreated
	await(t, "the buyer's answer", done)
	for _, args := range [][]string{{"return", id, "one", "7", "1"}, {"return", id, "one", "7", "1"}, {"return", id, "rest"}} {
		if out, err := script(args...); err != nil || !strings.Contains(out, `"returned":[{"sku":"7"`) {
			t.Errorf("%q: %v %s", args, err, out)
		}
	}
	x.expect(x.sale, 20, 0, 0, 0)
}
