package reservation_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// BenchmarkInstructions counts the instructions of redis-server for one reservation or its end,
// with a limit and an idempotency key, alone in a call and 64 in one. They are the same on a
// machine that has other things to do. It needs valgrind; -benchtime=1x is enough.
func BenchmarkInstructions(b *testing.B) {
	counted := startCounted(b)
	store := stocktest.OpenStore(b, stocktest.Options(counted.server))
	stocktest.Load(b, store, stocktest.OpenSale("s", 100_000_000))
	call := func(ops ...model.Operation) {
		all := make([]reservation.Operation, len(ops))
		for i, op := range ops {
			all[i] = wire(op)
		}
		_, replies, err := store.Call(stocktest.Soon(b), "s", all...)
		for _, reply := range replies {
			if reply[0] != "ok" {
				b.Fatalf("%+v answers %v", ops, reply)
			}
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	n := 0
	reserve := func(holdFor int64) (string, model.Operation) {
		n++
		id := fmt.Sprintf("0191f0a4-5f2e-7%011d", n)
		r := take(id, 1)
		r.HoldFor, r.KeyTTL, r.Buyer, r.Gate = holdFor, 3_600_000, fmt.Sprintf("%032d", n), "main"
		r.Guard, r.Print = fmt.Sprintf("k|%032d", n), fmt.Sprintf("%032d", n)
		r.Limits[0].Field = "buyer:sale:units|-|" + r.Buyer
		return id, r
	}
	end := map[string]func(id string) model.Operation{
		"confirm": func(id string) model.Operation { return model.Confirm{ID: id, Word: "answer", Cause: "200"} },
		"release": func(id string) model.Operation { return model.Release{ID: id, Word: "shop", NotAfter: 0, Cause: "402"} },
	}
	for _, together := range []int{1, 64} {
		rounds := 256 / together
		name := func(what string) string { return fmt.Sprintf("%s-%d", what, together) }
		var batches [][]model.Operation
		var ids [][]string
		make := func(holdFor int64) {
			batches, ids = nil, nil
			for range rounds {
				var batch []model.Operation
				var names []string
				for range together {
					id, op := reserve(holdFor)
					batch, names = append(batch, op), append(names, id)
				}
				batches, ids = append(batches, batch), append(ids, names)
			}
		}
		for _, what := range []string{"confirm", "release"} {
			make(30_000)
			for _, run := range []string{"reserve", what} {
				if run == "reserve" && what == "release" {
					for _, batch := range batches {
						call(batch...)
					}
					continue
				}
				b.Run(name(run), func(b *testing.B) {
					for i, batch := range batches {
						if run != "reserve" {
							batch = nil
							for _, id := range ids[i] {
								batch = append(batch, end[run](id))
							}
						}
						if i == rounds/4 {
							counted.zero(b)
						}
						call(batch...)
					}
					b.ReportMetric(counted.count(b)/float64(together*(rounds-rounds/4)), "instructions/reservation")
				})
			}
		}
		make(1)
		for _, batch := range batches {
			call(batch...)
		}
		b.Run(name("expire"), func(b *testing.B) {
			for i := range batches {
				if i == rounds/4 {
					counted.zero(b)
				}
				call(model.Expire{Most: together})
			}
			b.ReportMetric(counted.count(b)/float64(together*(rounds-rounds/4)), "instructions/reservation")
		})
	}
}

// instructions is a redis-server under callgrind.
type instructions struct {
	server *redistest.Server
	pid    string
	out    string // what callgrind writes, and a number
	dumps  int
}

func startCounted(b *testing.B) *instructions {
	dir := b.TempDir()
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		b.Fatalf("%v; install it with: apt-get install -y valgrind", err)
	}
	server := cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server")
	if server, err = exec.LookPath(server); err != nil {
		b.Fatal(err)
	}
	out, wrapper := filepath.Join(dir, "counts"), filepath.Join(dir, "redis-server")
	script := fmt.Sprintf("#!/bin/sh\nexec %q -q --tool=callgrind --callgrind-out-file=%q %q \"$@\"\n", valgrind, out, server)
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		b.Fatal(err)
	}
	b.Setenv("REDIS_SERVER", wrapper)
	c := &instructions{server: redistest.Start(b, redistest.Config("hz 1")), out: out}
	info, err := c.server.Client().Info(stocktest.Soon(b), "server").Result()
	found := regexp.MustCompile(`process_id:(\d+)`).FindStringSubmatch(info)
	if err != nil || found == nil {
		b.Fatalf("the server does not tell its process: %v", err)
	}
	c.pid = found[1]
	return c
}

func (c *instructions) control(b *testing.B, what string) {
	b.Helper()
	if out, err := exec.Command("callgrind_control", what, c.pid).CombinedOutput(); err != nil {
		b.Fatalf("callgrind_control %s: %v\n%s", what, err, out)
	}
}

// zero begins to count.
func (c *instructions) zero(b *testing.B) { c.control(b, "-z") }

// count returns how many instructions there were since zero.
func (c *instructions) count(b *testing.B) float64 {
	b.Helper()
	c.control(b, "-d")
	c.dumps++
	name := c.out + "." + strconv.Itoa(c.dumps)
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^(?:totals|summary): (\d+)`).FindSubmatch(text)
	if found == nil {
		b.Fatalf("%s has no sum", name)
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
