package attempt_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
)

type paramCase struct {
	query, mediaType, body string
	want                   string // "a×2" for a pass, else how the refusal begins
}

func runParams(t *testing.T, rd *attempt.Reader, cases map[string]paramCase) {
	t.Helper()
	for name, tc := range cases {
		r := request("POST", "/buy", tc.mediaType, tc.body)
		r.URL.RawQuery = tc.query
		a, refusal := whole(t, rd, r, attempt.Env{})
		got := describe(refusal)
		if refusal == nil {
			got = show(a.Lines)
		}
		if tc.want == "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

const spelled = "malformed query.sku: the name appears in another spelling in the query"

func TestQuery(t *testing.T) {
	runParams(t, lineReader(t, "{query.sku}", "{query.quantity}"), map[string]paramCase{
		"plain":                {query: "sku=a&quantity=2", want: "a×2"},
		"no quantity":          {query: "sku=a", want: "a×1"},
		"empty quantity":       {query: "sku=a&quantity=", want: "malformed query.quantity: it is not a whole number"},
		"plus":                 {query: "sku=a&quantity=+1", want: "malformed query.quantity: it is not a whole number"},
		"encoded":              {query: "sku=%61&quantity=%32", want: "a×2"},
		"encoded name":         {query: "%73ku=a", want: "malformed query.sku: the name is encoded without need"},
		"not ASCII":            {query: "sku=漢", want: "malformed query.sku: a byte beyond ASCII"},
		"not ASCII elsewhere":  {query: "sku=a&x=漢", want: "a×1"},
		"closing bracket":      {query: "sku=a&[]quantity", want: "malformed query.quantity: the name appears in another spelling"},
		"bracket behind it":    {query: "sku=a&sku]a[=b", want: spelled},
		"dot before":           {query: "sku=a&.sku=b", want: spelled},
		"charset, no body":     {query: "sku=a", mediaType: "text/plain; charset=utf-16", want: "malformed Content-Type: the charset is not utf-8"},
		"charset utf-8":        {query: "sku=a", mediaType: "text/plain; Charset=UTF-8", want: "a×1"},
		"dot":                  {query: "sku=a&sku.a=b", want: spelled},
		"empty pairs":          {query: "&&sku=a&&", want: "a×1"},
		"others":               {query: "x=1&x=2&sku=a&utm=%E4%B8%AD&y", want: "a×1"},
		"nothing":              {query: "", want: "malformed query.sku: it is missing"},
		"no value":             {query: "sku", want: "malformed query.sku: it is missing"},
		"twice":                {query: "sku=a&sku=a", want: "malformed query.sku: the name appears twice"},
		"twice, encoded":       {query: "sku=a&%73ku=b", want: "malformed query.sku: the name is encoded without need"},
		"case":                 {query: "sku=a&SKU=b", want: spelled},
		"Kelvin sign":          {query: "sku=a&s%E2%84%AAu=b", want: spelled},
		"array":                {query: "sku=a&sku[]=b", want: spelled},
		"index":                {query: "sku=a&sku%5B0%5D=b", want: spelled},
		"key":                  {query: "sku=a&sku[x][y]=b", want: spelled},
		"brackets around":      {query: "sku=a&[sku]=b", want: spelled},
		"leading space":        {query: "sku=a&+sku=b", want: spelled},
		"trailing space":       {query: "sku=a&sku%20=b", want: spelled},
		"semicolon":            {query: "sku=a;sku=b", want: "malformed the query: a semicolon"},
		"semicolon elsewhere":  {query: "sku=a&x=1;2", want: "malformed the query: a semicolon"},
		"number sign":          {query: "sku=a#&quantity=2", want: "malformed the query: a number sign"},
		"broken escape":        {query: "sku=a&x=%", want: "malformed the query: the percent-encoding"},
		"broken escape, short": {query: "sku=a&x=%2", want: "malformed the query: the percent-encoding"},
		"broken escape, hex":   {query: "sku=a&x=%g1", want: "malformed the query: the percent-encoding"},
		"IIS escape":           {query: "sku=a&%u0073ku=b", want: "malformed the query: the percent-encoding"},
		"NUL in a name":        {query: "sku=a&sku%00=b", want: "malformed the query: a parameter's name"},
		"overlong name":        {query: "sku=a&%C1%B3ku=b", want: "malformed the query: a parameter's name"},
		"NUL in the value":     {query: "sku=a%00", want: "malformed query.sku: it is not printable ASCII"},
		"invalid UTF-8":        {query: "sku=%ff", want: "malformed query.sku: it is not printable ASCII"},
		"_method":              {query: "sku=a&_method=PUT", want: "malformed _method"},
		"_method, PHP":         {query: "sku=a&.method=PUT", want: "malformed _method"},
		"_method, case":        {query: "sku=a&_METHOD=PUT", want: "malformed _method"},
		"_method, array":       {query: "sku=a&_method[]=PUT", want: "malformed _method"},
		"payment_method":       {query: "sku=a&payment_method=card", want: "a×1"},
		"1,000 pairs":          {query: "sku=a" + strings.Repeat("&x=1", 999), want: "a×1"},
		"1,001 pairs":          {query: strings.Repeat("x=1&", 1000) + "sku=a", want: "malformed the query: it has more than 1000"},
		"empty pairs count":    {query: "sku=a" + strings.Repeat("&", 1000) + "quantity=5", want: "malformed the query: it has more than 1000"},
		"1,000 with empty":     {query: "sku=a" + strings.Repeat("&", 999) + "quantity=5", want: "a×5"},
		"empty pairs, a form":  {query: "sku=a", mediaType: formType, body: strings.Repeat("&", 1001) + "x=1", want: "malformed the body: it has more than 1000"},
		"in a JSON body":       {query: "sku=a", mediaType: jsonType, body: `{"sku":"b"}`, want: "malformed query.sku: the name is in the body too"},
		"in a JSON body, case": {query: "sku=a", mediaType: jsonType, body: `{"Quantity":2}`, want: "malformed query.quantity: the name appears in another spelling"},
		"with a JSON body":     {query: "sku=a", mediaType: jsonType, body: `{"note":"sku","x":{"sku":1}}`, want: "a×1"},
		"with a JSON array":    {query: "sku=a", mediaType: jsonType, body: `[{"sku":1}]`, want: "a×1"},
		"with broken JSON":     {query: "sku=a", mediaType: jsonType, body: `{"x":1`, want: "malformed the body"},
		"like JSON":            {query: "sku=a", mediaType: "text/json", body: `{"sku":1}`, want: "malformed query.sku: the name is in the body too"},
		"in a form":            {query: "sku=a", mediaType: formType, body: "sku=b", want: "malformed query.sku: the name is in the body too"},
		"in a form, array":     {query: "sku=a", mediaType: formType, body: "sku[]=b", want: "malformed query.sku: the name appears in another spelling in the body"},
		"with a form":          {query: "sku=a", mediaType: formType, body: "note=b%0A", want: "a×1"},
		"_method in a form":    {query: "sku=a", mediaType: formType, body: "_method=PUT", want: "malformed _method"},
		"_method in JSON":      {query: "sku=a", mediaType: jsonType, body: `{"_method":"PUT"}`, want: "malformed _method"},
		"other bodies":         {query: "sku=a", mediaType: "application/xml", body: "<sku>b</sku>", want: "malformed Content-Type: a body of this type"},
		"JSON as text":         {query: "sku=a", mediaType: "text/plain", body: `{"quantity":5}`, want: "malformed Content-Type: a body of this type"},
		"prototype":            {query: "sku=a&__proto__[quantity]=5", want: "malformed the query: it names a JavaScript object's prototype"},
		"constructor":          {query: "sku=a&constructor.prototype.quantity=5", want: "malformed the query: it names a JavaScript object's prototype"},
		"prototype, plain":     {query: "sku=a&__proto__=5", want: "malformed the query: it names a JavaScript object's prototype"},
		"body without type":    {query: "sku=a", body: "sku=b", want: "malformed Content-Type: a body needs one"},
	})
}

func TestMultipartThatNoSourceReads(t *testing.T) {
	part := func(disposition, text string) string {
		return "--b\r\n" + disposition + "\r\n\r\n" + text + "\r\n--b--\r\n"
	}
	const field = "malformed the body: it has a field by a name that the query has"
	const odd = "malformed the body: a part's headers are not those of a plain form field"
	const method = "malformed the body: a request cannot change its method"
	two := func(between string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\ntext" + between + "Content-Disposition: form-data; name=\"more\"\r\n\r\nb\r\n--b--\r\n"
	}
	rd := lineReader(t, "{query.sku}", "")
	for name, tc := range map[string]struct{ body, want string }{
		"others":                   {part(`Content-Disposition: form-data; name="note"`, "sku _method"), ""},
		"two parts":                {two("\r\n--b\r\n"), ""},
		"no parts":                 {"--b--\r\n", ""},
		"file called so":           {part(`Content-Disposition: form-data; name="file"; filename="sku"`, ""), ""},
		"file with a type":         {part("Content-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png", "x"), ""},
		"file in two spellings":    {part("Content-Disposition: form-data; name=\"file\"; filename=\"a.png\"; filename*=UTF-8''%C3%A4.png", "x"), ""},
		"lower-case header":        {part(`content-disposition: form-data; name="note"`, "x"), ""},
		"payment_method":           {part(`Content-Disposition: form-data; name="payment_method"`, "card"), ""},
		"source":                   {part(`Content-Disposition: form-data; name="sku"`, "b"), field},
		"source's array":           {part(`Content-Disposition: form-data; name="sku[]"`, "b"), field},
		"source behind a space":    {part(`Content-Disposition: form-data; name=" sku"`, "b"), field},
		"in another case":          {part(`CONTENT-DISPOSITION: form-data; name="SKU"`, "b"), field},
		"name in another case":     {part(`Content-Disposition: form-data; NAME="x"`, "b"), odd},
		"_method":                  {part(`Content-Disposition: form-data; name="_method"`, "PUT"), method},
		"prototype":                {part(`Content-Disposition: form-data; name="__proto__[sku]"`, "b"), "malformed the body: it names a JavaScript object's prototype"},
		"bare":                     {part(`Content-Disposition: form-data; name=x`, "b"), odd},
		"single quotes":            {part(`Content-Disposition: form-data; name='x'`, "b"), odd},
		"extended":                 {part(`Content-Disposition: form-data; name*=utf-8''sku`, "b"), odd},
		"continued":                {part(`Content-Disposition: form-data; name="x"; name*0="sk"; name*1="u"`, "b"), odd},
		"two names":                {part(`Content-Disposition: form-data; name="x"; name="sku"`, "b"), odd},
		"name behind a file":       {part(`Content-Disposition: form-data; filename="a"; name="x"`, "b"), odd},
		"quote in the file's name": {part(`Content-Disposition: form-data; name="x"; filename="a\"; name="sku"`, "b"), odd},
		"space":                    {part("Content-Disposition: form-data; name\t= \"x\"", "b"), odd},
		"folded":                   {part("Content-Disposition: form-data;\r\n name=\"x\"", "b"), odd},
		"quoted pair":              {part(`Content-Disposition: form-data; name="\x"`, "b"), odd},
		"encoded":                  {part(`Content-Disposition: form-data; name="s%6bu"`, "b"), odd},
		"NUL":                      {part("Content-Disposition: form-data; name=\"sku\x00x\"", "b"), odd},
		"not closed":               {part(`Content-Disposition: form-data; name="sku`, "b"), odd},
		"no name":                  {part(`Content-Disposition: form-data`, "b"), odd},
		"no disposition":           {part(`Content-Type: text/plain`, "b"), odd},
		"two dispositions":         {part("Content-Disposition: form-data; name=\"x\"\r\nContent-Disposition: form-data; name=\"sku\"", "b"), odd},
		"other header":             {part("Content-Disposition: form-data; name=\"x\"\r\nContent-ID: sku", "b"), odd},
		"multipart inside":         {part("Content-Disposition: form-data; name=\"x\"\r\nContent-Type: multipart/mixed; boundary=c", "b"), "malformed the body: a part is multipart itself"},
		"preamble":                 {"hello\r\n" + part(`Content-Disposition: form-data; name="x"`, "b"), "malformed the body: it does not begin with the boundary"},
		"epilogue":                 {part(`Content-Disposition: form-data; name="x"`, "b") + "more", "malformed the body: there is more after the last boundary"},
		"line feeds":               {strings.ReplaceAll(part(`Content-Disposition: form-data; name="x"`, "b"), "\r\n", "\n"), "malformed the body: a boundary stands inside a line"},
		"boundary behind LF":       {two("\n--b\r\n"), "malformed the body: a boundary stands inside a line"},
		"boundary, then a space":   {two("\r\n--b \r\n"), "malformed the body: a boundary stands inside a line"},
		"longer boundary":          {two("\r\n--bb\r\n"), "malformed the body: a boundary stands inside a line"},
		"no end":                   {"--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nb", "malformed the body: the last boundary is missing"},
		"headers without end":      {"--b\r\nContent-Disposition: form-data; name=\"x\"", "malformed the body: a part has no end of its headers"},
		"1001 parts":               {strings.Repeat("--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n", 1001) + "--b--", "malformed the body: it has more than 1000 parts"},
	} {
		r := request("POST", "/buy?sku=a", "multipart/form-data; boundary=b", tc.body)
		_, refusal := whole(t, rd, r, attempt.Env{})
		if got := describe(refusal); tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestMultipartBoundaries(t *testing.T) {
	rd := lineReader(t, "{query.sku}", "")
	for mediaType, ok := range map[string]bool{
		`multipart/form-data; boundary=b`:                   true,
		`multipart/form-data; boundary="b"`:                 true,
		`multipart/form-data`:                               false,
		`multipart/form-data; boundary=b; charset=utf-7`:    false,
		`multipart/form-data; boundary="b c"`:               false,
		`multipart/form-data; boundary=`:                    false,
		`multipart/mixed; boundary=b`:                       false,
		`multipart/form-data; boundary=c`:                   false,
		`multipart/form-data; boundary=b; boundary=c`:       false,
		`multipart/form-data; boundary*0=b; boundary*1="c"`: false,
	} {
		body := "--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nx\r\n--b--\r\n"
		_, refusal := whole(t, rd, request("POST", "/buy?sku=a", mediaType, body), attempt.Env{})
		if got := refusal == nil; got != ok {
			t.Errorf("%s: passes: %v", mediaType, got)
		}
	}
}

func TestBodyIgnored(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"), BodyIgnored: true,
		Line: []attempt.LineSpec{{SKU: values(t, "{query.sku}")}},
	})
	runParams(t, rd, map[string]paramCase{
		"text":      {query: "sku=a", mediaType: "text/plain", body: `{"sku":"b"}`, want: "a×1"},
		"form":      {query: "sku=a", mediaType: formType, body: "sku=b", want: "a×1"},
		"multipart": {query: "sku=a", mediaType: "multipart/form-data; boundary=b", body: "--", want: "a×1"},
		"no type":   {query: "sku=a", body: "x", want: "a×1"},
	})
}

func TestForm(t *testing.T) {
	const typed = "malformed Content-Type: the body must be application/x-www-form-urlencoded or multipart/form-data"
	runParams(t, lineReader(t, "{form.sku}", "{form.quantity}"), map[string]paramCase{
		"plain":           {mediaType: formType, body: "sku=a&quantity=2", want: "a×2"},
		"charset":         {mediaType: formType + "; charset=UTF-8", body: "sku=a", want: "a×1"},
		"charset utf8":    {mediaType: formType + ";charset=UTF8", body: "sku=a", want: "a×1"},
		"other charset":   {mediaType: formType + "; charset=ibm037", body: "sku=a", want: "malformed Content-Type: the charset is not utf-8"},
		"byte order mark": {mediaType: formType, body: "\ufeffquantity=2&sku=a", want: "malformed the body: it begins with a byte order mark"},
		"twice":           {mediaType: formType, body: "sku=a&sku=b", want: "malformed form.sku: the name appears twice"},
		"array":           {mediaType: formType, body: "sku=a&sku[]=b", want: "malformed form.sku: the name appears in another spelling in the body"},
		"in query too":    {query: "sku=b", mediaType: formType, body: "sku=a", want: "malformed form.sku: the name is in the query too"},
		"only in query":   {query: "quantity=5", mediaType: formType, body: "sku=a", want: "malformed form.quantity: the name is in the query too"},
		"query's case":    {query: "Quantity=5", mediaType: formType, body: "sku=a", want: "malformed form.quantity: the name appears in another spelling in the query"},
		"semicolon":       {mediaType: formType, body: "sku=a;sku=b", want: "malformed the body: a semicolon"},
		"newline at end":  {mediaType: formType, body: "sku=a\n", want: "malformed form.sku: it is not printable ASCII"},
		"JSON as a form":  {mediaType: formType, body: `{"sku":"a"}`, want: "malformed form.sku: it is missing"},
		"JSON":            {mediaType: jsonType, body: `{"sku":"a"}`, want: typed},
		"multipart":       {mediaType: "multipart/form-data; boundary=b", body: multipartForm("sku", "a", "quantity", "2"), want: "a×2"},
		"broken":          {mediaType: "multipart/form-data; boundary=b", body: "--b", want: "malformed the body: a boundary stands inside a line"},
		"text":            {mediaType: "text/plain", body: "sku=a", want: typed},
		"no type":         {body: "sku=a", want: "malformed Content-Type: a body needs one"},
		"no body":         {mediaType: formType, want: "malformed form.sku: it is missing"},
	})
}

func TestFormAsJSON(t *testing.T) {
	const typed = "malformed Content-Type: the body must be application/json"
	runParams(t, lineReader(t, "{json.sku}", "{json.quantity}"), map[string]paramCase{
		"+json":                {mediaType: "application/vnd.shop+json", body: `{"sku":"a"}`, want: "a×1"},
		"charset utf8":         {mediaType: "application/json; charset=utf8", body: `{"sku":"a"}`, want: "a×1"},
		"charset":              {mediaType: "Application/JSON; Charset=\"UTF-8\"", body: `{"sku":"a"}`, want: "a×1"},
		"other charset":        {mediaType: "application/json; charset=utf-16", body: `{"sku":"a"}`, want: "malformed Content-Type: the charset is not utf-8"},
		"two charsets":         {mediaType: "application/json; charset=utf-8; charset=utf-7", body: `{"sku":"a"}`, want: "malformed Content-Type: it is not a media type"},
		"extended charset":     {mediaType: "application/json; charset*=utf-7''x", body: `{"sku":"a"}`, want: "malformed Content-Type: not every server understands extended parameters"},
		"two types":            {mediaType: "application/json, text/plain", body: `{"sku":"a"}`, want: "malformed Content-Type: it is not a media type"},
		"form":                 {mediaType: formType, body: `{"sku":"a"}`, want: typed},
		"text":                 {mediaType: "text/plain", body: `{"sku":"a"}`, want: typed},
		"text/json":            {mediaType: "text/json", body: `{"sku":"a"}`, want: typed},
		"multipart":            {mediaType: "multipart/form-data; boundary=b", body: `{"sku":"a"}`, want: typed},
		"in query too":         {query: "sku=b", mediaType: jsonType, body: `{"sku":"a"}`, want: "malformed json.sku: the name is in the query too"},
		"quantity in query":    {query: "quantity=5", mediaType: jsonType, body: `{"sku":"a"}`, want: "malformed json.quantity: the name is in the query too"},
		"query without a body": {query: "sku=a", want: "malformed json.sku: the name is in the query too"},
	})
}

func TestParam(t *testing.T) {
	runParams(t, lineReader(t, "{param.sku}", "{param.quantity}"), map[string]paramCase{
		"query":    {query: "sku=a&quantity=2", want: "a×2"},
		"form":     {mediaType: formType, body: "sku=a&quantity=2", want: "a×2"},
		"each one": {query: "sku=a", mediaType: formType, body: "quantity=2", want: "a×2"},
		"both":     {query: "sku=a", mediaType: formType, body: "sku=a", want: "malformed param.sku: the name is in the query and in the body"},
		"case":     {query: "sku=a", mediaType: formType, body: "SKU=a", want: "malformed param.sku: the name appears in another spelling"},
		"JSON":     {query: "sku=a", mediaType: jsonType, body: `{}`, want: "malformed Content-Type: the body must be application/x-www-form-urlencoded"},
	})
}

func TestQueryOrJSON(t *testing.T) {
	rd := mustReader(t, attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"),
		Line: []attempt.LineSpec{{
			SKU:      values(t, "{json.sku}", "{form.sku}", "{query.sku}"),
			Quantity: values(t, "{json.quantity}", "{query.quantity}"),
		}},
	})
	runParams(t, rd, map[string]paramCase{
		"JSON":            {mediaType: jsonType, body: `{"sku":"a","quantity":2}`, want: "a×2"},
		"form":            {mediaType: formType, body: `sku=a`, want: "a×1"},
		"query":           {query: "sku=a&quantity=2", want: "a×2"},
		"some of each":    {query: "quantity=2", mediaType: jsonType, body: `{"sku":"a"}`, want: "a×2"},
		"both":            {query: "sku=a", mediaType: jsonType, body: `{"sku":"a"}`, want: "malformed form.sku: the name is in the query and in the body"},
		"both, other way": {query: "sku=a", mediaType: formType, body: `sku=a`, want: "malformed form.sku: the name is in the query and in the body"},
		"null quantity":   {query: "", mediaType: jsonType, body: `{"sku":"a","quantity":null}`, want: "malformed json.quantity: it is not a whole number"},
		"text":            {mediaType: "text/plain", body: `sku=a`, want: "malformed Content-Type: the body must be application/json, application/x-www-form-urlencoded or multipart/form-data"},
	})
}
