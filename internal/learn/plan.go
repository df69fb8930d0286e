package learn

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// plan is what will be written.
type plan struct {
	host      string // of the site
	shop      string // host:port of the shop
	given     string // what the operator says that it is
	matcher   []option
	check     []option // the options of stockgate_check; none: there is no check
	changes   []option // its matcher
	gate      []option
	after     []option // directives behind the gate
	lines     *linesFrom
	jwt       string
	asksBuyer bool   // the lookup tells the buyer, and not the cart
	ref       string // its value in the recording; it is not written
	cartID    string // where the lookup has the id of the cart
	backend   bool
	hook      string // the path of the payment's webhook
	confirms  bool
	atRoot    []option // beside the gate: where the site is
	known     *known   // the shop; nil: the configuration is inferred
}

// option is a line of the Caddyfile, or several, with why it is there.
type option struct {
	text string
	why  string
}

// because names the recorded requests on which an option rests.
func because(what string, requests ...*Exchange) string {
	var names []string
	for _, x := range requests {
		names = append(names, x.Name())
	}
	if what == "" {
		return strings.Join(names, ", ")
	}
	return strings.Join(names, ", ") + ": " + what
}

func seeQuestion(n int) string { return fmt.Sprintf("question %d in questions.md", n) }

func (p *plan) add(text, why string) { p.gate = append(p.gate, option{text, why}) }

// shopAddress stands for where the shop listens until the plan is written.
const shopAddress = "<<shop>>"

// place says where the site and the shop are, and which requests are orders.
func (l *learner) place() {
	p := l.plan
	asksShop, asksName := l.addresses()
	if asksShop {
		l.askShop("reverse_proxy " + shopAddress)
	}
	why := because("", l.order.Exchange)
	if asksName {
		l.askName(":8080 {")
	}
	p.atRoot = []option{{p.host, why}}
	l.matchOrder(why)
}

// addresses finds where the site and the shop are, as far as the recording tells.
func (l *learner) addresses() (asksShop, asksName bool) {
	p, u := l.plan, l.order.URL
	p.host, p.shop, p.given = u.Hostname(), l.options.Shop, l.options.Shop
	local := net.ParseIP(p.host) != nil || p.host == "localhost" || !validHost(p.host)
	if asksShop = p.shop == ""; asksShop {
		p.shop = "127.0.0.1:9000"
		if local && u.Port() != "" && validHost(p.host) {
			p.shop = u.Host
		}
	}
	if local {
		p.host = ":8080"
	}
	return asksShop, local
}

func (l *learner) askShop(line string) {
	l.question("Where does the shop listen?", "The recording shows the address that browsers use. Behind the gate Caddy needs the shop's own, host:port, which buyers must not reach directly.", line)
}

func (l *learner) askName(line string) {
	l.question("Under which name do buyers reach the shop?", "The recording was made at an address without a public name. Caddy gets a certificate for a name.", line)
}

func validHost(host string) bool {
	return host != "" && strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789.-") == ""
}

// matchOrder names the order request by method and path, and by its operation.
func (l *learner) matchOrder(why string) {
	p, x := l.plan, l.order
	path := x.pattern(l.hidden)
	if x.op != nil {
		p.matcher = []option{{path + "*", ""}}
		p.add("graphql "+x.op.field, because("the field of its mutation", x.Exchange))
		return
	}
	paths := path
	if !strings.HasSuffix(path, "*") && path != "/" {
		paths += " " + path + "/"
	}
	if l.operationInBody(path) {
		return
	}
	p.matcher = []option{{"method " + methodName(x.Method), why}, {"path " + paths, why}}
	if query := l.operationInQuery(path); query != "" {
		p.matcher = append(p.matcher, option{"query " + query, because("names the operation", x.Exchange)})
		p.add("also_query "+query[:strings.Index(query, "=")], because("names the operation", x.Exchange))
		return
	}
	if strings.Contains(path, "*") {
		l.question("Which parts of the order's path differ from order to order?", "Numbers and ids in the path are written as *. A part that is always the same belongs into the path.", "path "+paths)
	}
	if names := l.parameters(x.Exchange); len(names) > 0 {
		l.question("Does the query name the route?", fmt.Sprintf("The order request has a query (%s). If the shop takes a parameter for a route, the matcher needs `query`, and the gate `also_query`.", strings.Join(names, ", ")), "path "+paths)
	}
}

// parameters returns the parameters of a request whose names may be written.
func (l *learner) parameters(x *Exchange) (names []string) {
	for name := range x.URL.Query() {
		if l.hidden.name(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
