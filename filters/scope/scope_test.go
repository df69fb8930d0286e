package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func graphQL(t testing.TB, persisted map[string]string) *Scope {
	t.Helper()
	s, err := Compile(Spec{Persisted: persisted, GraphQL: []GraphQL{
		{Field: "buy"},
		{Field: "move", Argument: "state", Values: []string{"Paid", "Authorized"}},
		{Field: "order", Argument: "input.kind", Values: []string{"now"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// post sends a document, and more members of the query as JSON.
func post(document, more string) *http.Request {
	quoted, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return send("POST", "/shop-api", `{"query":`+string(quoted)+more+`}`)
}

func send(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func with(r *http.Request, name, value string) *http.Request {
	r.Header.Set(name, value)
	return r
}

func judge(s *Scope, r *http.Request) Judgement {
	var body strings.Builder
	buf := make([]byte, 512)
	for {
		n, err := r.Body.Read(buf)
		body.Write(buf[:n])
		if err != nil {
			break
		}
	}
	return s.Judge(r, []byte(body.String()))
}

func hashOfText(document string) string {
	sum := sha256.Sum256([]byte(document))
	return hex.EncodeToString(sum[:])
}

func apq(hash string) string {
	return `"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}`
}

// What a server may read as an attempt is one, or is unclear.
func TestGraphQL(t *testing.T) {
	deep := strings.Repeat("...{", 17) + "buy" + strings.Repeat("}", 17)
	for name, c := range map[string]struct {
		r    *http.Request
		want Verdict
		why  Cause
	}{
		"the field":                 {post(`mutation { buy(id: 1) { code } }`, ""), Attempt, ""},
		"an alias":                  {post(`mutation { addItem: buy(id: 1) { code } }`, ""), Attempt, ""},
		"another field by its name": {post(`mutation { buy: addItem(id: 1) { code } }`, ""), Other, ""},
		"named operation":           {post(`mutation A { other } mutation B { buy }`, `,"operationName":"B"`), Attempt, ""},
		"the other operation":       {post(`mutation A { other } mutation B { buy }`, `,"operationName":"A"`), Other, ""},
		"in a fragment":             {post(`mutation { ...F } fragment F on Mutation { buy }`, ""), Attempt, ""},
		"in an inline fragment":     {post(`mutation { ... on Mutation { ... { buy } } }`, ""), Attempt, ""},
		"below the root":            {post(`query { cart { buy } }`, ""), Other, ""},
		"in a string":               {post(`query { search(text: "buy") { id } }`, ""), Other, ""},
		"in a comment":              {post("query { a } # buy", ""), Other, ""},
		"a query":                   {post(`{ products { items { sku } } }`, ""), Other, ""},
		"escaped in JSON":           {send("POST", "/", `{"query":"mutation { \u0062uy }"}`), Attempt, ""},
		"preflight":                 {send("OPTIONS", "/", ""), Other, ""},
		"a page":                    {send("GET", "/shop-api", ""), Other, ""},
		"a query by GET":            {send("GET", `/?query={products{items{sku}}}`, ""), Other, ""},
		"a list of queries":         {send("POST", "/", `[{"query":"{ a }"},{"query":"mutation { addItem }","id":2}]`), Other, ""},
		"an empty list":             {send("POST", "/", `[]`), Other, ""},
		"a member beside it":        {send("POST", "/", `{"id":"17","key":{"a":1},"query":"{ a }"}`), Other, ""},
		"a document that is null":   {send("POST", "/", `{"documentId":null,"query":"{ a }"}`), Other, ""},
		"an order with a member":    {post(`mutation { buy }`, `,"id":1`), Attempt, ""},
		"utf8":                      {with(post(`{ a }`, ""), "Content-Type", "application/json; charset=utf8"), Other, ""},
		"UTF8, an order":            {with(post(`mutation { buy }`, ""), "Content-Type", `Application/JSON; Charset="UTF8"`), Attempt, ""},

		"literal argument":       {post(`mutation { move(state: "Paid") { x } }`, ""), Attempt, ""},
		"enum argument":          {post(`mutation { move(state: Paid) { x } }`, ""), Attempt, ""},
		"block string":           {post(`mutation { move(state: """Paid""") { x } }`, ""), Attempt, ""},
		"variable":               {post(`mutation($s: String!) { move(state: $s) { x } }`, `,"variables":{"s":"Authorized"}`), Attempt, ""},
		"default of a variable":  {post(`mutation($s: String = "Paid") { move(state: $s) { x } }`, ""), Attempt, ""},
		"another value":          {post(`mutation { move(state: "Adding") { x } }`, ""), Other, ""},
		"another variable":       {post(`mutation($s: String = "Paid") { move(state: $s) { x } }`, `,"variables":{"s":"Adding"}`), Other, ""},
		"in an input":            {post(`mutation($i: I) { order(input: $i) { x } }`, `,"variables":{"i":{"kind":"now"}}`), Attempt, ""},
		"variable in an input":   {post(`mutation($k: K) { order(input: {kind: $k}) { x } }`, `,"variables":{"k":"now"}`), Attempt, ""},
		"no argument":            {post(`mutation { move { x } }`, ""), Unclear, CauseArgument},
		"null":                   {post(`mutation { move(state: null) { x } }`, ""), Unclear, CauseArgument},
		"null in a variable":     {post(`mutation($s: S = Paid) { move(state: $s) { x } }`, `,"variables":{"s":null}`), Unclear, CauseArgument},
		"a list":                 {post(`mutation { move(state: ["Paid"]) { x } }`, ""), Unclear, CauseArgument},
		"an undeclared variable": {post(`mutation { move(state: $s) { x } }`, `,"variables":{"s":"Adding"}`), Unclear, CauseArgument},
		"a missing variable":     {post(`mutation($s: S) { move(state: $s) { x } }`, ""), Unclear, CauseArgument},
		"argument twice":         {post(`mutation { move(state: "Adding", state: "Paid") { x } }`, ""), Unclear, CauseArgument},
		"member twice":           {post(`mutation { order(input: {kind: "later", kind: "now"}) { x } }`, ""), Unclear, CauseArgument},

		"the field twice":         {post(`mutation { buy a: buy }`, ""), Unclear, CauseFields},
		"beside another":          {post(`mutation { addItem(id: 1) { x } buy }`, ""), Unclear, CauseFields},
		"beside, in fragments":    {post(`mutation { ...A ...B } fragment A on M { buy } fragment B on M { addItem }`, ""), Unclear, CauseFields},
		"directive":               {post(`mutation { buy @skip(if: true) }`, ""), Unclear, CauseDirective},
		"directive of a fragment": {post(`mutation { ... @include(if: false) { buy } }`, ""), Unclear, CauseDirective},
		"directive of a spread":   {post(`mutation { ...F @include(if: false) } fragment F on M { buy }`, ""), Unclear, CauseDirective},
		"of an operation":         {post(`mutation @live { buy }`, ""), Unclear, CauseDirective},
		"subscription":            {post(`subscription { buy }`, ""), Unclear, CauseOperation},
		"several operations":      {post(`mutation A { buy } mutation B { other }`, ""), Unclear, CauseOperation},
		"no such operation":       {post(`mutation A { buy }`, `,"operationName":"B"`), Unclear, CauseOperation},
		"two of a name":           {post(`mutation A { buy } mutation A { other }`, `,"operationName":"A"`), Unclear, CauseOperation},
		"fragment twice":          {post(`mutation { ...F } fragment F on M { other } fragment F on M { buy }`, ""), Unclear, CauseOperation},
		"fragment missing":        {post(`mutation { ...F buy }`, ""), Unclear, CauseOperation},
		"variable twice":          {post(`mutation($a: A = "x", $a: A = "y") { buy(id: $a) }`, ""), Unclear, CauseOperation},
		"endless fragments":       {post(`mutation { ...F } fragment F on M { ...F buy }`, ""), Unclear, CauseSyntax},
		"deep fragments":          {post(`mutation {`+deep+`}`, ""), Unclear, CauseSyntax},
		"too long":                {post(`mutation { buy `+strings.Repeat("x ", maxTokens)+`}`, ""), Unclear, CauseSyntax},
		"no syntax":               {post(`mutation { buy `, ""), Unclear, CauseSyntax},

		"a list with an order":  {send("POST", "/", `[{"query":"{ a }"},{"query":"mutation { buy }"}]`), Unclear, CauseBatch},
		"an order in a list":    {send("POST", "/", ` [{"query":"mutation { buy }"}]`), Unclear, CauseBatch},
		"a list in a list":      {send("POST", "/", `[[{"query":"mutation { buy }"}]]`), Unclear, CauseBody},
		"a list, odd inside":    {send("POST", "/", `[{"query":"{ a }"},{"query":"{ a }","Query":"mutation { buy }"}]`), Unclear, CauseBody},
		"a list of unknown":     {send("POST", "/", `[{`+apq(hashOfText("x"))+`}]`), Unclear, CauseBatch},
		"a list, and more":      {send("POST", "/", `[{"query":"{ a }"}][]`), Unclear, CauseBody},
		"a long list":           {send("POST", "/", `[`+strings.Repeat(`{"query":"{a}"},`, mostOperations)+`{"query":"{a}"}]`), Unclear, CauseBody},
		"a member as PHP's":     {send("POST", "/", `{"query":"{ a }","query[]":"mutation { buy }"}`), Unclear, CauseBody},
		"a document by a name":  {send("POST", "/", `{"query":"{ a }","document_Id":"x"}`), Unclear, CauseBody},
		"id without a document": {send("POST", "/", `{"id":"x","query":""}`), Unclear, CauseBody},
		"id and null":           {send("POST", "/", `{"id":"x","query":null}`), Unclear, CauseBody},
		"query twice":           {send("POST", "/", `{"query":"{ a }","query":"mutation { buy }"}`), Unclear, CauseBody},
		"another case":          {send("POST", "/", `{"query":"{ a }","Query":"mutation { buy }"}`), Unclear, CauseBody},
		"escaped name twice":    {send("POST", "/", `{"query":"{ a }","qu\u0065ry":"mutation { buy }"}`), Unclear, CauseBody},
		"a member of others":    {send("POST", "/", `{"id":"1"}`), Unclear, CauseBody},
		"something follows":     {send("POST", "/", `{"query":"{ a }"}{"query":"mutation { buy }"}`), Unclear, CauseBody},
		"not UTF-8":             {send("POST", "/", "{\"query\":\"{ a } \xff\"}"), Unclear, CauseBody},
		"compressed":            {with(send("POST", "/", "\x1f\x8b\x08"), "Content-Encoding", "gzip"), Unclear, CauseBody},
		"variables as text":     {post(`mutation($s: S) { move(state: $s) { x } }`, `,"variables":"{\"s\":\"Adding\"}"`), Unclear, CauseBody},
		"a variable twice":      {post(`mutation($s: S) { move(state: $s) { x } }`, `,"variables":{"s":"Adding","s":"Paid"}`), Unclear, CauseBody},
		"no document":           {send("POST", "/", `{}`), Unclear, CauseNoDocument},
		"no document by GET":    {send("GET", "/?documentId=1", ""), Unclear, CauseNoDocument},
		"empty document":        {send("POST", "/", `{"query":""}`), Unclear, CauseNoDocument},
		"form":                  {with(post(`mutation { buy }`, ""), "Content-Type", "application/x-www-form-urlencoded"), Unclear, CauseContentType},
		"multipart":             {with(post(`{ a }`, ""), "Content-Type", "multipart/form-data; boundary=x"), Unclear, CauseContentType},
		"document of graphql":   {with(post(`{ a }`, ""), "Content-Type", "application/graphql"), Unclear, CauseContentType},
		"charset":               {with(post(`{ a }`, ""), "Content-Type", "application/json; charset=utf-16"), Unclear, CauseContentType},
		"no type":               {send("POST", "/", ""), Unclear, CauseContentType},
		"in URL and body":       {send("POST", "/?query=mutation{buy}", `{"query":"{ a }"}`), Unclear, CauseQuery},
		"in the URL of a POST":  {send("POST", "/?query=mutation{buy}", ""), Unclear, CauseQuery},
		"twice in the URL":      {send("GET", "/?query={a}&query={b}", ""), Unclear, CauseQuery},
		"as a list in the URL":  {send("GET", "/?query[]={a}", ""), Unclear, CauseQuery},
		"another case, URL":     {send("GET", "/?Query={a}", ""), Unclear, CauseQuery},
		"broken URL":            {send("GET", "/?query=%zz", ""), Unclear, CauseQuery},
		"mutation by GET":       {send("GET", "/?query=mutation{buy}", ""), Unclear, CauseMethod},
		"GET with a body":       {send("GET", "/", `{"query":"mutation { buy }"}`), Unclear, CauseMethod},
		"upgrade":               {with(send("GET", "/", ""), "Upgrade", "websocket"), Unclear, CauseUpgrade},
		"the wrong hash":        {post(`{ a }`, `,`+apq(hashOfText(`{ b }`))), Unclear, CauseHash},
		"hash in two members":   {send("POST", "/", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"a","SHA256Hash":"b"}}}`), Unclear, CauseBody},
		"persistedQuery, twice": {send("POST", "/", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"a"},"PersistedQuery":{}}}`), Unclear, CauseBody},
		"an unknown hash":       {send("POST", "/", `{`+apq(hashOfText("x"))+`}`), Unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(graphQL(t, nil), c.r); got.Verdict != c.want || got.Cause != c.why {
				t.Errorf("%d %q, want %d %q", got.Verdict, got.Cause, c.want, c.why)
			}
		})
	}
}

// upload is a multipart body of parts: names and contents.
func upload(parts ...string) *http.Request {
	var body strings.Builder
	for i := 0; i < len(parts); i += 2 {
		fmt.Fprintf(&body, "--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", parts[i], parts[i+1])
	}
	return with(send("POST", "/", body.String()+"--b--\r\n"), "Content-Type", "multipart/form-data; boundary=b")
}

// typed is a multipart request whose first part has a Content-Type.
func typed(r *http.Request, mediaType string) *http.Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	text := strings.Replace(string(body), "\r\n\r\n", "\r\nContent-Type: "+mediaType+"\r\n\r\n", 1)
	r.Body = io.NopCloser(strings.NewReader(text))
	return r
}

// An upload is another request if its operations are, and all servers read them in one part.
func TestUpload(t *testing.T) {
	const other, order = `{"query":"mutation($f: Upload) { avatar(file: $f) }","variables":{"f":null}}`, `{"query":"mutation { buy }"}`
	for name, c := range map[string]struct {
		r    *http.Request
		want Verdict
	}{
		"a file":                   {upload("operations", other, "map", `{"0":["variables.f"]}`, "0", "\x89PNG"), Other},
		"a list":                   {upload("operations", "["+other+"]", "map", `{"0":["0.variables.f"]}`, "0", "x"), Other},
		"without a map":            {upload("operations", other), Other},
		"an order":                 {upload("operations", order), Unclear},
		"an order in a list":       {upload("operations", "["+other+","+order+"]"), Unclear},
		"operations twice":         {upload("operations", other, "operations", order), Unclear},
		"in another case":          {upload("operations", other, "Operations", order), Unclear},
		"as an array":              {upload("operations", other, "operations[]", order), Unclear},
		"a query beside it":        {upload("operations", other, "query", "mutation { buy }"), Unclear},
		"an operation's name":      {upload("operations", other, "operation_name", "x", "operationName", "B"), Unclear},
		"a file for the document":  {upload("operations", other, "map", `{"0":["query"]}`, "0", "mutation { buy }"), Unclear},
		"a file for one in a list": {upload("operations", "["+other+"]", "map", `{"0":["0.query"]}`, "0", "mutation { buy }"), Unclear},
		"a map twice":              {upload("operations", other, "map", `{}`, "map", `{"0":["query"]}`), Unclear},
		"a map that is odd":        {upload("operations", other, "map", `{"0":"query"}`), Unclear},
		"no operations":            {upload("map", `{}`), Unclear},
		"a prototype":              {upload("operations", other, "__proto__[query]", "x"), Unclear},
		"in UTF-7":                 {typed(upload("operations", other), "text/plain; charset=utf-7"), Unclear},
		"in a named charset":       {typed(upload("operations", other), "text/plain; charset*=utf-8''utf-16"), Unclear},
		"in UTF-8":                 {typed(upload("operations", other), "application/json; charset=UTF-8"), Other},
		"encoded":                  {typed(upload("operations", other), "text/plain\r\nContent-Transfer-Encoding: base64"), Unclear},
		"not encoded":              {typed(upload("operations", other), "text/plain\r\nContent-Transfer-Encoding: 8bit"), Other},
		"not as browsers send it":  {with(upload("operations", other), "Content-Type", `multipart/form-data; boundary="b"; boundary=c`), Unclear},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(graphQL(t, nil), c.r); got.Verdict != c.want || got.Verdict == Other && !got.Mutates {
				t.Errorf("%d %q, mutates %t; want %d", got.Verdict, got.Cause, got.Mutates, c.want)
			}
		})
	}
}

// Members that may name a document decide where the shop has documents of its own.
func TestMembersWithRegisteredDocuments(t *testing.T) {
	s := graphQL(t, map[string]string{"op-1": `mutation { buy }`})
	if got := judge(s, post(`{ a }`, `,"id":"op-1"`)); got.Verdict != Unclear {
		t.Errorf("%d %q", got.Verdict, got.Cause)
	}
	if got := judge(s, post(`{ a }`, `,"id":null`)); got.Verdict != Other {
		t.Errorf("null: %d %q", got.Verdict, got.Cause)
	}
}

// A websocket is another request only where the scope says so.
func TestWebsockets(t *testing.T) {
	connect := func(protocol string) *http.Request {
		r := send("CONNECT", "/graphql", "")
		r.Header[":protocol"] = []string{protocol}
		return r
	}
	for name, c := range map[string]struct {
		r    *http.Request
		want Verdict
	}{
		"a websocket":        {with(send("GET", "/", ""), "Upgrade", "WebSocket"), Other},
		"of HTTP/2":          {connect("websocket"), Other},
		"another protocol":   {with(send("GET", "/", ""), "Upgrade", "h2c"), Unclear},
		"two protocols":      {with(send("GET", "/", ""), "Upgrade", "websocket, h2c"), Unclear},
		"of HTTP/2, another": {connect("connect-udp"), Unclear},
		"by POST":            {with(post(`{ a }`, ""), "Upgrade", "websocket"), Unclear},
		"an order beside it": {with(send("GET", "/?query=mutation{buy}", ""), "Upgrade", "websocket"), Unclear},
		"with a body":        {with(send("GET", "/", `{"query":"mutation { buy }"}`), "Upgrade", "websocket"), Unclear},
	} {
		t.Run(name, func(t *testing.T) {
			for _, websockets := range []bool{true, false} {
				s, err := Compile(Spec{GraphQL: []GraphQL{{Field: "buy"}}, Websockets: websockets})
				if err != nil {
					t.Fatal(err)
				}
				want := c.want
				if !websockets {
					want = Unclear
				}
				if got := judge(s, c.r.Clone(t.Context())); got.Verdict != want {
					t.Errorf("websockets %t: %d %q, want %d", websockets, got.Verdict, got.Cause, want)
				}
			}
		})
	}
}

// A field may be in others, which group it.
func TestFieldInGroups(t *testing.T) {
	s, err := Compile(Spec{GraphQL: []GraphQL{
		{Field: "checkout.complete"}, {Field: "shop.cart.order", Argument: "kind", Values: []string{"now"}}, {Field: "pay"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		document string
		want     Verdict
		why      Cause
	}{
		"the field":                  {`mutation { checkout { complete(id: 1) { code } } }`, Attempt, ""},
		"as clients send it":         {`mutation M($id: ID!) { checkout { complete(id: $id) { code __typename } __typename } }`, Attempt, ""},
		"by aliases":                 {`mutation { a: checkout { b: complete } }`, Attempt, ""},
		"in fragments":               {`mutation { ...R } fragment R on Mutation { checkout { ...F } } fragment F on Checkout { complete }`, Attempt, ""},
		"deeper":                     {`mutation { shop { cart { order(kind: "now") } } }`, Attempt, ""},
		"another value":              {`mutation { shop { cart { order(kind: "later") } } }`, Other, ""},
		"at the root":                {`mutation { pay }`, Attempt, ""},
		"another field there":        {`mutation { checkout { addEmail complete: note } }`, Other, ""},
		"the name elsewhere":         {`mutation { complete checkout { note } }`, Other, ""},
		"the name below it":          {`mutation { other { checkout { complete } } }`, Other, ""},
		"a query":                    {`query { checkout { complete } }`, Other, ""},
		"beside another in it":       {`mutation { checkout { complete addEmail } }`, Unclear, CauseFields},
		"beside another at the root": {`mutation { checkout { complete } addEmail }`, Unclear, CauseFields},
		"beside a name at the root":  {`mutation { checkout { complete } __typename }`, Unclear, CauseFields},
		"the group twice":            {`mutation { checkout { complete } b: checkout { note } }`, Unclear, CauseFields},
		"two of them":                {`mutation { checkout { a: complete b: complete } }`, Unclear, CauseFields},
		"a field of each rule":       {`mutation { checkout { complete } pay }`, Unclear, CauseFields},
		"a directive on the group":   {`mutation($x: Boolean!) { checkout @include(if: $x) { complete } }`, Unclear, CauseDirective},
		"a directive in it":          {`mutation($x: Boolean!) { checkout { ... @skip(if: $x) { complete } } }`, Unclear, CauseDirective},
		"a directive on it all":      {`mutation @live { checkout { complete } }`, Unclear, CauseDirective},
		"a subscription":             {`subscription { checkout { complete } }`, Unclear, CauseOperation},
		"a fragment that is missing": {`mutation { checkout { ...F } } query complete { a }`, Unclear, CauseOperation},
		"a value that is not there":  {`mutation($k: String) { shop { cart { order(kind: $k) } } }`, Unclear, CauseArgument},
		"the argument twice":         {`mutation { checkout { complete(a: 1, a: 2) } }`, Unclear, CauseArgument},
	} {
		got := judge(s, post(c.document, ""))
		if got.Verdict != c.want || got.Cause != c.why {
			t.Errorf("%s: %v %s, want %v %s", name, got.Verdict, got.Cause, c.want, c.why)
		}
	}
	// each fragment names the next one twice, at two levels: 2^24 fields
	var wide strings.Builder
	wide.WriteString("mutation { ...A0 }")
	for i := range 12 {
		fmt.Fprintf(&wide, " fragment A%d on M { ...A%d ...A%d } fragment B%d on S { ...B%d ...B%d }", i, i+1, i+1, i, i+1, i+1)
	}
	wide.WriteString(" fragment A12 on M { shop { ...B0 } } fragment B12 on S { cart { note order: note } }")
	for _, document := range []string{wide.String(), strings.Replace(wide.String(), "cart { note order: note }", "... { order: __typename }", 1)} {
		if got := judge(s, post(document, "")); got.Verdict != Unclear || got.Cause != CauseSyntax {
			t.Errorf("fragments that multiply: %v %s", got.Verdict, got.Cause)
		}
	}
	if got := judge(s, post(`mutation { checkout(token: "t") { complete(sku: "A1") } }`, "")); got.Value("sku") != "A1" || got.Value("token") != "" {
		t.Errorf("the arguments are %q and %q", got.Value("sku"), got.Value("token"))
	}
}

// A field makes a mutation an attempt, or a query where a rule says so.
func TestOperationOfTheField(t *testing.T) {
	for name, c := range map[string]struct {
		r               *http.Request
		mutation, query Verdict // by a rule for the one, and for the other
	}{
		"a mutation":             {post(`mutation { order(sku: "a") { id } }`, ""), Attempt, Other},
		"a query":                {post(`query { order(id: 7) { status } }`, ""), Other, Attempt},
		"without the word":       {post(`{ order(id: 7) { status } }`, ""), Other, Attempt},
		"beside another":         {post(`{ order(id: 7) { status } me { name } }`, ""), Other, Unclear},
		"with a directive":       {post(`query($w: Boolean!) { order(id: 7) @include(if: $w) { status } }`, ""), Other, Unclear},
		"a fragment of a query":  {post(`{ ...F } fragment F on Query { ... { order(id: 7) { status } } }`, ""), Other, Attempt},
		"of a mutation":          {post(`mutation { ...F } fragment F on Mutation { order(sku: "a") { id } }`, ""), Attempt, Other},
		"the other operation":    {post(`query Q { order(id: 7) { status } } mutation M { order(sku: "a") { id } }`, `,"operationName":"Q"`), Other, Attempt},
		"the operation":          {post(`query Q { order(id: 7) { status } } mutation M { order(sku: "a") { id } }`, `,"operationName":"M"`), Attempt, Other},
		"no operation is chosen": {post(`query Q { order(id: 7) { status } } mutation M { order(sku: "a") { id } }`, ""), Unclear, Unclear},
		"the word in a text":     {post(`{ order(note: "mutation") { status } }`, ""), Other, Attempt},
		"a subscription":         {post(`subscription { order(id: 7) { status } }`, ""), Unclear, Unclear},
		"a query by GET":         {send("GET", "/?query={order(id:7){status}}", ""), Other, Unclear},
		"no syntax":              {post(`{ order(id: 7) { status }`, ""), Other, Unclear},
		"mutation, no syntax":    {post(`mutation { order(id: 7) { status }`, ""), Unclear, Unclear},
	} {
		for operation, want := range map[string]Verdict{"": c.mutation, "mutation": c.mutation, "query": c.query} {
			s, err := Compile(Spec{GraphQL: []GraphQL{{Field: "order", Operation: operation}}})
			if err != nil {
				t.Fatal(err)
			}
			r := c.r.Clone(t.Context())
			body := strings.Builder{}
			if _, err := io.Copy(&body, c.r.Body); err != nil {
				t.Fatal(err)
			}
			c.r.Body = io.NopCloser(strings.NewReader(body.String()))
			if got := s.Judge(r, []byte(body.String())); got.Verdict != want {
				t.Errorf("%s, graphql %s order: %d %q, want %d", name, operation, got.Verdict, got.Cause, want)
			}
		}
	}
}

// The hash of a document in which a query has the field passes too, once it was seen.
func TestPersistedQueryWithTheField(t *testing.T) {
	s := graphQL(t, nil)
	const status = `query { buy(id: 7) { status } }`
	hash := send("POST", "/", `{`+apq(hashOfText(status))+`}`)
	for i, step := range []struct {
		r    *http.Request
		want Verdict
	}{{hash.Clone(t.Context()), Unknown}, {post(status, `,`+apq(hashOfText(status))), Other}, {send("POST", "/", `{`+apq(hashOfText(status))+`}`), Other}} {
		if got := judge(s, step.r); got.Verdict != step.want {
			t.Errorf("step %d: %d %q, want %d", i, got.Verdict, got.Cause, step.want)
		}
	}
}

// A list of which elements are read has no others: a server would take them too.
func TestElements(t *testing.T) {
	s, err := Compile(Spec{
		GraphQL: []GraphQL{
			{Field: "buy"},
			{Field: "pick", Argument: "lines.0.kind", Values: []string{"now"}},
			{Field: "pick", Argument: "lines.1.kind", Values: []string{"now"}},
		},
		Arguments: []string{"lines.0.sku", "input.lines.0.sku", "input.lines.1.sku", "counts.0", "orders.0.lines"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for document, want := range map[string]string{
		`mutation { buy(lines: [{sku: "a"}]) }`:                                  "1",
		`mutation { buy(lines: []) }`:                                            "1",
		`mutation { buy(lines: null) }`:                                          "1",
		`mutation { buy }`:                                                       "1",
		`mutation { buy(lines: [{sku: "a"}, {sku: "b"}]) }`:                      "2 elements",
		`mutation { buy(lines: [{sku: "a"}, null]) }`:                            "2 elements",
		`mutation { buy(lines: {sku: "a"}) }`:                                    "2 elements",
		`mutation { buy(counts: 5) }`:                                            "2 elements",
		`mutation { buy(input: {lines: [{sku: "a"}, {sku: "b"}]}) }`:             "1",
		`mutation { buy(input: {lines: [{sku: "a"}, {sku: "b"}, {sku: "c"}]}) }`: "2 elements",
		`mutation { buy(orders: [{lines: [1, 2, 3]}]) }`:                         "1",
		`mutation { buy(orders: [{lines: [1]}, {lines: [2]}]) }`:                 "2 elements",
		`mutation($one: [L!]) { buy(lines: $one) }`:                              "1",
		`mutation($two: [L!]) { buy(lines: $two) }`:                              "2 elements",
		`mutation($n: Int) { buy(counts: $n) }`:                                  "2 elements",
		`mutation($i: I) { buy(input: $i) }`:                                     "2 elements",
		`mutation($d: [L!] = [{sku: "a"}, {sku: "b"}]) { buy(lines: $d) }`:       "2 elements",
		`mutation { buy(input: {lines: [{sku: "a", sku: "b"}]}) }`:               "2 argument",
		`mutation { buy(input: {lines: [{sku: "a", n: 1, n: 2}]}) }`:             "1",
		`mutation { pick(lines: [{kind: later}, {kind: now}]) }`:                 "2 elements",
		`mutation { pick(lines: [{kind: later}, {kind: later}, {kind: now}]) }`:  "2 elements",
		`mutation { pick(lines: [{kind: later}, {kind: later}]) }`:               "0",
		`query { buy(lines: [{sku: "a"}, {sku: "b"}]) }`:                         "0",
	} {
		got := judge(s, post(document, `,"variables":{"one":[{"sku":"a"}],"two":[{"sku":"a"},{"sku":"b"}],"n":5,"i":{"lines":[1,2,3]}}`))
		if text := strings.TrimSpace(fmt.Sprint(int(got.Verdict), " ", got.Cause)); text != want {
			t.Errorf("%s: %s, want %s", document, text, want)
		}
	}
}

// The hash of a document that was seen, and that has none of the fields, passes from then
// on; that of an attempt is never enough.
func TestPersisted(t *testing.T) {
	s := graphQL(t, map[string]string{"op-1": `mutation { buy }`, "op-2": `{ a }`})
	harmless, order := `{ products { sku } }`, `mutation { buy }`
	for i, step := range []struct {
		r    *http.Request
		want Verdict
	}{
		{send("POST", "/", `{`+apq(hashOfText(harmless))+`}`), Unknown},
		{post(harmless, `,`+apq(hashOfText(harmless))), Other},
		{send("POST", "/", `{`+apq(hashOfText(harmless))+`}`), Other},
		{send("GET", `/?extensions={"persistedQuery":{"version":1,"sha256Hash":"`+hashOfText(harmless)+`"}}`, ""), Other},
		{send("POST", "/", `{`+apq(strings.ToUpper(hashOfText(harmless)))+`}`), Unknown},
		{post(order, `,`+apq(hashOfText(order))), Attempt},
		{send("POST", "/", `{`+apq(hashOfText(order))+`}`), Unknown},
		{send("POST", "/", `{`+apq("op-1")+`}`), Attempt},
		{send("POST", "/", `{`+apq("op-2")+`}`), Other},
		{post(harmless, `,`+apq("op-1")), Unclear},
	} {
		if got := judge(s, step.r); got.Verdict != step.want {
			t.Errorf("step %d: %d %q, want %d", i, got.Verdict, got.Cause, step.want)
		}
	}
	for range maxHarmless + 10 {
		s.persisted.remember(hashOfText(t.Name()+string(rune(len(s.persisted.harmless)))), false)
	}
	if n := len(s.persisted.harmless); n > maxHarmless {
		t.Errorf("%d hashes are remembered", n)
	}
}

func TestValues(t *testing.T) {
	const document = `mutation($id: ID!, $n: Int = 2, $in: In) { buy(id: $id, n: $n, in: $in, x: {y: [1, {z: true}]}, e: Fast) { code } }`
	got := judge(graphQL(t, nil), post(document, `,"variables":{"id":"A-1","in":{"lines":[{"q":12345678901234567890}]}}`))
	for path, want := range map[string]string{
		"id": "A-1", "n": "2", "in.lines.0.q": "12345678901234567890", "x.y.0": "1", "x.y.1.z": "true", "e": "Fast",
		"x": "", "x.y": "", "x.y.2": "", "x.y.-1": "", "in.lines": "", "none": "", "id.more": "", "in.lines.one": "",
	} {
		if value := got.Value(path); value != want {
			t.Errorf("%s is %q, want %q", path, value, want)
		}
	}
	var none Judgement
	if none.Value("id") != "" {
		t.Error("a request that is no attempt has an argument")
	}
}

func TestJSONBody(t *testing.T) {
	s, err := Compile(Spec{JSONBody: []JSONBody{{Path: "action", Values: []string{"buy", "1"}}, {Path: "order.express"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		r    *http.Request
		want Verdict
	}{
		"the value":         {send("POST", "/", `{"action":"buy"}`), Attempt},
		"a number":          {send("POST", "/", `{"action":1}`), Attempt},
		"another":           {send("POST", "/", `{"action":"look"}`), Other},
		"none":              {send("POST", "/", `{"other":1}`), Other},
		"null":              {send("POST", "/", `{"action":null}`), Other},
		"no body":           {send("GET", "/", ""), Other},
		"any value":         {send("POST", "/", `{"order":{"express":{}}}`), Attempt},
		"no object":         {send("POST", "/", `{"order":[{"express":1}]}`), Unclear},
		"a list":            {send("POST", "/", `{"action":["buy"]}`), Unclear},
		"another case":      {send("POST", "/", `{"Action":"buy"}`), Unclear},
		"a dotless i":       {send("POST", "/", `{"act\u0131on":"buy"}`), Unclear},
		"a dotted I":        {send("POST", "/", `{"ACT\u0130ON":"buy"}`), Unclear},
		"twice":             {send("POST", "/", `{"action":"look","action":"buy"}`), Unclear},
		"form":              {with(send("POST", "/", `action=buy`), "Content-Type", "application/x-www-form-urlencoded"), Unclear},
		"an array, outside": {send("POST", "/", `[{"action":"buy"}]`), Unclear},
		"an array, a part":  {send("POST", "/", `[{"action":"look"},{"action":"buy"}]`), Unclear},
		"an array of texts": {send("POST", "/", `["buy"]`), Unclear},
		"an array, others":  {send("POST", "/", `[{"action":"look"},{"x":1}]`), Other},
		"a form's fields":   {upload("name", "x", "file", "\x00"), Other},
		"a form's other":    {upload("action", "look"), Other},
		"a form's value":    {upload("action", "buy"), Unclear},
		"a form's, decoded": {typed(upload("action", "look"), "text/plain; charset=utf-7"), Unclear},
		"a form's, twice":   {upload("action", "look", "action[]", "buy"), Unclear},

		"in the query too":       {send("POST", "/?action=buy", `{"action":"look"}`), Unclear},
		"in the query alone":     {send("POST", "/?action=buy", `{"other":1}`), Unclear},
		"no body, in the query":  {send("POST", "/?action=buy", ""), Unclear},
		"another in the query":   {send("POST", "/?action=look", `{"action":"buy"}`), Unclear},
		"spelt in the query":     {send("POST", "/?x=%zz&%61ction[]=buy", ""), Unclear},
		"behind a semicolon":     {send("POST", "/?x;Action=buy", ""), Unclear},
		"a dotless i in a query": {send("POST", "/?act%C4%B1on=buy", ""), Unclear},
		"the root of a path":     {send("POST", "/?order[express]=1", ""), Unclear},
		"the path, by a dot":     {send("POST", "/?order.express=1", ""), Unclear},
		"other parameters":       {send("POST", "/?x=action&the_action=buy", `{"action":"look"}`), Other},
		"a GET of the value":     {send("GET", "/?action=buy", ""), Unclear},
		"a GET in another case":  {send("GET", "/?action=Buy", ""), Unclear},
		"a GET of a number":      {send("GET", "/?action=01", ""), Unclear},
		"a GET of a path":        {send("GET", "/?order[express]=1", ""), Unclear},
		"a GET of values":        {send("GET", "/?action=look&action=buy", ""), Unclear},
		"a GET of another":       {send("GET", "/?action=look", ""), Other},
		"a prototype":            {send("POST", "/", `{"__proto__":{"action":"buy"},"sku":"a"}`), Unclear},
		"a prototype, escaped":   {send("POST", "/", `{"__pr\u006fto__":{"action":"buy"}}`), Unclear},
		"a constructor":          {send("POST", "/", `{"constructor":{"prototype":{"action":"buy"}}}`), Unclear},
		"beside the value":       {send("POST", "/", `{"action":"look","prototype":1}`), Unclear},
		"on the way":             {send("POST", "/", `{"order":{"__proto__":{"express":1}}}`), Unclear},
		"elsewhere":              {send("POST", "/", `{"other":{"__proto__":{"express":1}}}`), Other},
		"a prototype by a query": {send("POST", "/?__proto__[action]=buy", ""), Unclear},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(s, c.r); got.Verdict != c.want {
				t.Errorf("%d %q, want %d", got.Verdict, got.Cause, c.want)
			}
		})
	}
}

func TestCompile(t *testing.T) {
	for want, spec := range map[string]Spec{
		"written `graphql query.o":    {GraphQL: []GraphQL{{Field: "Query.order"}}},
		"there are mutation and q":    {GraphQL: []GraphQL{{Field: "a", Operation: "subscription"}}},
		"graphql.lines: an element":   {GraphQL: []GraphQL{{Field: "a"}}, Arguments: []string{"lines.1.sku"}},
		"graphql a: lines: an elem":   {GraphQL: []GraphQL{{Field: "a", Argument: "lines.1.kind", Values: []string{"b"}}}},
		"a field's name":              {GraphQL: []GraphQL{{Field: "a b"}}},
		"one in up to three others":   {GraphQL: []GraphQL{{Field: "checkout..buy"}}},
		"`graphql checkout.complete`": {GraphQL: []GraphQL{{Field: "a.b.c.d.e"}}},
		"is written `graphql order`":  {GraphQL: []GraphQL{{Field: "mutation.buy"}}},
		"give the values":             {GraphQL: []GraphQL{{Field: "a", Argument: "b"}}},
		"values need the argument":    {GraphQL: []GraphQL{{Field: "a", Values: []string{"b"}}}},
		"a path is such as":           {JSONBody: []JSONBody{{Path: "a..b"}}},
		"two ways to read":            {JSONBody: []JSONBody{{Path: "a"}}, GraphQL: []GraphQL{{Field: "a"}}},
		"websockets pass, and ":       {Websockets: true},
		"and no graphql":              {Persisted: map[string]string{"a": "{a}"}},
		`operation "a" has no docu`:   {Persisted: map[string]string{"a": ""}, GraphQL: []GraphQL{{Field: "a"}}},
	} {
		if _, err := Compile(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", spec, err, want)
		}
	}
	if s, err := Compile(Spec{}); s != nil || err != nil {
		t.Errorf("without rules: %v, %v", s, err)
	}
	for _, why := range Causes() {
		if why.Detail() == "" {
			t.Errorf("%s has no sentence", why)
		}
	}
}

// Whatever is sent, a document with the field at its root is not another request.
func FuzzGraphQL(f *testing.F) {
	f.Add("application/json", "", `{"query":"mutation { buy }"}`)
	f.Add("application/json", "", `{"query":"mutation A { a: buy(x: $y) ...F } fragment F on M { b }","operationName":"A","variables":{"y":1}}`)
	f.Add("application/json", "query={a}", ``)
	f.Add("application/json", "", `[{"query":"{ a }","id":1},{"query":"mutation { buy }"}]`)
	f.Add("application/json", "", `{"query":"{ a }","extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}`)
	s := graphQL(f, nil)
	f.Fuzz(func(t *testing.T, kind, rawQuery, body string) {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Content-Type", kind)
		r.URL.RawQuery = rawQuery
		got := s.Judge(r, []byte(body))
		if got.Verdict != Other {
			return
		}
		// as a lenient server reads it: the last of several members, in any case
		type query struct{ Query, OperationName string }
		var all []query
		if json.Unmarshal([]byte(body), &all) != nil {
			all = make([]query, 1)
			if json.Unmarshal([]byte(body), &all[0]) != nil && !strings.HasPrefix(kind, "multipart/") {
				t.Fatalf("%q passes, and cannot be read", body)
			}
		}
		for _, q := range all {
			if strings.Contains(q.Query, "buy") && naiveRoot(q.Query) {
				t.Errorf("%q passes", body)
			}
		}
	})
}

// naiveRoot reports whether a document is one operation whose only selection is buy.
func naiveRoot(document string) bool {
	fields := strings.Fields(strings.NewReplacer("{", " { ", "}", " } ", ",", " ").Replace(document))
	return len(fields) == 4 && fields[0] == "mutation" && fields[1] == "{" && fields[2] == "buy" && fields[3] == "}"
}

func BenchmarkJudge(b *testing.B) {
	s := graphQL(b, nil)
	for name, document := range map[string]string{
		"other":   `query Products($o: O) { products(options: $o) { items { id name slug variants { sku price } } totalItems } }`,
		"attempt": `mutation Pay($i: I!) { buy(input: $i) { ...Order ... on Failure { errorCode message } } } fragment Order on Order { id code state lines { id quantity } }`,
	} {
		body, _ := json.Marshal(map[string]any{"query": document, "variables": map[string]any{"i": map[string]any{"method": "card"}}})
		r := send("POST", "/", string(body))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Judge(r, body)
			}
		})
	}
}
