package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/token"
)

const secret = "0123456789abcdef0123456789abcdef"

func environment(name string) string {
	if name == "STOCKGATE_KEY" {
		return secret
	}
	return ""
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want error  // nil: any other error
		says string // on stderr or in the error
	}{
		{"help", []string{"-h"}, flag.ErrHelp, "-listen"},
		{"unknown", []string{"-x"}, errUsage, "-x"},
		{"argument", []string{"-verify=false", "x"}, errUsage, `unexpected argument "x"`},
		{"no key", nil, errUsage, "give -jwks or -hmac-env"},
		{"two keys", []string{"-jwks", "http://edge/", "-hmac-env", "STOCKGATE_KEY"}, errUsage, "give -jwks or -hmac-env"},
		{"key and no verify", []string{"-verify=false", "-hmac-env", "STOCKGATE_KEY"}, errUsage, "needs neither"},
		{"empty variable", []string{"-hmac-env", "NOTHING"}, nil, "NOTHING is empty"},
		{"bad URL", []string{"-jwks", "edge"}, nil, "whole http or https URL"},
		{"bad rule", []string{"-verify=false", "-misbehave", "explode"}, nil, "unknown"},
		{"bad address", []string{"-verify=false", "-listen", "nowhere:x"}, nil, "listen tcp"},
		{"bad file", []string{"-verify=false", "-db", filepath.Join(t.TempDir(), "no", "such")}, nil, "opening"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stderr strings.Builder
			err := run(t.Context(), c.args, environment, &stderr)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || c.want == nil && errors.Is(err, errUsage) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if said := stderr.String() + err.Error(); !strings.Contains(said, c.says) {
				t.Errorf("said %q, want %q", said, c.says)
			}
		})
	}
}

// A shop with each kind of key takes an order that carries a good token, and
// stops when it is told to.
func TestRun(t *testing.T) {
	key, _, err := token.GenerateEd25519()
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := key.PublicJWK()
	set, err := token.JWKS(raw)
	if err != nil {
		t.Fatal(err)
	}
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(set) }))
	defer edge.Close()
	shared, err := token.ParseKey(token.KindHMAC, secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  token.Key
		args []string
	}{
		"jwks": {key, []string{"-jwks", edge.URL}},
		"hmac": {shared, []string{"-hmac-env", "STOCKGATE_KEY", "-db", filepath.Join(t.TempDir(), "orders ?#%.sqlite")}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			reader, writer := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- run(ctx, append(c.args, "-listen", "127.0.0.1:0"), environment, writer)
				writer.Close()
			}()
			line, err := bufio.NewReader(reader).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			_, url, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
			if !ok {
				t.Fatal(line)
			}
			if got := order(t, url, sign(t, c.key)); got.Code != 0 || got.OrderNo == "" {
				t.Errorf("answer %+v", got)
			}
			if got := order(t, url, ""); got.Code != 403 {
				t.Errorf("without a token: %+v", got)
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

type reply struct {
	Code    int    `json:"code"`
	OrderNo string `json:"order_no"`
}

func sign(t *testing.T, key token.Key) string {
	t.Helper()
	s, err := token.NewSigner("", "order-backend", key)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	signed, err := s.Sign(token.Claims{
		Subject: "u1", ID: "r1", Sale: "s", IssuedAt: now, ExpiresAt: now + 3600, Lines: []sale.Line{{SKU: "a", Quantity: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func order(t *testing.T, url, signed string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/order?sku=a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if signed != "" {
		r.Header.Set(token.Header, signed)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got reply
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got
}
