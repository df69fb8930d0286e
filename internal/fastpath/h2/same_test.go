package h2_test

//lint:file-ignore SA1019 this is the server with which Caddy serves HTTP/2

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/stockgate/stockgate/internal/fastpath"
	"github.com/stockgate/stockgate/internal/fastpath/h2"
)

// refuser is the Judge and the handler of the same refusals. Paths that begin with /no are
// refused, unless the body says `pass`.
type refuser struct {
	mu    sync.Mutex
	fast  int       // answers of the Judge
	slow  int       // of the handler
	at    time.Time // when the Judge was asked
	stops func()

	// postpones reports whether the Judge postpones a request; nil: it postpones none.
	postpones func(*fastpath.Request) bool
	waits     []func()    // wake the connections of those that it has postponed
	since     []time.Time // when those were judged first that it has not postponed any more
	mixed     []string    // why some were postponed, if the Judge got it of another request
}

func (*refuser) Concerns(r *fastpath.Request) bool {
	_, err := url.ParseRequestURI(r.Target)
	return err == nil && strings.HasPrefix(r.Target, "/no")
}

func (f *refuser) Judge(out []byte, r *fastpath.Request) ([]byte, bool) {
	f.mu.Lock()
	since := cmp.Or(r.Since, r.Now)
	if f.postpones != nil && f.postpones(r) {
		f.waits = append(f.waits, r.Wake())
		f.mu.Unlock()
		r.Postpone(since, strings.Clone(r.Target))
		return out, false
	}
	if r.Why != nil && r.Why != r.Target {
		f.mixed = append(f.mixed, fmt.Sprint(r.Why, " for ", r.Target))
	}
	f.since = append(f.since, since)
	f.mu.Unlock()
	if bytes.Contains(r.Body, []byte("pass")) {
		return out, false
	}
	fields := make(http.Header)
	for name, value := range r.Fields {
		fields.Add(name, value)
	}
	body := told(r.Method, r.Target, r.Host, fields, r.Body)
	out = fmt.Appendf(out, "HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\nContent-Type: text/plain\r\nServer: Caddy\r\nStockgate-Refusal: sold_out\r\nDate: x\r\n\r\n", len(body))
	if r.Method != "HEAD" {
		out = append(out, body...)
	}
	f.mu.Lock()
	f.at = r.Now
	f.fast++
	f.mu.Unlock()
	return out, true
}

// told says what was read of a request.
func told(method, target, host string, h http.Header, body []byte) string {
	var fields []string
	for name, values := range h {
		fields = append(fields, fmt.Sprintf("%s=%q", name, values))
	}
	slices.Sort(fields)
	return fmt.Sprintf("%s %s %s %s %q", method, target, host, strings.Join(fields, " "), body)
}

func (f *refuser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.slow++
	f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	w.Header()["Date"] = []string{"x"}
	w.Header().Set("Server", "Caddy")
	w.Header().Set("Content-Type", "text/plain")
	status := http.StatusOK
	if strings.HasPrefix(r.URL.Path, "/no") && !bytes.Contains(body, []byte("pass")) {
		w.Header().Set("Stockgate-Refusal", "sold_out")
		status = http.StatusConflict
	}
	text := told(r.Method, r.RequestURI, r.Host, r.Header, body)
	if err != nil {
		text += " error"
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// shared is a connection of the server that is shared.
type shared struct {
	net.Conn
	fastpath.HTTP2
}

func (s shared) Read(p []byte) (int, error)         { return s.HTTP2.Read(p) }
func (s shared) Write(p []byte) (int, error)        { return s.HTTP2.Write(p) }
func (s shared) SetReadDeadline(at time.Time) error { return s.HTTP2.SetReadDeadline(at) }
func (s shared) Close() error                       { s.HTTP2.Close(); return s.Conn.Close() }

// side is a client's connection to one of the servers.
type side struct {
	client  net.Conn
	conn    *h2.Conn // nil: the server's alone
	refuser *refuser
	http    *http.Server
	mu      sync.Mutex
	got     bytes.Buffer
	ended   bool
	writes  chan []byte
	gate    atomic.Pointer[chan struct{}] // what the client waits for before it reads; nil: nothing
	gone    sync.WaitGroup
}

// open connects to a server. In a bubble.
func open(wraps bool) *side { return openWith(wraps, nil) }

// openWith has sent these bytes behind the preface, and so quickly that both come together.
func openWith(wraps bool, rest []byte) *side {
	client, server := net.Pipe()
	s := &side{client: client, refuser: new(refuser), writes: make(chan []byte, 10_000)}
	s.http = &http.Server{Handler: s.refuser, MaxHeaderBytes: 4096, IdleTimeout: 5 * time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	config := new(http2.Server)
	if err := http2.ConfigureServer(s.http, config); err != nil {
		panic(err)
	}
	conn := server
	if wraps {
		fast := &fastpath.Server{Judge: s.refuser, Timeouts: fastpath.Timeouts{Idle: 5 * time.Minute}}
		s.conn = (&h2.Server{Fast: fast}).Share(server, nil, rest).(*h2.Conn)
		conn = shared{server, s.conn}
		s.refuser.stops = fast.Stop
	}
	s.gone.Go(func() {
		config.ServeConn(conn, &http2.ServeConnOpts{BaseConfig: s.http, Handler: s.refuser, SawClientPreface: true})
	})
	s.gone.Go(func() {
		b := make([]byte, 4096)
		for {
			if gate := s.gate.Load(); gate != nil {
				<-*gate
			}
			n, err := client.Read(b)
			s.mu.Lock()
			s.got.Write(b[:n])
			s.ended = err != nil
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	s.gone.Go(func() {
		for b := range s.writes {
			_, _ = client.Write(b)
		}
	})
	return s
}

// send sends bytes and waits until all that they cause has happened.
func (s *side) send(b []byte) {
	s.writes <- b
	synctest.Wait()
}

func (s *side) close() {
	close(s.writes)
	_ = s.client.Close()
	s.gone.Wait()
}

// seen is what a client has got.
type seen struct {
	streams map[uint32]string
	gone    string // GOAWAY or the end of the connection
	last    uint32 // in GOAWAY
	acks    int    // of SETTINGS
	pings   int
	data    int64 // bytes that count as DATA
	dataOf  map[uint32]int64
	back    int64 // credit of the connection
}

// read reads what has come so far.
func (s *side) read(t testing.TB) seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := seen{streams: make(map[uint32]string), dataOf: make(map[uint32]int64)}
	fr := http2.NewFramer(io.Discard, bytes.NewReader(s.got.Bytes()))
	fr.SetMaxReadFrameSize(1 << 20)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for n := 0; ; n++ {
		f, err := fr.ReadFrame()
		if err != nil {
			if err != io.EOF {
				t.Errorf("the client cannot read what it got: %v (%v)", err, fr.ErrorDetail())
			}
			break
		}
		if _, ok := f.(*http2.SettingsFrame); n == 0 && !ok {
			t.Errorf("the first frame is %v", f)
		}
		id := f.Header().StreamID
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			var lines []string
			for _, h := range f.Fields {
				if h.Name != "date" {
					lines = append(lines, h.Name+": "+h.Value)
				}
			}
			slices.Sort(lines)
			v.streams[id] += strings.Join(lines, "\n") + "\n"
			if f.StreamEnded() {
				v.streams[id] += "END\n"
			}
		case *http2.DataFrame:
			v.data += int64(f.Length)
			v.dataOf[id] += int64(f.Length)
			v.streams[id] += string(f.Data())
			if f.StreamEnded() {
				v.streams[id] += "END\n"
			}
		case *http2.RSTStreamFrame:
			v.streams[id] += "RST " + f.ErrCode.String() + "\n"
		case *http2.GoAwayFrame:
			v.gone += "GOAWAY " + f.ErrCode.String() + "\n"
			v.last = f.LastStreamID
		case *http2.PingFrame:
			v.pings++
		case *http2.SettingsFrame:
			if f.IsAck() {
				v.acks++
			}
		case *http2.WindowUpdateFrame:
			if id == 0 {
				v.back += int64(f.Increment)
			}
		}
	}
	for id, text := range v.streams {
		v.streams[id] = long.ReplaceAllStringFunc(text, func(s string) string { return fmt.Sprintf("%s%d", s[:1], len(s)) })
	}
	if s.ended && v.gone == "" || s.ended && strings.Contains(v.gone, http2.ErrCodeNo.String()) {
		v.gone += "closed\n" // behind an error it is closed within a second
	}
	return v
}

// long is what makes bodies long.
var long = regexp.MustCompile(`x{9,}|v{9,}|y{9,}`)

// differ says how the client of the shared connection sees another server; empty: it does not.
func differ(fast, plain seen) string {
	ids := make(map[uint32]bool)
	for id := range fast.streams {
		ids[id] = true
	}
	for id := range plain.streams {
		ids[id] = true
	}
	for id := range ids {
		// an error that comes together with other frames outruns what the server has to say about those,
		// not what the fast path has
		outrun := strings.HasPrefix(plain.gone, "GOAWAY") && strings.HasPrefix(fast.streams[id], plain.streams[id])
		if fast.streams[id] != plain.streams[id] && !outrun {
			return fmt.Sprintf("stream %d:\n%s\nwant\n%s", id, fast.streams[id], plain.streams[id])
		}
	}
	switch {
	case fast.gone != plain.gone:
		return fmt.Sprintf("end %q, want %q", fast.gone, plain.gone)
	case fast.acks != plain.acks:
		return fmt.Sprintf("%d SETTINGS acknowledged, want %d", fast.acks, plain.acks)
	case fast.pings != plain.pings:
		return fmt.Sprintf("%d PINGs, want %d", fast.pings, plain.pings)
	}
	return ""
}

// writer writes frames of a client.
type writer struct {
	b       bytes.Buffer
	fr      *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
}

func newWriter() *writer {
	w := new(writer)
	w.fr = http2.NewFramer(&w.b, nil)
	w.fr.AllowIllegalWrites = true
	w.encoder = hpack.NewEncoder(&w.block)
	return w
}

// taken is what was written since.
func (w *writer) taken() []byte {
	defer w.b.Reset()
	return bytes.Clone(w.b.Bytes())
}

func (w *writer) fields(fields ...string) []byte {
	w.block.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		_ = w.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(w.block.Bytes())
}

func (w *writer) request(id uint32, ended bool, method, path string, more ...string) []byte {
	block := w.fields(append([]string{":method", method, ":scheme", "http", ":authority", "shop.example.com", ":path", path}, more...)...)
	_ = w.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: ended, EndHeaders: true})
	return w.taken()
}

func (w *writer) data(id uint32, ended bool, data string) []byte {
	_ = w.fr.WriteData(id, ended, []byte(data))
	return w.taken()
}

// hello are a client's first frames, with a large window.
func (w *writer) hello(settings ...http2.Setting) []byte {
	_ = w.fr.WriteSettings(settings...)
	_ = w.fr.WriteWindowUpdate(0, 16<<20)
	_ = w.fr.WriteSettingsAck()
	return w.taken()
}

// both sends the same to both servers, step by step, and compares what comes back.
func both(t *testing.T, steps ...[]byte) (fast seen, answered int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var sides [2]*side
		var views [2]seen
		for i, wraps := range []bool{true, false} {
			s := open(wraps)
			for _, b := range steps {
				s.send(b)
			}
			sides[i], views[i] = s, s.read(t)
			s.close()
		}
		if d := differ(views[0], views[1]); d != "" {
			t.Errorf("%s", d)
		}
		fast, answered = views[0], sides[0].refuser.fast
		if n := sides[0].refuser.fast + sides[0].refuser.slow; answered > 0 && n > sides[1].refuser.slow {
			t.Errorf("%d requests were answered, want %d", n, sides[1].refuser.slow)
		}
	})
	return fast, answered
}

func TestRefusals(t *testing.T) {
	w := newWriter()
	ping := func() []byte { _ = w.fr.WritePing(false, [8]byte{1}); return w.taken() }
	steps := [][]byte{
		w.hello(),
		w.request(1, true, "GET", "/no/1", "x-user", "a", "cookie", "a=b", "cookie", "c=d"),
		w.request(3, true, "GET", "/yes", "x-user", "a"),
		w.request(5, false, "POST", "/no/5", "x-user", "b", "content-length", "4"),
		ping(),
		w.data(5, true, "1234"),
		w.request(7, false, "POST", "/no/7", "x-user", "b"),
		w.data(7, false, "12"),
		w.data(7, false, "34"),
		w.data(7, true, ""),
		w.request(9, true, "HEAD", "/no/9", "x-user", "b"),
		w.request(11, false, "POST", "/no/11"),
		w.data(11, true, "pass"),
		w.request(13, true, "GET", "/no/13"),
	}
	got, answered := both(t, steps...)
	if answered != 5 || len(got.streams) != 7 {
		t.Errorf("%d of %d were answered", answered, len(got.streams))
	}
	if !strings.Contains(got.streams[7], `"1234"`) || !strings.Contains(got.streams[1], "a=b; c=d") {
		t.Errorf("%v", got.streams)
	}
	// all at once
	got, answered = both(t, slices.Concat(steps...))
	if answered == 0 || len(got.streams) != 7 {
		t.Errorf("%d of %d were answered", answered, len(got.streams))
	}
}
