package learn

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Names, folded, of what names a buyer; the best first.
var buyerNames = []string{"sub", "customerid", "userid", "buyerid", "accountid", "memberid", "uid", "customer", "user"}

// findBuyer says who buys: a claim of a verified token, the shop's own answer, the session, or a field.
func (l *learner) findBuyer() error {
	switch {
	case l.buyerByToken():
	case l.buyerByCart():
	case l.buyerByAnswer():
	case l.buyerByField([]string{"customerid", "userid", "buyerid", "accountid", "memberid"}):
	case l.buyerBySession():
	case l.buyerByField([]string{"email", "mail", "phone", "mobile", "buyer", "customer", "user"}):
	default:
		return fmt.Errorf("%s has nothing that tells who buys: no token, no cookie of a session, no field. Record while you are signed in. %s", l.order.Name(), howToExport)
	}
	return nil
}

// buyer writes a customer who is signed in.
func (l *learner) buyer(value, why string) {
	line := "buyer " + value
	l.plan.add(line, why)
	l.question("Do guests order too?", "The recording is of a customer who is signed in. An order without one is refused. If guests may buy, name a second value behind this one that tells them apart.", line)
}

// tokenKey stands for the key of the shop's token until the plan is written.
const tokenKey = "<<jwt>>"

// buyerByToken reads the shop's bearer token, in Authorization or in a cookie.
func (l *learner) buyerByToken() bool {
	_, text, _ := strings.Cut(l.order.Header.Get("Authorization"), " ")
	header, claims := tokenParts(text)
	cookie := ""
	if claims == nil {
		all := l.order.cookies()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if h, c := tokenParts(all[name]); c != nil && l.cookieName(name) {
				header, claims, cookie = h, c, name
				break
			}
		}
	}
	claim := claimOf(claims)
	if claim == "" {
		return false
	}
	l.plan.add(l.jwtOption(header, claims, cookie), because("has the token", l.order.Exchange))
	l.buyer("{jwt."+claim+"}", because("a claim of its token", l.order.Exchange))
	return true
}

// claimOf finds the claim that names a buyer.
func claimOf(claims map[string]any) string {
	for _, want := range buyerNames {
		for _, name := range slices.Sorted(maps.Keys(claims)) {
			if text, ok := scalar(claims[name]); ok && folded(name) == want && text != "" && nameLike.MatchString(name) {
				return name
			}
		}
	}
	return ""
}

// jwtOption writes how tokens are verified. The key is never in a recording.
func (l *learner) jwtOption(header, claims map[string]any, cookie string) string {
	alg, _ := header["alg"].(string)
	issuer, _ := claims["iss"].(string)
	key := "hmac {env.SHOP_JWT_SECRET}"
	about := "Its tokens are signed with a secret (" + algorithm(alg) + "). Set the variable to it."
	if !strings.HasPrefix(alg, "HS") {
		key = "https://shop.example.com/.well-known/jwks.json"
		if u, err := url.Parse(issuer); err == nil && u.Scheme == "https" && validHost(u.Host) {
			key = "https://" + u.Host + "/.well-known/jwks.json"
		}
		about = "Its tokens are signed with a key (" + algorithm(alg) + "). Give the address of the issuer's JWKS; this one is only where many issuers have it."
	}
	l.question("Which key verifies the shop's tokens?", about, "jwt "+tokenKey)
	l.plan.jwt = key
	text := "jwt " + tokenKey
	var inner []string
	if _, ok := l.hidden.issuer(issuer); ok {
		inner = append(inner, "issuer "+issuer)
	}
	if audience, ok := claims["aud"].(string); ok {
		if _, ok := l.hidden.issuer(audience); ok {
			inner = append(inner, "audience "+audience)
		}
	}
	if cookie != "" {
		inner = append(inner, "cookie "+cookie)
	}
	if len(inner) > 0 {
		text += " {\n\t" + strings.Join(inner, "\n\t") + "\n}"
	}
	return text
}

func algorithm(alg string) string {
	if len(alg) == 5 && wordLike.MatchString(alg) || alg == "EdDSA" {
		return alg
	}
	return "unknown"
}

// issuer reports whether the name of an issuer or an audience may be written: an address or a word.
func (s secrets) issuer(name string) (string, bool) {
	if u, err := url.Parse(name); err == nil && u.Scheme == "https" && validHost(u.Host) && u.User == nil && u.RawQuery == "" {
		path := strings.Trim(u.Path, "/")
		return name, (path == "" || wordLike.MatchString(path)) && !looksRandom(path)
	}
	return s.word(name)
}

// buyerByCart reads the customer of the cart that is looked up.
func (l *learner) buyerByCart() bool {
	if l.cart == nil {
		return false
	}
	path := customerIn(l.cart.tree, l.hidden)
	if path == "" {
		return false
	}
	l.buyer("{lookup."+path+"}", because("the customer of the cart", l.cart.Exchange))
	return true
}

// customerIn finds the id of a customer in an answer.
func customerIn(tree any, hidden secrets) string {
	for _, leaf := range leavesOf(tree) {
		name := folded(leaf.name())
		parent := ""
		if len(leaf.path) > 1 {
			parent = folded(leaf.path[len(leaf.path)-2])
		}
		owns := slices.Contains([]string{"customer", "user", "account", "member", "buyer", "me", "activecustomer"}, parent)
		named := slices.Contains([]string{"customerid", "userid", "accountid", "memberid", "buyerid"}, name)
		if (named || owns && (name == "id" || name == "uid")) && !slices.ContainsFunc(leaf.path, isNumber) && hidden.path(leaf.dotted()) {
			return leaf.dotted()
		}
	}
	return ""
}

// buyerByAnswer finds an answer that tells who is signed in, and that the order's cookie can ask for. One gate
// has one lookup.
func (l *learner) buyerByAnswer() bool {
	if l.cart != nil || !l.order.hasCredentials() || l.order.op != nil {
		return false
	}
	for _, x := range slices.Backward(l.fromShop()) {
		if x.Method != "GET" || x.Status != 200 || !x.hasCredentials() || strings.Contains(x.pattern(l.hidden), "*") {
			continue
		}
		tree := x.answerTree()
		path := customerIn(tree, l.hidden)
		last := folded(lastOf(strings.Join(x.segments(), ".")))
		if _, ok := scalar(at(tree, "id")); path == "" && ok && slices.Contains([]string{"me", "account", "profile", "user", "customer", "session", "whoami"}, last) {
			path = "id"
		}
		if path == "" {
			continue
		}
		l.plan.add("lookup GET http://"+shopAddress+x.pattern(l.hidden), because("tells who is signed in", x))
		l.buyer("{lookup."+path+"}", because("the customer", x))
		l.plan.asksBuyer = true
		return true
	}
	return false
}

// buyerBySession takes the session for the buyer, which is weak: who signs in again is another one.
func (l *learner) buyerBySession() bool {
	value := ""
	if name := l.clearCookie(); name != "" {
		value = "{cookie." + name + "}"
	} else if names := l.sessionHeaders(); len(names) > 0 {
		value = "{header." + names[0] + "}"
	} else {
		return false
	}
	line := "buyer " + value
	if l.oddCookie() {
		l.question("Which cookie is the session?", "The order has one whose name looks random, so it is not written: its name may be another one for each buyer. Give `learn` a second recording, by another buyer, and it is used if both have it.", line)
	}
	l.question("Which answer of the shop tells who is signed in?", "Only the session tells the buyer. A client that begins another session is another buyer, and each has a limit of its own. "+
		"If the shop has a path that answers with the customer's id in JSON, write `lookup GET http://"+shopAddress+"/…` and `buyer {lookup.id}`.", line)
	l.plan.add(line, because("carries the session", l.order.Exchange))
	return true
}

// buyerByField reads the buyer from a field of the order.
func (l *learner) buyerByField(names []string) bool {
	kind, fields := l.order.body()
	if l.order.op != nil || kind == kindNone {
		return false
	}
	for _, want := range names {
		for _, leaf := range leavesOf(fields) {
			if folded(leaf.name()) != want || slices.ContainsFunc(leaf.path, isNumber) || !nameLike.MatchString(leaf.name()) || !isPlainPath(leaf.path) {
				continue
			}
			line := "buyer {" + kind + "." + leaf.dotted() + "}"
			l.question("What identifies the buyer?", "The order request names its buyer in a field that each client can set to anything. If the shop has logins, read its token with `jwt`, or its session.", line)
			l.plan.add(line, because("names the buyer", l.order.Exchange))
			return true
		}
	}
	return false
}

func isPlainPath(path []string) bool {
	return !slices.ContainsFunc(path, func(p string) bool { return !nameLike.MatchString(p) })
}
