package gates

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
)

// beginBypass answers POST gates/{name}/bypass, and POST bypass for the only gate. It does not need Redis.
func beginBypass(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	var asked adminapi.BypassRequest
	if err := request.JSON(r, serve.SmallBody, &asked); err != nil {
		return nil, err
	}
	length, err := time.ParseDuration(asked.For)
	switch {
	case asked.For == "":
		return nil, request.Bad("for is missing: say for how long orders pass, such as 15m; it ends by itself then")
	case err != nil || length < adminapi.LeastBypass || length > adminapi.MostBypass:
		return nil, request.Bad("for %.40q: a bypass takes a length of time from %v to %v, such as 15m", asked.For, adminapi.LeastBypass, adminapi.MostBypass)
	case len(asked.Reason) > adminapi.MaxBypassText || strings.ContainsFunc(asked.Reason, func(r rune) bool { return !unicode.IsPrint(r) }):
		return nil, request.Bad("reason: it is text of up to %d bytes, without control characters", adminapi.MaxBypassText)
	}
	of, deciding, err := judge.Of(o.App).Bypassable(r.PathValue("name"))
	if err != nil {
		return nil, request.Bad("%w", err)
	}
	of.By, of.Reason, of.For = o.By, strings.TrimSpace(asked.Reason), length
	begun, err := o.App.BeginBypass(of)
	if err != nil {
		return nil, err
	}
	o.Log.Warn("a bypass begins: "+begun.Sentence(), zap.String("by", o.By), zap.String("gate", begun.Gate), zap.Time("until", begun.Until))
	return &adminapi.BypassBegun{Bypass: begun, Deciding: append([]string{}, deciding...)}, nil
}

// endBypass answers DELETE gates/{name}/bypass, and DELETE bypass for the only one.
func endBypass(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	name, own := r.PathValue("name"), ownBypasses(o)
	if name == "" && len(own) == 1 {
		name = own[0].Gate
	} else if name == "" && len(own) > 1 {
		return nil, request.Bad("%d gates are bypassed: name one of them", len(own))
	}
	ended, was, err := o.App.EndBypass(name)
	switch {
	case err != nil:
		return nil, err
	case !was && name == "":
		return nil, serve.NotFound(errors.New("no bypass is on at this edge: 'caddy stockgate bypass' lists the ones of other edges"))
	case !was:
		return nil, serve.NotFound(fmt.Errorf("no bypass of %.80q is on at this edge: 'caddy stockgate bypass' lists them", name))
	}
	o.Log.Warn("a bypass is ended", zap.String("by", o.By), zap.String("gate", ended.Gate), zap.Int64("orders", ended.Orders), zap.Int64("taken", ended.Taken))
	return &ended, nil
}

func ownBypasses(o *serve.Operator) []adminapi.Bypass {
	own, _ := o.App.OwnBypasses()
	return own
}

func listBypasses(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	list := adminapi.BypassList{Bypasses: append([]adminapi.Bypass{}, o.App.Bypassed()...)}
	if _, err := o.App.OwnBypasses(); err != nil {
		list.Unread = err.Error()
	}
	return list, nil
}
