package token_test

import (
	"github.com/stockgate/stockgate/token"
)

// orders compares the token with the order.
func (f *forge) orders() {
	line := func(sku string, n int64, region string) token.Line {
		return token.Line{SKU: sku, Quantity: n, Region: region}
	}
	a, b := line("20002001", 2, ""), line("20002002", 1, "beijing")
	for _, c := range []struct {
		name  string
		lines []token.Line
		want  string
	}{
		{"lines swapped", []token.Line{b, a}, "ok"},
		{"quantities swapped", []token.Line{line("20002001", 1, ""), line("20002002", 2, "beijing")}, "lines"},
		{"equal lines summed", []token.Line{line("20002001", 1, ""), b, line("20002001", 1, "")}, "ok"},
		{"a region for stock without regions", []token.Line{line("20002001", 2, "beijing"), b}, "ok"},
		{"regions summed for stock without", []token.Line{line("20002001", 1, "beijing"), line("20002001", 1, ""), b}, "ok"},
		{"another region", []token.Line{a, line("20002002", 1, "shanghai")}, "lines"},
		{"no region", []token.Line{a, line("20002002", 1, "")}, "lines"},
		{"too few units", []token.Line{line("20002001", 1, ""), b}, "lines"},
		{"too many units", []token.Line{line("20002001", 3, ""), b}, "lines"},
		{"a line less", []token.Line{a}, "lines"},
		{"a line more", []token.Line{a, b, line("x", 1, "")}, "lines"},
		{"a line twice", []token.Line{a, b, a}, "lines"},
		{"an order without lines", []token.Line{}, "lines"},
		{"a line of 0", []token.Line{a, b, line("20002001", 0, "")}, "lines"},
		{"a line below 0", []token.Line{line("20002001", -1, ""), line("20002001", 3, ""), b}, "lines"},
		{"a sku in capitals", []token.Line{line("20002001 ", 2, ""), b}, "lines"},
		{"a sku with its region", []token.Line{a, line("20002002@beijing", 1, "")}, "lines"},
		{"a name of the library's own", []token.Line{a, b, line("constructor", 1, "")}, "lines"},
		{"a sum beyond 64 bits", []token.Line{line("20002001", 1<<62, ""), line("20002001", 1<<62, ""), line("20002001", 1<<62, ""), line("20002001", 1<<62, ""), a, b}, "lines"},
	} {
		s := f.step(f.good, c.want)
		s.Lines = c.lines
		f.add("order: "+c.name, s)
	}
	two := claims()
	two.Lines = []token.Line{line("a", 2, ""), line("a", 3, "x"), line("a", 1, "")}
	most := claims()
	most.Lines = []token.Line{line("a", token.MaxUnits, "")}
	numbers := claims()
	numbers.Lines = []token.Line{line("007", 1, ""), line("7", 2, "")}
	for _, c := range []struct {
		name  string
		held  token.Claims
		lines []token.Line
		want  string
	}{
		{"stock with and without regions", two, []token.Line{line("a", 3, ""), line("a", 3, "x")}, "ok"},
		{"the region's own stock first", two, []token.Line{line("a", 4, "x"), line("a", 2, "")}, "lines"},
		{"the most units", most, []token.Line{line("a", token.MaxUnits, "")}, "ok"},
		{"skus that are numbers", numbers, []token.Line{line("007", 1, ""), line("7", 2, "")}, "ok"},
		{"bundles as they were ordered", wine(), []token.Line{line("gift", 1, "eu"), line("carton", 2, ""), line("bottle", 1, "")}, "ok"},
		{"the components of bundles", wine(), []token.Line{line("bottle", 26, ""), line("glass", 2, "eu")}, "lines"},
		{"skus that are equal numbers", numbers, []token.Line{line("7", 3, "")}, "lines"},
	} {
		s := f.step(mustSign(f.t, f.key, c.held), c.want)
		s.Lines = c.lines
		f.add("order: "+c.name, s)
	}
	for _, c := range []struct {
		name, subject string
		any           bool
		want          string
	}{
		{"another buyer", "buyer-8", false, "subject"},
		{"the buyer in capitals", "Buyer-7", false, "subject"},
		{"no buyer", "", false, "subject"},
		{"another buyer where any may be", "buyer-8", true, "subject"},
		{"the buyer where any may be", "buyer-7", true, "ok"},
	} {
		s := f.step(f.good, c.want)
		s.Subject, s.AnySubject = c.subject, c.any
		f.add("order: "+c.name, s)
	}
	both := f.step(f.good, "subject")
	both.Subject, both.Lines = "buyer-8", []token.Line{}
	f.add("order: the buyer before the lines", both)
	other := claims()
	other.Subject = "__proto__"
	s := f.step(mustSign(f.t, f.key, other), "ok")
	s.Subject = "__proto__"
	f.add("order: a buyer whose name is the library's own", s)
}
