package doctor

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/fast"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// gates examines the gates of this configuration, and the handlers before them.
func (d *examination) gates() {
	all := judge.Of(d.app).List()
	if len(all) == 0 {
		d.Add(adminapi.LevelWarning, "gate", "the configuration has no gate: nothing is sold here; put `stockgate` before the shop's order route")
		return
	}
	plans := make(map[*caddyhttp.Server]*fast.RoutePlan)
	for _, g := range all {
		if server := judge.CaddyServer(g); server != nil && plans[server] == nil {
			plans[server] = fast.Compile(server)
		}
	}
	for _, g := range all {
		d.gate(g, plans[judge.CaddyServer(g)], all)
	}
	d.listeners(all)
	for _, finding := range d.app.ChosenAddresses() {
		d.Add(adminapi.LevelWarning, "client_ip", "%s", finding)
	}
}

// gate examines one gate. plan is that of its server; nil: the gate has no server. all are the gates of the
// configuration.
func (d *examination) gate(g *judge.Judge, plan *fast.RoutePlan, all []*judge.Judge) {
	name := g.Title()
	if plan != nil {
		if isBare, seen := plan.IsBare(g); isBare {
			d.Add(adminapi.LevelWarning, "guard", "%s has no stockgate_guard before it, so it can be avoided by paths that the shop reads otherwise: add `stockgate_guard` to the site, outside of blocks that have a matcher", name)
		} else if seen {
			d.Add(adminapi.LevelOK, "guard", "%s has a stockgate_guard before it", name)
		}
	}
	for _, warning := range g.Guarded().Warnings {
		d.Add(adminapi.LevelWarning, "guard", "%s: %s", name, warning)
	}
	for _, warning := range g.UngatedSites() {
		d.Add(adminapi.LevelWarning, "gate", "%s", warning)
	}
	if reads := g.LacksAuthentication(); reads != "" {
		d.Add(adminapi.LevelWarning, "buyer", "%s reads %s, which is always empty, because no authentication comes before the gate: add one there, such as basic_auth, or read the buyer elsewhere", name, reads)
	}
	for _, risk := range g.Risks() {
		d.Add(adminapi.LevelWarning, risk.About, "%s: %s", name, risk.Text)
	}
	var sells judge.Selling
	if g.Seller() != nil {
		sells = g.Seller().Describe(all)
	}
	for _, risk := range sells.Risks {
		d.Add(adminapi.LevelWarning, risk.About, "%s", risk.Text)
	}
	if g.OtherItems == "pass" {
		if trouble := d.app.UnlistedTrouble(); trouble != "" && d.runtime.Ready() == nil {
			d.Add(adminapi.LevelError, "others", "%s: %s", name, trouble)
		} else {
			d.Add(adminapi.LevelOK, "others", "%s lets items pass that no sale lists", name)
		}
	}
	d.shadow(g, name)
	if g.Seller() != nil && !g.InShadow {
		d.Add(adminapi.LevelOK, "probe", "%s %s", name, sells.Doubts)
		if sells.ByShop && !d.app.IsSettled() {
			d.Add(adminapi.LevelWarning, "outcome", "%s leaves it to the shop to confirm what it holds, and this edge has neither stockgate_api nor stockgate_resolve: unless another edge has, no order is ever confirmed, and each hold expires; add `stockgate_api`", name)
		}
	}
	if g.FastRefusals == nil {
		return
	}
	why := ""
	switch {
	case plan == nil:
	case fast.Unsuited(judge.CaddyServer(g)) != "":
		why = "on this server, because " + fast.Unsuited(judge.CaddyServer(g))
	case !plan.Reaches(g):
		why = "because " + plan.Obstacle(g)
	}
	if why != "" {
		d.Add(adminapi.LevelWarning, "fast_refusals", "%s asks for fast refusals and has none %s", name, why)
	} else {
		d.Add(adminapi.LevelOK, "fast_refusals", "%s has fast refusals, where clients come without TLS", name)
	}
}

// unknownSales looks for gates that sell for a sale of a fixed name that there is none of.
func (d *examination) unknownSales(ids []string) {
	for _, g := range judge.Of(d.app).List() {
		for _, id := range g.Sale {
			if !strings.Contains(id, "{") && !slices.Contains(ids, id) {
				d.Add(adminapi.LevelWarning, "sale", "%s names the sale %s, which does not exist, so that it refuses every attempt: apply its sale file, or leave `sale` out, and the items name their sale", g.Title(), id)
			}
		}
	}
}

// listeners looks for listener wrappers that no gate uses.
func (d *examination) listeners(all []*judge.Judge) {
	for server, wrapper := range d.app.Listeners() {
		if !slices.ContainsFunc(all, func(g *judge.Judge) bool {
			return g.Server() != nil && g.Server().Name() == server && g.FastRefusals != nil
		}) {
			d.Add(adminapi.LevelWarning, "fast_refusals", "the server at %v has the listener wrapper stockgate, and none of its gates has fast_refusals: add it to a gate, or take the wrapper away", wrapper.Addresses())
		}
	}
}

// limits looks for limits of an open sale that a client can use up for other buyers.
func (d *examination) limits(l *edge.Listing) {
	if l.Status != sale.Open {
		return
	}
	for _, limit := range l.Sale.Limits {
		if limit.Shadow {
			d.Add(adminapi.LevelWarning, "shadow", "%s has the limit %s in shadow: it refuses nothing until the sale is applied without `shadow: true`", l.Sale.ID, limit.String())
		}
	}
	for _, g := range judge.Of(d.app).List() {
		var chosen []string
		for _, limit := range l.Sale.Limits {
			if g.OnlyChecks() || limit.Every == "order" || !g.AnyoneCounts(limit.Per) {
				continue
			}
			if per := strings.ReplaceAll(string(limit.Per), "+", ", "); !slices.Contains(chosen, per) {
				chosen = append(chosen, per)
				d.Add(adminapi.LevelWarning, "limits", "%s has a limit per %s, and the gate %s takes that from what a client sends: a client can avoid the limit, or use up that of other buyers; "+
					"take it from your authentication or jwt, or count a verified identity together with it, such as `per: [%s, ip]`", l.Sale.ID, per, strconv.Quote(g.Name), per)
			}
		}
	}
}

// otherRules looks for edges that tell persons apart by other rules than this one.
func (d *examination) otherRules() {
	ctx, cancel := d.call()
	defer cancel()
	switch others, err := d.app.OtherRules(ctx); {
	case err != nil:
		d.Add(adminapi.LevelError, "identities", "whether all edges have the same `identities` cannot be read: %v", err)
	case others != "":
		d.Add(adminapi.LevelError, "identities", "%s", others)
	}
}

// recounted looks for an open sale whose buyers were counted by other rules than now.
func (d *examination) recounted(l *edge.Listing) {
	if was, changed := d.runtime.CountedBy(l.Sale.ID); changed && l.Status == sale.Open {
		d.Add(adminapi.LevelWarning, "identities", "%s opened with other `identities` than now (%s): %s", l.Sale.ID, cmp.Or(was, "none"), app.RulesChanged)
	}
}

// unread looks for identities that a limit of a sale counts and that a gate does not read.
func (d *examination) unread(l *edge.Listing) {
	if l.Status == sale.Closed {
		return
	}
	var kinds []string
	need := func(per sale.Identities) {
		for kind := range per.All {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	for _, limit := range l.Sale.Limits {
		if !limit.Shadow {
			need(limit.Per)
		}
	}
	if l.Sale.Unpaid != nil {
		need(l.Sale.Unpaid.Per)
	}
	becomes := "every attempt that the limit counts is refused there as malformed"
	if l.Sale.Missing == sale.SkipMissing {
		becomes = "attempts there are not counted by it, because the sale has `missing: skip`"
	}
	for _, g := range judge.Of(d.app).List() {
		for _, kind := range kinds {
			if g.MaySell(l.Sale.ID) && !g.Reads(kind) {
				d.Add(adminapi.LevelWarning, "limits", "%s has a limit per %s, and the gate %s does not read that identity: %s; add `identity %s <value>` to the gate, or take %s out of the sale's limits",
					l.Sale.ID, kind, strconv.Quote(g.Name), becomes, kind, kind)
			}
		}
	}
}

// selling is how the gates of a configuration sell.
func selling(a *app.App) iter.Seq[judge.Selling] {
	return func(yield func(judge.Selling) bool) {
		for _, j := range judge.Of(a).List() {
			if j.Seller() != nil && !yield(j.Seller().Describe(nil)) {
				return
			}
		}
	}
}
