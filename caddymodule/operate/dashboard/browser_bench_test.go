//go:build browser && linux

// go test -tags browser -run '^$' -bench . ./caddymodule/dashboard measures what
// docs/dashboard.md says.
package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/chromium"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// tenMinutes gives the page ten minutes of data before the sale: its stream is the real one,
// with a longer history.
const tenMinutes = `
const Real = EventSource
window.EventSource = class extends Real {
  addEventListener(name, take) {
    super.addEventListener(name, name !== 'hello' ? take : (event) => {
      const hello = JSON.parse(event.data)
      const first = hello.history[0]?.[0] ?? Date.now()
      const width = hello.history[0]?.length ?? 14
      const past = Array.from({ length: 600 }, (_, i) => [first - (600 - i) * 1000, ...Array.from({ length: width - 1 }, (_, k) => 50 + 40 * Math.sin(i / 9 + k))])
      take(new MessageEvent('hello', { data: JSON.stringify({ ...hello, history: [...past, ...hello.history] }) }))
    })
  }
}`

// frames counts the frames that the browser draws in so many seconds, and the longest pause.
const frames = `new Promise((done) => {
  const began = performance.now()
  let last = began, n = 0, late = 0, longest = 0
  const draw = (now) => {
    if (now > began) { n++; longest = Math.max(longest, now - last); if (now - last > 25) late++; last = now }
    if (now - began < %d) requestAnimationFrame(draw)
    else done([n * 1000 / (last - began), late, longest, document.querySelectorAll('canvas').length])
  }
  requestAnimationFrame(draw)
})`

// BenchmarkBrowserFrames measures the frames a second of the page with ten minutes of data
// while a stampede goes on, and how much of a core its main thread takes.
func BenchmarkBrowserFrames(b *testing.B) {
	e := startEdge(b, redistest.Start(b).Addr())
	e.ask("PUT", "sales/flash", strings.ReplaceAll(edgeSale, "stock: 60", "stock: 1000000"))
	e.ask("POST", "sales/flash/open", "")
	page := chromium.Start(b)
	page.Size(1440, 900, false)
	page.Header("Authorization", ann)
	page.Before(tenMinutes)
	page.Open("http://" + e.pages + "/wall/")
	page.Until(`document.querySelectorAll('canvas').length === 3`)
	for _, crowd := range []struct {
		name   string
		buyers int
	}{{"quiet", 0}, {"stampede", 8}} {
		b.Run(crowd.name, func(b *testing.B) {
			stop := e.orders(crowd.buyers)
			defer stop()
			for b.Loop() {
				before := page.Metrics()
				got := chromium.Eval[[]float64](page, fmt.Sprintf(frames, 10_000))
				after := page.Metrics()
				seconds := after["Timestamp"] - before["Timestamp"]
				b.ReportMetric(got[0], "frames/s")
				b.ReportMetric(got[1], "late-frames")
				b.ReportMetric(got[2], "longest-ms")
				for name, unit := range map[string]string{"ScriptDuration": "script-%", "LayoutDuration": "layout-%", "TaskDuration": "main-thread-%"} {
					b.ReportMetric(100*(after[name]-before[name])/seconds, unit)
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// orders lets so many buyers order again and again until stop is called.
func (e *edgeProcess) orders(buyers int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var crowd sync.WaitGroup
	for i := range buyers {
		crowd.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				e.order(client, fmt.Sprint("b", i, "-", n), []string{"apple", "berry"}[n%2])
			}
		})
	}
	return func() { cancel(); crowd.Wait(); client.CloseIdleConnections() }
}

// BenchmarkLargeSale measures a sale of 100,000 items on the page.
func BenchmarkLargeSale(b *testing.B) {
	redis := redistest.Start(b)
	e := startEdge(b, redis.Addr())
	b.ReportMetric(e.memory("VmRSS"), "MB-empty")
	e.ask("PUT", "sales/flash", largeSale(100_000))
	e.ask("POST", "sales/flash/open", "")
	page := chromium.Start(b)
	page.Size(1440, 900, false)
	page.Header("Authorization", ann)
	for b.Loop() {
		page.Open("http://" + e.pages + "/wall/")
		page.Until(`document.querySelector('#items tbody tr') && document.querySelector('#items').textContent.includes('100,000')`)
		b.ReportMetric(chromium.Eval[float64](page, `performance.getEntriesByName('first-contentful-paint')[0].startTime`), "first-paint-ms")
		b.ReportMetric(chromium.Eval[float64](page, `(async () => {
  const began = performance.now()
  for (let i = 0; i < 20; i++) await (await fetch('items?sale=flash&sort=sold&q=' + (1234 * i))).json()
  return (performance.now() - began) / 20
})()`), "search-ms")
		before, at := e.used(), time.Now()
		stop := e.orders(4)
		chromium.Eval[any](page, `new Promise((done) => setTimeout(done, 5000))`)
		stop()
		b.ReportMetric(100*float64(e.used()-before)/float64(time.Since(at)), "selling-core-%")
		b.ReportMetric(page.Metrics()["JSHeapUsedSize"]/1e6, "MB-page")
		b.ReportMetric(e.memory("VmRSS"), "MB-edge")
		b.ReportMetric(e.memory("VmHWM"), "MB-edge-peak")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkViewers measures the processor time of an edge with viewers of a sale that is open.
// The kernel counts it in hundredths of a second, so each number is a mean of 30 s.
func BenchmarkViewers(b *testing.B) {
	for _, sale := range []struct {
		name, file string
	}{{"24-items", largeSale(24)}, {"100000-items", largeSale(100_000)}} {
		e := startEdge(b, redistest.Start(b).Addr())
		e.ask("PUT", "sales/flash", sale.file)
		e.ask("POST", "sales/flash/open", "")
		for _, viewers := range []int{0, 1, 200} {
			b.Run(fmt.Sprintf("%s/%d", sale.name, viewers), func(b *testing.B) {
				leave := e.view(b, viewers)
				defer leave()
				for b.Loop() {
					before, at := e.used(), time.Now()
					<-time.After(30 * time.Second)
					b.ReportMetric(100*float64(e.used()-before)/float64(time.Since(at)), "core-%")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// view opens so many streams and reads them until leave is called.
func (e *edgeProcess) view(b *testing.B, viewers int) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var reading sync.WaitGroup
	for range viewers {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.pages+"/wall/events?sale=flash", nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", ann)
		resp, err := client.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp, err)
		}
		reading.Go(func() {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		})
	}
	return func() { cancel(); reading.Wait() }
}

func largeSale(items int) string {
	var text strings.Builder
	text.WriteString("id: flash\nstarts_at: 2020-11-11T00:00:00Z\nends_at: 2090-11-12T00:00:00Z\nitems:\n  - {sku: apple, stock: 1000000}\n  - {sku: berry, stock: 1000000}\n")
	for i := range items - 2 {
		fmt.Fprintf(&text, "  - {sku: \"%08d\", stock: 100}\n", i)
	}
	return text.String()
}

// used is the processor time of the process.
func (e *edgeProcess) used() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.cmd.Process.Pid))
	if err != nil {
		e.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields, sum := strings.Fields(rest), 0
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		ticks, err := strconv.Atoi(field)
		if err != nil {
			e.t.Fatal(err)
		}
		sum += ticks
	}
	return time.Duration(sum) * 10 * time.Millisecond
}

// memory is a size of the process in MB.
func (e *edgeProcess) memory(name string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.cmd.Process.Pid))
	if err != nil {
		e.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), name+":")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		e.t.Fatal(err)
	}
	return float64(kilobytes) / 1000
}
