package load

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/bench/measure"
)

//go:embed wrk.lua
var wrkScript string

// Plan is one run of a load generator.
type Plan struct {
	URL         string // scheme and host
	Table       string // the file of requests
	Core        int
	Connections int
	Streams     int // of them on one connection, with HTTP/2
	For         time.Duration
	// Number is where the numbers in place of the marks begin.
	Number int64
	// Most is how many requests are sent; 0: as many as fit.
	Most int
}

// Wrk sends a table with wrk, from one thread.
func Wrk(ctx context.Context, p Plan) (measure.Load, error) {
	script := filepath.Join(filepath.Dir(p.Table), "wrk.lua")
	if err := os.WriteFile(script, []byte(wrkScript), 0o644); err != nil {
		return measure.Load{}, err
	}
	seconds := max(1, int(p.For.Round(time.Second)/time.Second))
	if p.Most > 0 {
		seconds = 3600 // the script ends it
	}
	out, err := pinned(ctx, p.Core, "wrk", "-t", "1", "-c", strconv.Itoa(p.Connections), "-d", strconv.Itoa(seconds)+"s",
		"--timeout", "10s", "-s", script, p.URL, "--", p.Table, strconv.FormatInt(p.Number, 10), strconv.Itoa(p.Most))
	if err != nil {
		return measure.Load{}, err
	}
	return measure.Wrk(out)
}

// H2load sends orders that differ in their query over HTTP/2, as many at a time as Wrk has
// connections: Streams of them on each connection. Connections go through the list side by
// side, so with several of them one buyer has several attempts under way.
func H2load(ctx context.Context, p Plan, o Orders, requests int) (measure.Load, error) {
	targets := make([]string, requests)
	for i := range targets {
		targets[i] = p.URL + o.Target(i)
	}
	list := p.Table + ".targets"
	if err := os.WriteFile(list, []byte(strings.Join(targets, "\n")+"\n"), 0o644); err != nil {
		return measure.Load{}, err
	}
	args := []string{"-t", "1", "-c", strconv.Itoa(max(1, p.Connections/p.Streams)), "-m", strconv.Itoa(min(p.Connections, p.Streams)), "-D", strconv.Itoa(max(1, int(p.For.Seconds()))),
		"-H", "Content-Type: application/json", "-i", list}
	if o.Method != "GET" {
		body := p.Table + ".body"
		if err := os.WriteFile(body, []byte(o.Body(0)), 0o644); err != nil {
			return measure.Load{}, err
		}
		args = append(args, "-d", body)
	}
	out, err := pinned(ctx, p.Core, "h2load", args...)
	if err != nil {
		return measure.Load{}, err
	}
	return measure.H2load(out)
}

func pinned(ctx context.Context, core int, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "taskset", append([]string{"-c", strconv.Itoa(core), program}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
