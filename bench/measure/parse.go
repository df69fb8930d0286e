package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Load is what a load generator saw in one run.
type Load struct {
	Requests int64   // answered
	Bytes    int64   // of all answers, heads included
	Seconds  float64 // how long it took
	Refused  int64   // answers outside 2xx and 3xx
	Broken   int64   // connections, reads, writes and timeouts that failed
	P50, P99 time.Duration
}

// Wrk reads the summary that load/wrk.lua writes below wrk's own output.
func Wrk(output []byte) (Load, error) {
	_, text, found := bytes.Cut(output, []byte("\nsummary {"))
	if !found {
		return Load{}, errors.New("wrk printed no summary")
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var s struct {
		Requests, Bytes, Microseconds, Refused, Broken, P50, P99 int64
	}
	if err := json.Unmarshal(append([]byte("{"), line...), &s); err != nil {
		return Load{}, fmt.Errorf("wrk's summary: %w", err)
	}
	return Load{
		Requests: s.Requests, Bytes: s.Bytes, Seconds: float64(s.Microseconds) / 1e6, Refused: s.Refused, Broken: s.Broken,
		P50: time.Duration(s.P50) * time.Microsecond, P99: time.Duration(s.P99) * time.Microsecond,
	}, nil
}

var (
	h2Time     = regexp.MustCompile(`finished in ([0-9.]+)(us|ms|s|m), [0-9.]+ req/s`)
	h2Requests = regexp.MustCompile(`requests: \d+ total, \d+ started, (\d+) done, \d+ succeeded, (\d+) failed, (\d+) errored, (\d+) timeout`)
	h2Status   = regexp.MustCompile(`status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`)
	h2Traffic  = regexp.MustCompile(`traffic: \S+ \((\d+)\) total`)
)

// H2load reads what h2load prints. It tells no percentiles: P50 and P99 stay 0.
func H2load(output []byte) (Load, error) {
	seconds, requests := h2Time.FindSubmatch(output), h2Requests.FindSubmatch(output)
	status, traffic := h2Status.FindSubmatch(output), h2Traffic.FindSubmatch(output)
	if seconds == nil || requests == nil || status == nil || traffic == nil {
		return Load{}, errors.New("h2load printed no result")
	}
	number := func(b []byte) int64 { // the expressions above admit digits only
		n, _ := strconv.ParseInt(string(b), 10, 64)
		return n
	}
	took, err := time.ParseDuration(string(seconds[1]) + string(seconds[2]))
	if err != nil {
		return Load{}, fmt.Errorf("h2load's time: %w", err)
	}
	refused := number(status[3]) + number(status[4])
	return Load{
		// With a duration, h2load counts as done what it waits for at the end, too.
		Requests: refused + number(status[1]) + number(status[2]), Bytes: number(traffic[1]), Seconds: took.Seconds(),
		Refused: refused, Broken: number(requests[3]) + number(requests[4]),
	}, nil
}

// Calls is how often Redis ran its commands: INFO commandstats.
type Calls struct {
	Scripts  int64 `json:"scripts"`  // calls of scripts: a round trip each
	Commands int64 `json:"commands"` // all commands, those inside of scripts included
}

// CommandStats reads the answer of INFO commandstats.
func CommandStats(info string) (Calls, error) {
	var c Calls
	for line := range strings.Lines(info) {
		name, rest, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !found {
			continue
		}
		count, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil {
			return Calls{}, fmt.Errorf("INFO commandstats: %w", err)
		}
		c.Commands += n
		switch name {
		case "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro":
			c.Scripts += n
		}
	}
	return c, nil
}

// Minus is what was called since before.
func (c Calls) Minus(before Calls) Calls {
	return Calls{c.Scripts - before.Scripts, c.Commands - before.Commands}
}

// NetBytes reads out of the answer of INFO stats how many bytes Redis has received and sent.
func NetBytes(info string) (bytes int64, err error) {
	found := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "total_net_input_bytes" && name != "total_net_output_bytes" {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO stats: %w", err)
		}
		bytes += n
		found++
	}
	if found != 2 {
		return 0, errors.New("INFO stats has no bytes")
	}
	return bytes, nil
}

// Attempts are counted attempts by the reason of their refusal; "" stands for those that
// were not refused.
type Attempts map[string]int64

var attemptsLine = regexp.MustCompile(`^stockgate_attempts_total\{.*reason="([a-z_]*)".*\} (\S+)$`)

// AttemptsTotal reads stockgate_attempts_total out of Prometheus's text format.
func AttemptsTotal(text string) (Attempts, error) {
	a := make(Attempts)
	for line := range strings.Lines(text) {
		m := attemptsLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("stockgate_attempts_total: %w", err)
		}
		a[m[1]] += int64(n)
	}
	return a, nil
}

// Minus is what was counted since before.
func (a Attempts) Minus(before Attempts) Attempts {
	d := make(Attempts)
	for reason, n := range a {
		if n != before[reason] {
			d[reason] = n - before[reason]
		}
	}
	return d
}

// Otherwise is how many attempts were refused for another reason.
func (a Attempts) Otherwise(reason string) (n int64) {
	for r, count := range a {
		if r != "" && r != reason {
			n += count
		}
	}
	return n
}

// Resident reads the resident memory of a process, in bytes, from /proc/<pid>/status.
func Resident(status string) (int64, error) {
	for line := range strings.Lines(status) {
		rest, found := strings.CutPrefix(line, "VmRSS:")
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/<pid>/status: %w", err)
		}
		return kib << 10, nil
	}
	return 0, errors.New("/proc/<pid>/status has no VmRSS")
}

// GoMemory reads out of Prometheus's text format how many bytes the heap and the stacks of a Go
// program have in use.
func GoMemory(text string) (bytes float64, err error) {
	found := 0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "go_memstats_heap_alloc_bytes" && name != "go_memstats_stack_inuse_bytes" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		bytes += n
		found++
	}
	if found != 2 {
		return 0, errors.New("the metrics of Go's memory are not there")
	}
	return bytes, nil
}

// TicksPerSecond is in what /proc counts processor time. Linux has told programs the
// same for decades (USER_HZ), whatever it counts in itself.
const TicksPerSecond = 100

// ProcStat reads /proc/<pid>/stat: seconds of processor time in user and kernel mode, of all
// threads, those that have ended included.
func ProcStat(stat string) (float64, error) {
	// the second field is the program's name in parentheses; it may hold anything
	_, rest, found := strings.Cut(stat[max(0, strings.LastIndexByte(stat, ')')):], ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 13 {
		return 0, errors.New("/proc/<pid>/stat is not as expected")
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return 0, fmt.Errorf("/proc/<pid>/stat: %w", err)
	}
	return float64(user+system) / TicksPerSecond, nil
}
