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
		if !l.cookieName(name) || slices.ContainsFunc(notSessions, func(w string) bool { return strings.Contains(lower, w) }) {
			continue
		}
		if set[name] || namesSession(name) {
			names = append(names, name)
		}
	}
	return names
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

func (l *learner) cookieName(name string) bool {
	return wordLike.MatchString(name) && !l.hidden[name] && !looksRandom(name)
}
