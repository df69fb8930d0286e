package learn

import (
	"maps"
	"slices"
	"strings"
)

// notSessions are cookies of statistics and consent, and those against forged forms.
var notSessions = []string{"_ga", "_gid", "_fb", "_gcl", "ajs", "amp_", "consent", "csrf", "xsrf", "lang", "locale", "currency", "theme", "utm", "intercom", "hubspot", "_pk", "_hj"}

// sessionCookies returns the names of the order's cookies that are credentials: those that the shop has set for
// itself alone, or whose name says so.
func (l *learner) sessionCookies() (names []string) {
	set := l.httpOnly()
	all := l.order.cookies()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lower := strings.ToLower(name)
		if len(all[name]) < shortestSession || !l.cookieName(name) || slices.ContainsFunc(notSessions, func(w string) bool { return strings.Contains(lower, w) }) {
			continue
		}
		if set[name] || namesSession(name) {
			names = append(names, name)
		}
	}
	return names
}

// clearCookie returns a session's cookie that no other one of the order is mistaken for: some servers read
// session.sig as a part of session, so a gate refuses an order that has both and reads the second. The
// signature tells sessions apart as well. Empty: there is none.
func (l *learner) clearCookie() string {
	all := l.order.cookies()
	for _, name := range l.sessionCookies() {
		mistaken := false
		for other := range all {
			mistaken = mistaken || strings.HasPrefix(other, name+".") || strings.HasPrefix(other, name+"[")
		}
		if !mistaken {
			return name
		}
	}
	return ""
}

// namesSession reports whether a cookie of this name is a credential.
func namesSession(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc([]string{"sess", "sid", "auth", "token", "jwt", "cart", "login", "basket"}, func(w string) bool { return strings.Contains(lower, w) })
}

// httpOnly returns the cookies that the shop has set so that scripts cannot read them.
func (l *learner) httpOnly() map[string]bool {
	found := make(map[string]bool)
	for _, x := range l.fromShop() {
		for _, line := range x.AnswerHeader.Values("Set-Cookie") {
			for one := range strings.SplitSeq(line, "\n") { // as some browsers join them
				name, rest, _ := strings.Cut(one, "=")
				if strings.Contains(strings.ToLower(rest), "httponly") {
					found[strings.TrimSpace(name)] = true
				}
			}
		}
	}
	return found
}

// cookieName reports whether the name of a cookie may be written. One that looks random may be another one for each
// buyer, unless a second recording has it too.
func (l *learner) cookieName(name string) bool {
	return wordLike.MatchString(name) && !l.hidden[name] && (!looksRandom(name) || l.inAllOrders(name))
}

func (l *learner) inAllOrders(cookie string) bool {
	others := slices.Concat(l.again, l.refused)
	return len(others) > 0 && !slices.ContainsFunc(others, func(c *candidate) bool { return c.cookies()[cookie] == "" })
}

// oddCookie reports whether a cookie is left out because its name looks random.
func (l *learner) oddCookie() bool {
	for name, value := range l.order.cookies() {
		if len(value) >= shortestSession && namesSession(name) && !l.hidden[name] && !l.cookieName(name) {
			return true
		}
	}
	return false
}

// sessionHeaders returns the fields of the order's header that are credentials of their own, such as Cart-Token.
func (l *learner) sessionHeaders() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(l.order.Header)) {
		lower := strings.ToLower(name)
		named := strings.Contains(lower, "token") || strings.Contains(lower, "session")
		if named && !strings.Contains(lower, "csrf") && !strings.Contains(lower, "xsrf") && l.hidden.name(name) && len(l.order.Header.Get(name)) >= shortestSession {
			names = append(names, name)
		}
	}
	return names
}
