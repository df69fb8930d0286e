package rig

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Receiver takes the messages of an outbox, and notes what is wrong with them.
type Receiver struct {
	listen net.Listener
	server *http.Server

	mu       sync.Mutex
	last     map[string]int64  // of each sale: the newest number that came
	bodies   map[string]string // by their webhook-id: the same one again has the same bytes
	wrong    []string
	messages int
}

const receiverSecret = "the secret of the auditor's receiver"

// StartReceiver starts one.
func StartReceiver() (*Receiver, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Receiver{listen: ln, last: map[string]int64{}, bodies: map[string]string{}}
	r.server = &http.Server{Handler: http.HandlerFunc(r.take)}
	go r.server.Serve(ln)
	return r, nil
}

// Close ends it.
func (r *Receiver) Close() { r.server.Close() }

// Option is the option with which an edge sends here.
func (r *Receiver) Option() string {
	return fmt.Sprintf("outbox http://%s/movements {\n\t\t\tsecret whsec_%s\n\t\t}", r.listen.Addr(), base64.StdEncoding.EncodeToString([]byte(receiverSecret)))
}

// Last is the newest number of a sale that came, Messages how many messages did.
func (r *Receiver) Last(sale string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[sale]
}

func (r *Receiver) Messages() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages
}

// Wrong is what was wrong.
func (r *Receiver) Wrong() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wrong)
}

func (r *Receiver) take(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // its sender was killed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages++
	if problem := r.check(q.Header, body); problem != "" {
		r.wrong = append(r.wrong, problem)
	}
	w.WriteHeader(http.StatusNoContent)
}

// check verifies a message, as docs/books.md#the-outbox says, and that it follows the one before.
func (r *Receiver) check(head http.Header, body []byte) string {
	id := head.Get("webhook-id")
	mac := hmac.New(sha256.New, []byte(receiverSecret))
	fmt.Fprintf(mac, "%s.%s.%s", id, head.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if !slices.Contains(strings.Fields(head.Get("webhook-signature")), want) {
		return "message " + id + " has no valid signature"
	}
	var message struct {
		Type string
		Data struct {
			Sale        string
			First, Last int64
			Lost        any
			Movements   []struct{ Seq int64 }
		}
	}
	if err := json.Unmarshal(body, &message); err != nil || message.Type != "stockgate.movements" {
		return fmt.Sprintf("message %s cannot be read: %v", id, err)
	}
	if before, again := r.bodies[id]; again {
		if before != string(body) {
			return "message " + id + " came twice with other bytes"
		}
		return ""
	}
	r.bodies[id] = string(body)
	d, last := message.Data, r.last[message.Data.Sale]
	r.last[d.Sale] = d.Last
	if d.First != last+1 || d.Lost != nil || int64(len(d.Movements)) != d.Last-d.First+1 {
		return fmt.Sprintf("message %s has numbers %d to %d with %d movements, lost %v, after number %d", id, d.First, d.Last, len(d.Movements), d.Lost, last)
	}
	return ""
}
