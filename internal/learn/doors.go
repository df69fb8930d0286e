package learn

import (
	"fmt"
	"slices"
	"strings"
)

// findDoors asks about what a recording cannot show: other ways to order, and requests past the gate.
func (l *learner) findDoors() {
	l.askAboutRivals()
	l.askAboutOrigins(l.plan.host + " {")
	changing := l.changing()
	list := "The recording has no other request that may change something."
	if len(changing) > 0 {
		list = "Requests in the recording that may change something: " + strings.Join(changing, "; ") + "."
	}
	l.question("Does the shop sell other items by the same request?", "The gate refuses items that no sale lists. Where buyers order ordinary goods by the same request, write `other_items pass`: these go to the shop without a reservation.", "other_items refuse")
	l.plan.add("other_items refuse", "")
	l.question("By which other ways can an order be placed?", list+" Name the other doors of the shop: an express checkout, an older version of its API, an app, the administrators' pages, a webhook. "+
		"Close each in stockgate_guard with `close <path>`, or put a gate before it.", "stockgate_guard")
	l.askItems()
}

func (l *learner) askItems() {
	l.question("Which items are sold, how many, and when?", "The sale file has the item of the recording. Its stock, its times and its limits are not in any recording.", "items:")
}

// changing lists the requests that may change something, the order aside.
func (l *learner) changing() (names []string) {
	for _, x := range l.fromShop() {
		name := methodName(x.Method) + " " + x.shown
		if op, _ := l.documents.operation(x); op != nil && op.kind == "query" {
			continue
		}
		if x.changes() && !l.isOrder(x) && !slices.Contains(names, name) && len(names) < 30 {
			names = append(names, name)
		}
	}
	return names
}

// askAboutRivals asks about requests that look like orders too.
func (l *learner) askAboutRivals() {
	if len(l.rivals) == 0 {
		return
	}
	var names []string
	for _, c := range l.rivals[:min(len(l.rivals), 5)] {
		names = append(names, c.Name())
	}
	l.question("Which request places the order?", fmt.Sprintf("The gate takes %s. These look like orders too: %s. If it is another one, run learn again with --order <entry>.", l.order.Name(), strings.Join(names, "; ")),
		l.plan.matcher[len(l.plan.matcher)-1].text)
}

// askAboutOrigins asks about other hosts of the shop that the browser calls.
func (l *learner) askAboutOrigins(line string) {
	var hosts []string
	for _, x := range l.recordings[0].Exchanges {
		host := x.URL.Host
		if host == l.order.URL.Host || l.isProvider(x.URL.Hostname()) || !validHost(x.URL.Hostname()) || slices.Contains(hosts, x.URL.Hostname()) || len(hosts) == 10 {
			continue
		}
		ours := siteOf(x.URL.Hostname()) == l.site || siteOf(x.URL.Hostname()) == siteOf(l.order.URL.Hostname())
		if ours && (x.changes() || x.answerTree() != nil) || x.Header.Get("Authorization") != "" {
			hosts = append(hosts, x.URL.Hostname())
		}
	}
	if len(hosts) > 0 {
		l.question("Can an order be placed at another host?", "The browser also calls "+strings.Join(hosts, ", ")+", past this site. If the shop takes orders there too, add the host to the site's address, and let no buyer reach the shop past the gate.",
			line)
	}
}
