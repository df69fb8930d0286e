package crowd

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// Look asks at a door where the order of an attempt stands that was told a place. With patience
// the answer may wait for news.
func (c *Crowd) Look(d *Door, a *auditor.Attempt, patience string) *auditor.Look {
	header := ""
	if patience != "" {
		header = "Prefer: wait=" + patience + "\r\n"
	}
	return c.look(d, a, "GET", header)
}

// Cancel takes the order of an attempt out of the line.
func (c *Crowd) Cancel(d *Door, a *auditor.Attempt) *auditor.Look { return c.look(d, a, "DELETE", "") }

func (c *Crowd) look(d *Door, a *auditor.Attempt, method, header string) *auditor.Look {
	l := &auditor.Look{Sent: c.History.Tick(), Edge: d.Name, Cancels: method == "DELETE", Of: a}
	defer c.History.Looked(l)
	k, err := d.take(true)
	if err != nil {
		l.Err = err.Error()
		return l
	}
	k.SetDeadline(time.Now().Add(2 * time.Minute))
	if err := k.ask(l, method+" "+a.Place+" HTTP/1.1\r\nHost: shop\r\n"+header+"\r\n"); err != nil {
		l.Err, l.Status, l.State = err.Error(), 0, ""
		k.drop()
		return l
	}
	l.Heard = c.History.Tick()
	if k.last {
		k.drop()
	} else {
		d.give(k)
	}
	return l
}

func (k *conn) ask(l *auditor.Look, text string) error {
	if _, err := io.WriteString(k, text); err != nil {
		return err
	}
	r, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	l.Status, l.State, l.Proof, k.last = r.StatusCode, r.Header.Get("Stockgate-Queue"), r.Header.Get("X-Order"), r.Close
	var said struct{ Order string }
	if l.State == "" && l.Proof == "" && json.Unmarshal(body, &said) == nil {
		l.Proof = said.Order
	}
	return nil
}
