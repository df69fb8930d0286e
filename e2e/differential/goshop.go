package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// liar reads each quantity as one more than it is. The harness must find it.
var liar = &shop{name: "liar", start: goShop(func(r *http.Request) *answer {
	a := honest(r)
	for i := range a.Readings {
		if q := a.Readings[i].Quantity; q != nil {
			n, _ := quantity(q)
			a.Readings[i].Quantity = say(strconv.FormatInt(n+1, 10))
		}
	}
	return a
})}

// goShop is a shop in this process, with net/http.
func goShop(read func(*http.Request) *answer) func(*launcher, *shop) (*process, error) {
	return func(l *launcher, s *shop) (*process, error) {
		ln, err := net.Listen("tcp", loopback(s.port))
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := read(r)
			if a == nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(a)
		})}
		go func() { _ = server.Serve(ln) }()
		l.inside = append(l.inside, func() { _ = server.Close() })
		return nil, nil
	}
}

// honest reads as Go programs do: FormValue, and encoding/json into a struct and a map.
func honest(r *http.Request) *answer {
	a := &answer{Method: r.Method, Path: r.URL.Path, Token: r.Header.Get("Stockgate-Token")}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if strings.Contains(kind, "json") || kind == "text/plain" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil
		}
		if len(body) > 0 && !a.readJSON(body) {
			return nil
		}
	}
	_ = r.ParseMultipartForm(1 << 20)
	query := r.URL.Query()
	a.add("URL.Query", "query", func(name string) *string { return first(query[name]) })
	a.add("FormValue", "merged", func(name string) *string { return first(r.Form[name]) })
	a.add("PostFormValue", "body", func(name string) *string { return first(r.PostForm[name]) })
	a.Readings[len(a.Readings)-1].Lines = formLines(r.PostForm)
	a.add("Cookie", "cookie", func(name string) *string {
		c, err := r.Cookie(name)
		if err != nil {
			return nil
		}
		return say(c.Value)
	})
	headers := map[string]string{"sku": "X-Sku", "quantity": "X-Quantity", "user": "X-User-Id"}
	a.add("Header", "header", func(name string) *string { return first(r.Header[headers[name]]) })
	if steps := strings.Split(r.URL.Path, "/"); len(steps) > 3 && steps[1] == "path" {
		a.add("URL.Path", "path", func(name string) *string {
			return map[string]*string{"sku": say(steps[2]), "quantity": say(steps[3])}[name]
		})
	}
	return a
}

var rowName = regexp.MustCompile(`^items\[([0-9]+)\]\[(sku|count)\]$|^qty\[([^][]+)\]$`)

// formLines are the lines in arrays of a form, which is a set of names for Go.
func formLines(form url.Values) (lines [][2]*string) {
	rows := make(map[string]*[2]*string)
	for name, values := range form {
		m := rowName.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		row := rows[m[1]+m[3]]
		if row == nil {
			row = new([2]*string)
			rows[m[1]+m[3]] = row
		}
		switch {
		case m[3] != "":
			*row = [2]*string{say(m[3]), first(values)}
		case m[2] == "sku":
			row[0] = first(values)
		default:
			row[1] = first(values)
		}
	}
	for _, row := range rows {
		lines = append(lines, *row)
	}
	for i, sku := range form["skus[]"] {
		var n *string
		if counts := form["counts[]"]; i < len(counts) {
			n = say(counts[i])
		}
		lines = append(lines, [2]*string{say(sku), n})
	}
	return lines
}

func (a *answer) add(how, from string, get func(string) *string) {
	g := reading{How: how, From: from, SKU: get("sku"), Quantity: get("quantity"), User: get("user")}
	if g.SKU != nil {
		g.Casts = castsOf(text(*g.SKU))
	}
	a.Readings = append(a.Readings, g)
}

// readJSON adds what programs find in a JSON body; false: it is none.
func (a *answer) readJSON(body []byte) bool {
	type line struct{ SKU, Count any }
	var order struct {
		SKU, Quantity, User any
		Order               struct{ Items []line }
	}
	var object map[string]any
	if json.Unmarshal(body, &order) != nil || json.Unmarshal(body, &object) != nil {
		return false
	}
	g := reading{How: "json.Unmarshal into a struct", From: "body", SKU: valueOf(order.SKU), Quantity: valueOf(order.Quantity), User: valueOf(order.User)}
	for _, l := range order.Order.Items {
		g.Lines = append(g.Lines, [2]*string{valueOf(l.SKU), valueOf(l.Count)})
	}
	if g.SKU != nil {
		g.Casts = castsOf(text(*g.SKU))
	}
	a.Readings = append(a.Readings, g)
	names := maps.Clone(object)
	a.add("json.Unmarshal into a map", "body", func(name string) *string { return valueOf(names[name]) })
	return true
}

func valueOf(v any) *string {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return say(v)
	case float64:
		n := "n:" + strconv.FormatFloat(v, 'f', -1, 64)
		return &n
	default:
		x := fmt.Sprintf("x:%T", v)
		return &x
	}
}

func say(s string) *string { s = "s:" + s; return &s }

func first(values []string) *string {
	if len(values) == 0 {
		return nil
	}
	return say(values[0])
}

// castsOf are what Go programs make of a SKU that their database has as a number.
func castsOf(sku string) (casts []string) {
	for _, base := range []int{0, 10} {
		if n, err := strconv.ParseInt(sku, base, 64); err == nil {
			casts = append(casts, strconv.FormatInt(n, 10), strconv.Itoa(int(int32(n))))
		}
	}
	if f, err := strconv.ParseFloat(sku, 64); err == nil {
		casts = append(casts, strconv.FormatFloat(f, 'g', -1, 64))
	}
	var n int64
	if _, err := fmt.Sscan(sku, &n); err == nil {
		casts = append(casts, strconv.FormatInt(n, 10))
	}
	return casts
}
