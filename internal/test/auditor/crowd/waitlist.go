package crowd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// Person waits for units of a sale.
type Person struct {
	Sale, Buyer, Phone string
	Line               auditor.Line
	Place              string // where the person was told to ask
}

// Enter asks for an entry on the waiting list. A place that is told is the person's from then on.
func (c *Crowd) Enter(d *Door, p *Person) *auditor.Wait {
	body := Wish{Lines: []auditor.Line{p.Line}}.body()
	w := c.wait(d, p, "POST", "/waitlist", fmt.Sprintf("X-User-Id: %s\r\nX-Phone: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", p.Buyer, p.Phone, len(body), body))
	if w.Path != "" {
		p.Place = w.Path
	}
	return w
}

// Stands asks where a person stands.
func (c *Crowd) Stands(d *Door, p *Person) *auditor.Wait {
	return c.wait(d, p, "GET", p.Place, "\r\n")
}

// Withdraw takes a person off the list.
func (c *Crowd) Withdraw(d *Door, p *Person) *auditor.Wait {
	return c.wait(d, p, "DELETE", p.Place, "\r\n")
}

func (c *Crowd) wait(d *Door, p *Person, method, path, rest string) *auditor.Wait {
	w := &auditor.Wait{Sent: c.History.Tick(), Edge: d.Name, Method: method, Sale: p.Sale, Buyer: p.Buyer, Phone: p.Phone, Line: p.Line}
	if method != "POST" {
		w.Path = p.Place
	}
	defer c.History.Waited(w)
	k, err := d.take(true)
	if err != nil {
		w.Err = err.Error()
		return w
	}
	k.SetDeadline(time.Now().Add(2 * time.Minute))
	if err := k.hear(w, method+" "+path+" HTTP/1.1\r\nHost: shop\r\n"+rest); err != nil {
		w.Err, w.Status, w.Reason, w.WaitAnswer = err.Error(), 0, "", auditor.WaitAnswer{}
		k.drop()
		return w
	}
	w.Heard = c.History.Tick()
	if k.last {
		k.drop()
	} else {
		d.give(k)
	}
	return w
}

// hear sends a request about a waiting list and reads the answer.
func (k *conn) hear(w *auditor.Wait, text string) error {
	if _, err := io.WriteString(k, text); err != nil {
		return err
	}
	r, err := http.ReadResponse(k.in, &http.Request{Method: w.Method})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	k.last = r.Close
	w.Status, w.Reason, w.RetryAfter = r.StatusCode, r.Header.Get("Stockgate-Refusal"), r.Header.Get("Retry-After")
	if w.Method == "POST" {
		w.Path = r.Header.Get("Location")
	}
	if w.Status < 300 && json.Unmarshal(body, &w.WaitAnswer) != nil {
		return fmt.Errorf("the answer is no JSON: %.200s", body)
	}
	return nil
}
