package learn

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// shopsRefusal writes refusals as the shop does.
func (l *learner) shopsRefusal() {
	for _, c := range l.refused {
		body, ok := l.refusalBody(c)
		if !ok || l.order.op != nil {
			continue
		}
		l.plan.add("refuse sold_out limit_reached "+strconv.Itoa(c.Status)+" `"+body+"`", because("how the shop refuses", c.Exchange))
		return
	}
}

// refusalBody writes a refused answer with the edge's own words in the place of texts.
func (l *learner) refusalBody(c *candidate) (string, bool) {
	object, ok := c.answerTree().(map[string]any)
	if !ok || len(object) > 8 {
		return "", false
	}
	var members []string
	for _, leaf := range leavesOf(object) {
		name := folded(leaf.name())
		if len(leaf.path) > 1 || !l.hidden.name(leaf.name()) {
			return "", false
		}
		text := leaf.text
		if slices.Contains([]string{"msg", "message", "error", "title", "detail", "reason", "description"}, name) && strings.Contains(text, " ") {
			members = append(members, fmt.Sprintf("%q:\"{title}\"", leaf.name()))
			continue
		}
		word, ok := l.hidden.word(text)
		if !ok {
			return "", false
		}
		if _, isText := object[leaf.name()].(string); isText {
			word = strconv.Quote(word)
		}
		members = append(members, fmt.Sprintf("%q:%s", leaf.name(), word))
	}
	return "{" + strings.Join(members, ",") + "}", len(members) > 0
}

// paymentPage returns where a buyer pays, at another company, because the order's answer leads there.
func (l *learner) paymentPage() *url.URL {
	if to := l.order.location(); to != nil && siteOf(to.Hostname()) != siteOf(l.order.URL.Hostname()) && siteOf(to.Hostname()) != l.site {
		return to
	}
	for _, leaf := range leavesOf(l.order.answerTree()) {
		to, err := url.Parse(leaf.text)
		if err != nil || to.Scheme != "https" && to.Scheme != "http" || siteOf(to.Hostname()) == siteOf(l.order.URL.Hostname()) || siteOf(to.Hostname()) == l.site {
			continue
		}
		if l.isProvider(to.Hostname()) || slices.ContainsFunc(l.recordings[0].Exchanges, func(x *Exchange) bool { return x.Entry > l.order.Entry && x.URL.Host == to.Host }) {
			return to
		}
	}
	return nil
}
