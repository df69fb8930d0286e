package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

// noApp is the answer while no configuration with a stockgate app runs.
const noApp = "no stockgate app is running: is there a `stockgate` block in the global options?"

// Write answers in JSON. Unlike Caddy's own encoder it leaves <, > and & as they are: the
// answers are read in a terminal, and never by a browser as HTML.
func Write(w http.ResponseWriter, status int, answer any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body) // ends with a line feed
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
	return nil
}

// Refuse answers with an error by which a request is refused.
func Refuse(w http.ResponseWriter, err error) error { return refuse(w, apiError(err)) }

// refuse answers with an error and logs it, as Caddy does with errors of its own endpoints.
func refuse(w http.ResponseWriter, e caddy.APIError) error {
	caddy.Log().Named("admin.api.stockgate").Error("request error", zap.Error(e), zap.Int("status_code", e.HTTPStatus))
	return Write(w, e.HTTPStatus, refusal{e, changesOf(e.Err)})
}

// refusal is the answer to a request that is refused.
type refusal struct {
	caddy.APIError
	// Changes are what a dry run would have changed.
	Changes []string `json:"changes,omitempty"`
}

// RefusedChange makes the error of a dry run that would be refused, and would have made these changes.
func RefusedChange(err error, changes []string) error { return &refusedChange{err, changes} }

// refusedChange is why a dry run would be refused, and what it would have changed.
type refusedChange struct {
	error
	changes []string
}

func (e *refusedChange) Unwrap() error { return e.error }

func changesOf(err error) []string {
	if refused, ok := errors.AsType[*refusedChange](err); ok {
		return refused.changes
	}
	return nil
}
