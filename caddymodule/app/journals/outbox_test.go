package journals

import (
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

const outboxSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestOutboxOptions(t *testing.T) {
	t.Setenv("STOCKGATE_TEST_URL", "https://orders.internal:8443/in?key=k")
	t.Setenv("STOCKGATE_TEST_SECRET", outboxSecret+"\n")
	o := Outbox{URL: "{env.STOCKGATE_TEST_URL}", Secrets: []string{outboxSecret, "{env.STOCKGATE_TEST_SECRET}"}, Batch: 1000, Timeout: caddy.Duration(time.Minute), Kinds: []string{"confirmed"}}
	out, err := o.options()
	if err != nil || out.URL != "https://orders.internal:8443/in?key=k" || len(out.Secrets) != 2 || string(out.Secrets[0]) != string(out.Secrets[1]) || out.Timeout != time.Minute {
		t.Errorf("%+v, error %v", out, err)
	}
}

func TestOutboxRefuses(t *testing.T) {
	const at = "https://orders/in"
	secrets := []string{outboxSecret}
	for _, c := range []struct {
		in   Outbox
		says string
	}{
		{Outbox{Secrets: secrets}, "the URL is empty"},
		{Outbox{URL: "{env.STOCKGATE_NO_SUCH}", Secrets: secrets}, "the URL is empty"},
		{Outbox{URL: "orders/in", Secrets: secrets}, "whole http or https URL"},
		{Outbox{URL: "/in", Secrets: secrets}, "whole http or https URL"},
		{Outbox{URL: "ftp://orders/in", Secrets: secrets}, "whole http or https URL"},
		{Outbox{URL: "https://orders/{sale}", Secrets: secrets}, "placeholders that are unknown when the configuration loads"},
		{Outbox{URL: "https://me:s3cret@orders/in", Secrets: secrets}, "a user in it"},
		{Outbox{URL: at + "#top", Secrets: secrets}, "a fragment"},
		{Outbox{URL: at}, "there is no secret"},
		{Outbox{URL: at, Secrets: []string{outboxSecret, "{env.STOCKGATE_NO_SUCH}"}}, "secret number 2 is empty"},
		{Outbox{URL: at, Secrets: []string{"s3cret"}}, "secret number 1: it is no secret of Standard Webhooks"},
		{Outbox{URL: at, Secrets: secrets, Batch: 1001}, "batch is 1001: 1 to 1000"},
		{Outbox{URL: at, Secrets: secrets, Batch: -1}, "batch is -1"},
		{Outbox{URL: at, Secrets: secrets, Timeout: caddy.Duration(time.Millisecond)}, "timeout 1ms is outside"},
		{Outbox{URL: at, Secrets: secrets, Timeout: caddy.Duration(time.Hour)}, "timeout 1h0m0s is outside"},
		{Outbox{URL: at, Secrets: secrets, Sales: []string{"Double 11"}}, `"Double 11" is no id of a sale`},
		{Outbox{URL: at, Secrets: secrets, Kinds: []string{"sold"}}, `no kind of movement "sold": there are held, in_doubt, confirmed`},
	} {
		_, err := c.in.options()
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%+v: %v, it should say %q", c.in, err, c.says)
		}
	}
}

func TestOutboxIsOpen(t *testing.T) {
	for url, want := range map[string]bool{
		"http://orders/in": true, "http://10.0.0.1/in": true, "https://orders/in": false,
		"http://localhost:8080/in": false, "http://127.0.0.1/in": false, "http://[::1]:80/in": false,
	} {
		if isOpen(url) != want {
			t.Errorf("%s: %t", url, !want)
		}
	}
}
