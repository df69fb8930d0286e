package token_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/token"
)

var update = flag.Bool("update", false, "write the file of vectors")

const vectorFile = "../examples/vectors.json"

// vector is one verifier and what it says, step by step. ../examples/vectors.json has them all, so that verifiers in
// every language say the same; its fields are described in ../examples/README.md.
type vector struct {
	Name     string `json:"name"`
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
	Secret   string `json:"secret,omitempty"`
	// Remote: the verifier has the URL of a JWKS; this one, if there is one.
	Remote bool         `json:"remote"`
	URL    string       `json:"url,omitempty"`
	Leeway int64        `json:"leeway_ms"`
	Steps  []vectorStep `json:"steps"`
}

type vectorStep struct {
	Now int64 `json:"now_ms"`
	// JWKS is what the URL answers at this time; nil: it is away.
	JWKS *vectorJWKS `json:"jwks"`
	// Tokens are the values of the header; Pad letters A follow the last one.
	Tokens     []string     `json:"tokens"`
	Pad        int          `json:"pad,omitempty"`
	Subject    string       `json:"subject"`
	AnySubject bool         `json:"any_subject"`
	Lines      []token.Line `json:"lines"`
	// Known are the ids that the shop has answered; nil: it is not asked.
	Known []string `json:"known"`
	Want  string   `json:"want"`
	// ID is the jti of the claims that come back; empty: none do.
	ID string `json:"id"`
	// Fetches of the JWKS that the step causes.
	Fetches int `json:"fetches"`
}

type vectorJWKS struct {
	Status   int    `json:"status"`
	Location string `json:"location,omitempty"`
	Body     string `json:"body"`
	// Pad spaces follow the body.
	Pad int `json:"pad,omitempty"`
}

// The file is what this test generates: `go test ./token -run TestVectors -update` writes it.
func TestVectorsAreCurrent(t *testing.T) {
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	want.WriteString("[\n")
	for i, v := range vectors(t) {
		if i > 0 {
			want.WriteString(",\n")
		}
		if err := encoder.Encode(v); err != nil {
			t.Fatal(err)
		}
		want.Truncate(want.Len() - 1)
	}
	want.WriteString("\n]\n")
	if *update {
		if err := os.WriteFile(vectorFile, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("vectors.json is not what the test generates: run it with -update, and look at the difference")
	}
}

// This library says what the vectors say, and every word of Reason is among them.
func TestVectors(t *testing.T) {
	said := make(map[string]bool)
	for _, v := range vectors(t) {
		for _, s := range v.Steps {
			said[s.Want] = true
		}
		t.Run(v.Name, func(t *testing.T) { synctest.Test(t, v.run) })
	}
	for _, err := range []error{
		nil, token.ErrMissing, token.ErrRepeated, token.ErrMalformed, token.ErrType, token.ErrAlgorithm, token.ErrUnknownKey, token.ErrKeysUnavailable,
		token.ErrSignature, token.ErrIssuer, token.ErrAudience, token.ErrSubject, token.ErrLines, token.ErrExpired, token.ErrKnown,
	} {
		if word := token.Reason(err); !said[word] || word == "" {
			t.Errorf("no vector says %q (%v)", word, err)
		}
	}
	if word := token.Reason(io.EOF); word != "" {
		t.Errorf("an error of another package is %q", word)
	}
}

func (v vector) run(t *testing.T) {
	var now time.Time
	clock := func() time.Time { return now }
	var web vectorWeb
	o := token.Options{Issuer: v.Issuer, Audience: v.Audience, Secret: v.Secret, Leeway: time.Duration(v.Leeway) * time.Millisecond, Now: clock}
	if v.Remote {
		url := v.URL
		if url == "" {
			url = "http://edge/jwks.json"
		}
		client := &http.Client{Transport: &web, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		keys, err := token.NewRemoteKeys(token.RemoteOptions{URL: url, Client: client, Now: clock})
		if err != nil {
			v.refuses(t, err)
			return
		}
		o.Remote = keys
	}
	verifier, err := token.NewVerifier(o)
	if err != nil {
		v.refuses(t, err)
		return
	}
	for i, s := range v.Steps {
		now, web = time.UnixMilli(s.Now), vectorWeb{answer: s.JWKS}
		id, reason := s.verify(verifier)
		synctest.Wait() // for a fetch in the background
		if reason != s.Want || id != s.ID || web.fetches != s.Fetches {
			t.Errorf("step %d: %q, id %q, %d fetches; want %q, %q, %d", i+1, reason, id, web.fetches, s.Want, s.ID, s.Fetches)
		}
	}
}

// refuses is a verifier that cannot be made.
func (v vector) refuses(t *testing.T, err error) {
	t.Helper()
	if len(v.Steps) != 1 || v.Steps[0].Want != "options" {
		t.Error(err)
	}
}

func (s vectorStep) verify(verifier *token.Verifier) (id, reason string) {
	values := slices.Clone(s.Tokens)
	if s.Pad > 0 {
		values[len(values)-1] += strings.Repeat("A", s.Pad)
	}
	signed, err := token.FromRequest(&http.Request{Header: http.Header{token.Header: values}})
	if err != nil {
		return "", token.Reason(err)
	}
	expect := token.Expect{Subject: s.Subject, AnySubject: s.AnySubject, Lines: s.Lines}
	if s.Known != nil {
		expect.Known = func(_ context.Context, id string) (bool, error) { return slices.Contains(s.Known, id), nil }
	}
	claims, err := verifier.Verify(signed, expect)
	if claims != nil {
		id = claims.ID
	}
	return id, token.Reason(err)
}

// vectorWeb is the network of one step.
type vectorWeb struct {
	answer  *vectorJWKS
	fetches int
}

func (w *vectorWeb) RoundTrip(*http.Request) (*http.Response, error) {
	w.fetches++
	if w.answer == nil {
		return nil, errors.New("nothing listens")
	}
	body := w.answer.Body + strings.Repeat(" ", w.answer.Pad)
	return &http.Response{
		StatusCode: w.answer.Status, Status: http.StatusText(w.answer.Status),
		Header: http.Header{"Location": {w.answer.Location}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// An answer that cannot be looked for is an error of the shop's, which has no reason of a token.
func TestKnownMayFail(t *testing.T) {
	lost := errors.New("the database is away")
	signed := mustSign(t, mustKey(t, token.KindHMAC, secret), claims())
	got, err := mustVerifier(t, token.Options{Secret: secret}).Verify(signed, token.Expect{
		AnySubject: true, Known: func(context.Context, string) (bool, error) { return false, lost },
	})
	if !errors.Is(err, lost) || token.Reason(err) != "" || got == nil {
		t.Errorf("%v, %v", got, err)
	}
}
