package attempt_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
)

func TestReadBodyPutsItBack(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 4096) // 64 KiB
	for name, tc := range map[string]struct {
		body   string
		length int64
		max    int64
		want   sale.Reason
	}{
		"small":            {"abc", 3, 10, ""},
		"small, chunked":   {"abc", -1, 10, ""},
		"at the bound":     {big, int64(len(big)), int64(len(big)), ""},
		"chunked at it":    {big, -1, int64(len(big)), ""},
		"above":            {big, int64(len(big)), int64(len(big)) - 1, sale.BodyTooLarge},
		"chunked above":    {big, -1, int64(len(big)) - 1, sale.BodyTooLarge},
		"empty":            {"", 0, 10, ""},
		"empty, chunked":   {"", -1, 10, ""},
		"empty, none fits": {"", -1, 0, ""},
		"none fits":        {"a", -1, 0, sale.BodyTooLarge},
		"without bound":    {big, -1, 1<<63 - 1, ""},
	} {
		for kind, wrap := range map[string]func(io.Reader) io.Reader{
			"whole":         func(r io.Reader) io.Reader { return r },
			"byte by byte":  iotest.OneByteReader,
			"data with EOF": iotest.DataErrReader,
		} {
			r := httptest.NewRequest("POST", "/", io.NopCloser(wrap(strings.NewReader(tc.body))))
			r.ContentLength = tc.length
			if tc.length < 0 {
				r.TransferEncoding = []string{"chunked"}
			}
			r.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
			body, refusal, err := attempt.ReadBody(r, tc.max)
			if err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
				continue
			}
			if tc.want != "" {
				if refusal == nil || refusal.Reason != tc.want || body != nil {
					t.Errorf("%s, %s: got %d bytes, %q", name, kind, len(body), describe(refusal))
				}
				continue
			}
			again, _ := io.ReadAll(r.Body)
			if refusal != nil || string(body) != tc.body || string(again) != tc.body {
				t.Errorf("%s, %s: got %d bytes, then %d, %q", name, kind, len(body), len(again), describe(refusal))
			}
			if r.ContentLength != int64(len(tc.body)) || r.TransferEncoding != nil || r.GetBody != nil || r.Body.Close() != nil {
				t.Errorf("%s, %s: length %d, encoding %v", name, kind, r.ContentLength, r.TransferEncoding)
			}
			if tc.body == "" && r.Body != http.NoBody {
				t.Errorf("%s, %s: an empty body is not known to be empty", name, kind)
			}
		}
	}
}

// untouched fails the test if it is read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) { u.t.Error("the body is read"); return 0, io.EOF }
func (untouched) Close() error               { return nil }

func TestReadBodyBelievesAnAnnouncement(t *testing.T) {
	r := httptest.NewRequest("POST", "/", nil)
	r.Body, r.ContentLength = untouched{t}, 11
	if _, refusal, err := attempt.ReadBody(r, 10); err != nil || refusal == nil || refusal.Reason != sale.BodyTooLarge {
		t.Errorf("got %q, %v", describe(refusal), err)
	}
}

// statusError is an error of an outer handler.
type statusError struct{ err error }

func (e statusError) Error() string { return "413: " + e.err.Error() }
func (e statusError) Unwrap() error { return e.err }

func TestReadBodyErrors(t *testing.T) {
	gone := errors.New("the client left")
	outer := statusError{&http.MaxBytesError{Limit: 3}}
	for name, tc := range map[string]struct {
		body   io.Reader
		length int64
		err    error
		reason sale.Reason
	}{
		"client gone":    {iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("abc"))), 3, iotest.ErrTimeout, ""},
		"first read":     {iotest.ErrReader(gone), -1, gone, ""},
		"outer limit":    {io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(outer)), -1, outer, sale.BodyTooLarge},
		"cut off":        {strings.NewReader("ab"), 3, io.ErrUnexpectedEOF, ""},
		"more than said": {strings.NewReader("abcd"), 3, io.ErrUnexpectedEOF, ""},
	} {
		r := httptest.NewRequest("POST", "/", tc.body)
		r.ContentLength = tc.length
		body, refusal, err := attempt.ReadBody(r, 100)
		if err != tc.err || body != nil { // the very error: an outer handler's type must survive
			t.Errorf("%s: got %q, %v", name, body, err)
		}
		if tc.reason == "" && refusal != nil || tc.reason != "" && (refusal == nil || refusal.Reason != tc.reason) {
			t.Errorf("%s: got %q", name, describe(refusal))
		}
	}
}

func TestReadBodyOfNone(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Body = body
		if b, refusal, err := attempt.ReadBody(r, 10); b != nil || refusal != nil || err != nil {
			t.Errorf("got %q, %q, %v", b, describe(refusal), err)
		}
	}
}

// TestTrailersOfARealServer sends chunked bodies with trailers, announced or
// not, to net/http, which tells of the second kind only after the body.
func TestTrailersOfARealServer(t *testing.T) {
	rd := lineReader(t, "{json.sku}", "")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		step := "check"
		refusal := rd.Check(r)
		if refusal == nil {
			step = "body"
			_, refusal, _ = rd.ReadBody(r)
		}
		fmt.Fprint(w, step, " ", describe(refusal))
	}))
	defer srv.Close()
	const head = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
	const chunk = "b\r\n{\"sku\":\"a\"}\r\n0\r\n"
	for request, want := range map[string]string{
		head + "\r\n" + chunk + "\r\n":                                                   "body ",
		head + "\r\n" + chunk + "Stockgate-Token: x\r\n\r\n":                             "body malformed Trailer",
		head + "Trailer: Stockgate-Token\r\n\r\n" + chunk + "\r\n":                       "check malformed Trailer",
		head + "Trailer: Stockgate-Token\r\n\r\n" + chunk + "Stockgate-Token: x\r\n\r\n": "check malformed Trailer",
	} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		conn.Close()
		if !strings.HasPrefix(string(got), want) || want == "body " && string(got) != want {
			t.Errorf("%q: got %q", request, got)
		}
	}
}

// TestAClientThatLeaves shows the error of a body that never arrives whole.
func TestAClientThatLeaves(t *testing.T) {
	rd := lineReader(t, "{json.sku}", "")
	result := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _, err := rd.ReadBody(r)
		result <- err
	}))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"sku\":")
	conn.Close()
	if err := <-result; err == nil {
		t.Error("a body that was cut off is read as whole")
	}
}

// TestTheBackendGetsTheBytes sends a chunked body through the reader to a
// second server.
func TestTheBackendGetsTheBytes(t *testing.T) {
	sent := `{"sku" : "\u0061", "quantity":2, "note":"` + strings.Repeat("ä", 10_000) + `"}`
	var got []byte
	var length int64
	shop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		length = r.ContentLength
	}))
	defer shop.Close()
	rd := lineReader(t, "{json.sku}", "{json.quantity}")
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _, err := rd.ReadBody(r)
		if err != nil {
			t.Error(err)
		}
		a, refusal := rd.Read(r, body, attempt.Env{})
		if refusal != nil || show(a.Lines) != "a×2" {
			t.Errorf("read %+v, %q", a, describe(refusal))
		}
		out := r.Clone(context.WithoutCancel(r.Context()))
		out.RequestURI, out.URL.Scheme, out.URL.Host = "", "http", shop.Listener.Addr().String()
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
	}))
	defer edge.Close()
	req, err := http.NewRequest("POST", edge.URL, io.MultiReader(strings.NewReader(sent))) // of unknown length
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", jsonType)
	req.Header.Set("X-User-Id", "u-1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !bytes.Equal(got, []byte(sent)) || length != int64(len(sent)) {
		t.Errorf("the backend got %d bytes, length %d, of %d", len(got), length, len(sent))
	}
}
