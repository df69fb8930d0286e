package capacity_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/operate/capacity"
)

// run runs the command `plan` with these arguments.
func run(args ...string) (string, error) {
	cmd := capacity.Command()
	cmd.Flags().Bool("json", false, "")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

// given are rates that make the arithmetic easy.
const given = " --refusal-us 10 --order-us 100 --full-handshake-us 400 --resumed-handshake-us 200 --connection-kib 60 --kernel-kib 4 --edge-mib 512" +
	" --redis-orders 20000 --redis-bytes 1000 --request-bytes 500 --answer-bytes 250 --handshake-in-bytes 1000 --handshake-out-bytes 2000"

// TestPlan compares plans with what was worked out by hand.
func TestPlan(t *testing.T) {
	for args, want := range map[string]capacity.Requirements{
		// 800,000 × 400 µs + 200,000 × 200 µs + 1,990,000 × 10 µs + 10,000 × 100 µs = 320 + 40 + 19.9 + 1 = 380.9
		// core-seconds in 10 s at 0.5 busy: 76.18 cores, 10 edges with 8 and a spare one; 100,000 connections
		// of 64 KiB each
		"--buyers 1000000 --seconds 10 --attempts-per-buyer 2 --units 10000 --tls --http2 --resumed 0.2 --busy 0.5" + given: {
			Edges: 11, Cores: 76.18, EdgeMemory: 100_000*64/1024.0/1024 + 0.5, Files: 104_096, RedisCores: 0.1, RedisBandwidth: 8,
			In: (2e6*500 + 1e6*1000) * 8 / 10 / 1e6, Out: (2e6*250 + 1e6*2000) * 8 / 10 / 1e6,
		},
		// 90 % are connected: 100,000 × 400 µs + 1,000,000 × 10 µs = 50 core-seconds, at 1 busy 5 cores; all
		// connections take memory
		"--buyers 1000000 --seconds 10 --tls --connected 0.9 --busy 1" + given: {
			Edges: 2, Cores: 5, EdgeMemory: 1_000_000*64/1024.0/1024 + 0.5, Files: 1_004_096, In: (1e6*500 + 1e5*1000) * 8 / 10 / 1e6, Out: (1e6*250 + 1e5*2000) * 8 / 10 / 1e6,
		},
		// 1,000 × 10 µs in a second: one edge, and no spare one
		"--buyers 1000 --seconds 1 --spare 0 --cores-per-edge 2 --busy 1 --refusal-us 10 --edge-mib 1024 --request-bytes 1000 --answer-bytes 500": {
			Edges: 1, Cores: 0.01, EdgeMemory: 1, Files: 4096, In: 8, Out: 4,
		},
		// a Redis that needs several shards
		"--buyers 1000000 --seconds 10 --units 1000000 --tls --busy 1 --spare 2 --cores-per-edge 64" + given: {
			Edges: 3, Cores: 50, EdgeMemory: 1_000_000*64/1024.0/1024 + 0.5, Files: 1_004_096, RedisCores: 5, RedisBandwidth: 800, In: 1200, Out: 1800,
		},
	} {
		out, err := run(append(strings.Fields(args), "--json")...)
		var p capacity.Plan
		if err == nil {
			err = json.Unmarshal([]byte(out), &p)
		}
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		got := p.Needs
		for what, pair := range map[string][2]float64{
			"edges": {float64(got.Edges), float64(want.Edges)}, "cores": {got.Cores, want.Cores}, "memory": {got.EdgeMemory, want.EdgeMemory}, "files": {float64(got.Files), float64(want.Files)},
			"cores of Redis": {got.RedisCores, want.RedisCores}, "shards": {float64(got.Shards), max(1, math.Ceil(want.RedisCores))}, "bandwidth of Redis": {got.RedisBandwidth, want.RedisBandwidth}, "in": {got.In, want.In}, "out": {got.Out, want.Out},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-9*max(1, pair[1]) {
				t.Errorf("%s: %s: %v, want %v", args, what, pair[0], pair[1])
			}
		}
	}
}

// TestPlanShowsItsArithmetic: a line has the numbers from which its result comes, and a rate that is
// given is said to be.
func TestPlanShowsItsArithmetic(t *testing.T) {
	out, err := run(strings.Fields("--buyers 1000000 --seconds 10 --attempts-per-buyer 2 --units 10000 --tls --http2 --resumed 0.2 --busy 0.5" + given)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"1,000,000 buyers in 10 s, HTTP/2 over TLS: 11 edges with 8 cores and 6.6 GiB each, 1 shard of Redis\n",
		"1,000,000 buyers × 2 = 2,000,000\n",
		"800,000 × 400 µs = 320 core-seconds\n",
		"381 core-seconds / 10 s = 38.1 cores\n",
		"38.1 / 0.5 busy = 76.2 cores\n",
		"76.2 / 8 cores, rounded up, + 1 spare = 11 edges with 8 cores\n",
		"100,000 × (60 + 4 KiB) = 6.1 GiB\n",
		"full-handshake-us     400 µs of a core: given\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("it does not say %q:\n%s", line, out)
		}
	}
}

// TestPlanErrors: what cannot be planned is said, with what to write instead.
func TestPlanErrors(t *testing.T) {
	const ok = "--buyers 1000 --seconds 10"
	for args, want := range map[string]string{
		"":                                               "--buyers 0: say how many buyers come",
		"--buyers -1 --seconds 10":                       "--buyers -1: say how many buyers come",
		"--buyers 1000":                                  "--seconds 0: say in how many seconds",
		"--buyers 1000 --seconds NaN":                    "--seconds NaN: say in how many seconds",
		"--buyers x --seconds 1":                         `invalid argument "x" for "--buyers"`,
		ok + " --attempts-per-buyer 0":                   "--attempts-per-buyer 0: it is from 1",
		ok + " --units 1001":                             "--units 1001: it is from 0 to the number of attempts, 1000",
		ok + " --http2":                                  "--http2 without --tls",
		ok + " --resumed 0.2":                            "--resumed without --tls",
		ok + " --tls --resumed 1.2":                      "--resumed 1.2: it is a share from 0 to 1",
		ok + " --tls --resumed NaN":                      "--resumed NaN: it is a share",
		ok + " --connected 0.5":                          "--connected without --tls",
		ok + " --tls --connected -1":                     "--connected -1: it is a share from 0 to 1",
		ok + " --cores-per-edge 0":                       "--cores-per-edge 0: it is from 1",
		ok + " --busy 0":                                 "--busy 0: it is a share above 0",
		ok + " --spare -1":                               "--spare -1: it is from 0",
		ok + " --refusal-us 0":                           "--refusal-us 0: it is a number above 0, in µs of a core",
		ok + " --refusal-us -5":                          "--refusal-us -5: it is a number above 0",
		ok + " --refusal-us Inf":                         "--refusal-us +Inf: it is a number above 0",
		ok + " --full-handshake-us 400":                  "--full-handshake-us without --tls",
		"--buyers 10 --seconds 1e-300":                   "--seconds 1e-300: say in how many seconds they come, from 0.001 to 86400",
		ok + " --busy 1e-300":                            "cores with headroom would be 1.16e+297: no machines do that",
		ok + " --refusal-us 1e308":                       "refusals would be +Inf: ",
		ok + " --units 9 --order-us 1e300 --busy 1e-300": "orders would be 9e+294: no machines do that",
		ok + " --units 9 --redis-orders 1e-300":          "cores with headroom would be 1.29e+300",
		ok + " --tls --connection-kib 1e308":             "of connections would be ",
		ok + " --answer-bytes 1e300":                     "out would be 8e+296",
		ok + " now":                                      "it takes flags and no arguments, found now",
	} {
		if out, err := run(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %s, want %q", args, err, out, want)
		}
	}
}

var example = regexp.MustCompile("(?s)```console\n\\$ caddy stockgate plan ([^\n]*)\n(.*?)```")

// TestExamplesOfDocs runs the commands of docs/capacity.md: what stands below them is what they print.
func TestExamplesOfDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(page), -1)
	if len(examples) < 2 {
		t.Fatalf("it has %d examples", len(examples))
	}
	for _, m := range examples {
		out, err := run(strings.Fields(m[1])...)
		if err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		want := m[2]
		if head, rest, cut := strings.Cut(want, "  …\n"); cut { // the rest is in another example
			if !strings.HasPrefix(out, head) || rest != "" {
				t.Errorf("%s prints\n%s\nthe page has\n%s", m[1], out, want)
			}
		} else if out != want {
			t.Errorf("%s prints\n%s\nthe page has\n%s", m[1], out, want)
		}
	}
}

// results are the files that the table of rates comes from. A case of the second replaces that of
// the first.
var results = []string{"../../../bench/results/2026-11-23-capacity.json", "../../../bench/results/2026-11-23-idle.json"}

// TestRatesAreThoseOfTheBench compares the table of rates with the results that it names, to three
// digits.
func TestRatesAreThoseOfTheBench(t *testing.T) {
	type spread struct{ Median float64 }
	type report struct {
		Cases []struct {
			Name string
			Rows []struct {
				Peer        string
				Micros      spread `json:"cpu_us_each"`
				PerCore     spread `json:"per_redis_core_second"`
				Bytes       spread `json:"redis_bytes_each"`
				Connections int    `json:"idle_connections"`
				Memory      spread `json:"rss_kib_each"`
			}
		}
	}
	measured := make(map[string]float64)
	for _, file := range results {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var found report
		if err := json.Unmarshal(text, &found); err != nil {
			t.Fatal(err)
		}
		for _, c := range found.Cases {
			for _, r := range c.Rows {
				switch {
				case r.Peer == "gate-fast" && r.Connections == 18_000:
					measured[c.Name] = r.Memory.Median
				case r.Peer == "gate-fast" && r.Connections == 0:
					measured[c.Name] = r.Micros.Median
				case r.Peer == "gate" && c.Name == "accepted-post":
					measured[c.Name] = r.Micros.Median
				case r.Peer == "gate, 64 at once, and confirm":
					measured["orders"], measured["bytes"] = r.PerCore.Median, r.Bytes.Median
				}
			}
		}
	}
	compared := 0
	for args, want := range map[string]map[string]float64{
		"": {
			"refusal-us": measured["sold-out-post"], "order-us": measured["accepted-post"], "redis-orders": measured["orders"], "redis-bytes": measured["bytes"],
		},
		" --tls": {
			"refusal-us": measured["tls-h1"], "full-handshake-us": measured["new-h1"] - measured["tls-h1"], "resumed-handshake-us": measured["again-h1"] - measured["tls-h1"],
			"connection-kib": measured["idle-h1"],
		},
		" --tls --http2": {
			"refusal-us": measured["tls-h2"], "full-handshake-us": measured["new-h2"] - measured["tls-h2"], "resumed-handshake-us": measured["again-h2"] - measured["tls-h2"],
			"connection-kib": measured["idle-h2"],
		},
	} {
		out, err := run(strings.Fields("--buyers 1 --seconds 1 --json" + args)...)
		var p capacity.Plan
		if err == nil {
			err = json.Unmarshal([]byte(out), &p)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Rates {
			of, ok := want[r.Flag]
			if !ok {
				continue
			}
			compared++
			if digits := strconv.FormatFloat(of, 'g', 3, 64); of == 0 || digits != strconv.FormatFloat(r.Value, 'g', 3, 64) {
				t.Errorf("%s%s is %v, %v have %s", r.Flag, args, r.Value, results, digits)
			}
		}
	}
	if compared != 12 {
		t.Errorf("%d rates were compared, want 12", compared)
	}
}
