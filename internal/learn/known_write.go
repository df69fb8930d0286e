package learn

import (
	"fmt"
	"strings"

	"github.com/stockgate/stockgate/internal/recipe"
)

// inferKnown fills the plan with the configuration of the known shop, and asks what no recording shows.
func (l *learner) inferKnown() {
	p, k := l.plan, l.plan.known
	p.confirms = true
	asksShop, asksName := l.addresses()
	defaults := map[string]string{"SHOP": p.shop}
	if asksShop && !strings.Contains(p.shop, l.order.URL.Host) {
		p.shop = k.Default("SHOP")
		delete(defaults, "SHOP")
	}
	if !asksName {
		defaults["SITE"] = p.host
	}
	k.text = k.Here(defaults)
	l.askKnown()
	if asksShop {
		l.askShop(recipe.LineWith(k.text, "reverse_proxy {$SHOP"))
	}
	if asksName {
		l.askName(recipe.LineWith(k.text, "{$SITE"))
	}
	l.askRedis(recipe.LineWith(k.text, "{$REDIS"))
	for _, v := range k.Variables {
		if v.Question != "" {
			l.question(v.Question, "Set the environment variable "+v.Name+": "+v.Text+".", recipe.LineWith(k.text, k.Mentions(v.Name)))
		}
	}
	for _, q := range k.Questions {
		l.question(q.Title, q.Text, recipe.LineWith(k.text, q.Line))
	}
	l.askAboutOrigins(l.siteLine())
	l.askKnownDoors()
	l.askItems()
}

// askKnown says what the configuration is, and on what that rests.
func (l *learner) askKnown() {
	k := l.plan.known
	l.question(fmt.Sprintf("Is this %s %s?", k.Name, k.Versions), fmt.Sprintf("The recording has the requests of %s (%s), so the configuration is the one in docs/%s.md, which is tested with version %s. "+
		"A recording does not show the version: look it up. Other versions may have other doors.", k.Name, because("", k.by[:min(len(k.by), 4)]...), k.ID, k.Tested), l.siteLine())
}

func (l *learner) siteLine() string { return recipe.LineWith(l.plan.known.text, "{$SITE") }

func (l *learner) askKnownDoors() {
	k := l.plan.known
	if len(k.unknown) > 0 {
		l.question("Can these requests place an order?", fmt.Sprintf("%s %s does not have them, so they are of a plugin, or of another version: %s. The configuration passes them on. If one can place an order, put a gate before it.",
			k.Name, k.Versions, strings.Join(k.unknown[:min(len(k.unknown), 20)], "; ")), l.siteLine())
	}
	var doors []string
	for _, d := range k.Doors {
		doors = append(doors, d.Door+": "+d.Text)
	}
	l.question("By which other ways can an order be placed?", fmt.Sprintf("These versions of %s have these doors: %s. Look for what your plugins add.", k.Name, strings.Join(doors, "; ")), "respond 404")
}

// knownCaddyfile writes the configuration of the known shop: as it is tested, with the addresses of the recording,
// and above its lines the questions that are open.
func (l *Learned) knownCaddyfile(t Addresses) string {
	k := l.plan.known
	if t.Store != "" {
		return k.Checked(t.Global, t.Store, t.Site+" {\n\tbind "+t.Bind, t.Shop)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s %s, known by: %s.\n# Tested with version %s.\n", k.Name, k.Versions, because("", k.by[:min(len(k.by), 4)]...), k.Tested)
	noted := make(map[string]bool)
	for line := range strings.Lines(k.text) {
		text := strings.TrimSpace(line)
		if why := l.whyKnown(text); why != "" && !noted[text] {
			noted[text] = true
			b.WriteString(line[:strings.Index(line, text)] + "# " + why + "\n")
		}
		b.WriteString(line)
	}
	return b.String()
}

// whyKnown says on what a line rests that is not as in the tested configuration, and which questions are about it.
func (l *Learned) whyKnown(line string) string {
	var parts []string
	if strings.Contains(line, "{$SITE:"+l.plan.host+"}") {
		parts = append(parts, because("", l.Order))
	}
	for i, q := range l.Questions {
		if q.Line == line && line != "" {
			parts = append(parts, seeQuestion(i+1))
		}
	}
	return strings.Join(parts, "; ")
}

// Known names the shop whose tested configuration this is; empty: the configuration is inferred.
func (l *Learned) Known() string {
	if l.plan.known == nil {
		return ""
	}
	return l.plan.known.Name + " " + l.plan.known.Versions
}

// Closed asks about requests that do not reach the shop, because the configuration of a known shop has only the
// paths of its API.
func (l *Learned) Closed(requests []*Exchange) {
	if len(requests) == 0 {
		return
	}
	var names []string
	for _, x := range requests[:min(len(requests), 20)] {
		names = append(names, x.Name())
	}
	l.Questions = append(l.Questions, Question{"What answers the other requests to this host?", fmt.Sprintf("These are not of the API of %s, and are answered with 404: %s. If a storefront is at this host, "+
		"put a `handle` for its paths before this one. Never pass on what can place an order.", l.Known(), strings.Join(names, "; ")), "respond 404"})
}
