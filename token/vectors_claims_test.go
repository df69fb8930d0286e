package token_test

import (
	"strings"
)

// jsonTexts are claims that readers of JSON disagree about.
func (f *forge) jsonTexts() {
	nest := func(levels int) string { return strings.Repeat("[", levels) + "1" + strings.Repeat("]", levels) }
	for _, c := range []struct{ name, member, want string }{
		{"a member twice", `"x":1,"x":1`, "malformed"},
		{"a claim twice", `"exp":9999999999`, "malformed"},
		{"a claim twice, once in escapes", `"\u0065xp":9999999999`, "malformed"},
		{"twice in an object within", `"x":[{"a":1,"a":2}]`, "malformed"},
		{"a claim in capitals beside it", `"EXP":1,"Sub":"x"`, "ok"},
		{"names of the library's own", `"__proto__":{"sub":"x"},"constructor":1,"":2,"0":1,"00":2,"length":3`, "ok"},
		{"15 levels", `"x":` + nest(15), "ok"},
		{"16 levels", `"x":` + nest(16), "malformed"},
		{"an empty list on the last level", `"x":` + strings.Repeat("[", 16) + strings.Repeat("]", 16), "ok"},
		{"an empty list too deep", `"x":` + strings.Repeat("[", 17) + strings.Repeat("]", 17), "malformed"},
		{"1000 levels", `"x":` + nest(1000), "malformed"},
		{"objects of 16 levels", `"x":` + strings.Repeat(`{"a":`, 16) + "1" + strings.Repeat("}", 16), "malformed"},
		{"numbers of every form", `"x":[0,-0,1e999,-1.5E+3,0.1e-2,99999999999999999999]`, "ok"},
		{"a number that begins with 0", `"x":01`, "malformed"},
		{"a number with a plus", `"x":+1`, "malformed"},
		{"a number without digits before the point", `"x":.5`, "malformed"},
		{"a number without digits behind the point", `"x":1.`, "malformed"},
		{"a number without an exponent", `"x":1e`, "malformed"},
		{"a number that is only a minus", `"x":-`, "malformed"},
		{"NaN", `"x":NaN`, "malformed"},
		{"Infinity", `"x":-Infinity`, "malformed"},
		{"hexadecimal", `"x":0x10`, "malformed"},
		{"digits of another script", `"x":٣`, "malformed"},
		{"true, false and null", `"x":[true,false,null]`, "ok"},
		{"True", `"x":True`, "malformed"},
		{"a word cut short", `"x":nul`, "malformed"},
		{"words that stick together", `"x":[truefalse]`, "malformed"},
		{"a comma too many in an object", `"x":{"a":1,}`, "malformed"},
		{"a comma too many in a list", `"x":[1,]`, "malformed"},
		{"a comma at the start of a list", `"x":[,1]`, "malformed"},
		{"a comma at the start of an object", `"x":{,"a":1}`, "malformed"},
		{"two commas", `"x":[1,,2]`, "malformed"},
		{"no comma in a list", `"x":[1 2]`, "malformed"},
		{"no comma between members", `"x":{"a":1 "b":2}`, "malformed"},
		{"a colon in a list", `"x":["a":1]`, "malformed"},
		{"no colon", `"x" 1`, "malformed"},
		{"two colons", `"x"::1`, "malformed"},
		{"no value", `"x":`, "malformed"},
		{"a member without a value", `"x"`, "malformed"},
		{"a name without quotes", `x:1`, "malformed"},
		{"a name that is a number", `1:1`, "malformed"},
		{"a name that is null", `null:1`, "malformed"},
		{"single quotes", `'x':1`, "malformed"},
		{"a bracket closed as a brace", `"x":[1}`, "malformed"},
		{"a brace closed as a bracket", `"x":{"a":1]`, "malformed"},
		{"a comment", `"x":/* 1 */1`, "malformed"},
		{"a comment to the end of the line", "\"x\":1 // 1\n", "malformed"},
		{"a comment like a shell's", "\"x\":1 # 1\n", "malformed"},
		{"a space that JSON does not have", "\"x\":\u00a01", "malformed"},
		{"a form feed", "\"x\":\f1", "malformed"},
		{"a vertical tab", "\"x\":\v1", "malformed"},
		{"a byte order mark within", "\"x\":\ufeff1", "malformed"},
	} {
		f.claim("JSON: "+c.name, `{"iss"`, "{"+c.member+`,"iss"`, c.want)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "malformed"},
		{"null", "null", "malformed"},
		{"a list", "[]", "malformed"},
		{"a list of the object", "[" + f.body + "]", "malformed"},
		{"a string of the object", `"{}"`, "malformed"},
		{"an empty object", "{}", "malformed"},
		{"spaces around", " \t\r\n" + f.body + " \t\r\n", "ok"},
		{"another object behind", f.body + "{}", "malformed"},
		{"a letter behind", f.body + "x", "malformed"},
		{"NUL behind", f.body + "\x00", "malformed"},
		{"a bracket behind", f.body + "]", "malformed"},
		{"a comma behind", f.body + ",", "malformed"},
		{"a byte order mark before", "\ufeff" + f.body, "malformed"},
		{"no end", f.body[:len(f.body)-1], "malformed"},
		{"a comma before the end", f.body[:len(f.body)-1] + ",}", "malformed"},
	} {
		s := f.step(rawEd25519(f.t, goodHeader, c.text), c.want)
		s.Fetches = 1
		f.add("claims: "+c.name, s)
		bad := strings.Replace(c.text, f.body, goodHeader, 1)
		if bad != c.text {
			f.header("header: "+c.name, bad, c.want)
		}
	}
	f.header("header: a list", "[]", "malformed")
	f.header("header: a member twice", `{"alg":"none",`+goodHeader[1:], "malformed")
	f.header("header: a member twice, once in escapes", `{"\u0061lg":"none",`+goodHeader[1:], "malformed")
	f.header("header: 16 levels", `{"x":`+nest(16)+","+goodHeader[1:], "malformed")
	f.header("header: 15 levels", `{"x":`+nest(15)+","+goodHeader[1:], "ok")
	f.header("header: not UTF-8", "{\"x\":\"\xff\","+goodHeader[1:], "malformed")
}

// claims are claims that the token of an edge does not have.
func (f *forge) claims() {
	for _, c := range []struct{ name, from, to, want string }{
		{"another issuer", `"iss":"stockgate"`, `"iss":"stockgate2"`, "issuer"},
		{"the issuer in capitals", `"iss":"stockgate"`, `"iss":"Stockgate"`, "issuer"},
		{"an empty issuer", `"iss":"stockgate"`, `"iss":""`, "issuer"},
		{"another audience", `"aud":"order-backend"`, `"aud":"other"`, "audience"},
		{"an audience that begins like ours", `"aud":"order-backend"`, `"aud":"order-backend-2"`, "audience"},
		{"a list of audiences", `"aud":"order-backend"`, `"aud":["order-backend"]`, "malformed"},
		{"another issuer and audience", `"iss":"stockgate","aud":"order-backend"`, `"iss":"x","aud":"y"`, "issuer"},
		{"an audience of an order that is not ours", `"aud":"order-backend","sub":"buyer-7"`, `"aud":"x","sub":"buyer-8"`, "audience"},
		{"a subject in capitals", `"sub":`, `"Sub":`, "malformed"},
		{"an empty subject", `"sub":"buyer-7"`, `"sub":""`, "malformed"},
		{"a subject that is null", `"sub":"buyer-7"`, `"sub":null`, "malformed"},
		{"a subject that is a number", `"sub":"buyer-7"`, `"sub":7`, "malformed"},
		{"an empty jti", `"jti":"` + claims().ID + `"`, `"jti":""`, "malformed"},
		{"a jti that is a number", `"jti":"` + claims().ID + `"`, `"jti":1`, "malformed"},
		{"an empty sale", `"sale":"double11"`, `"sale":""`, "malformed"},
		{"an empty ref", `"ref":"cart-9"`, `"ref":""`, "ok"},
		{"no ref", `"ref":"cart-9",`, ``, "ok"},
		{"a ref that is null", `"ref":"cart-9"`, `"ref":null`, "malformed"},
		{"a ref that is a number", `"ref":"cart-9"`, `"ref":9`, "malformed"},
		{"exp as text", `"exp":1790000025`, `"exp":"1790000025"`, "malformed"},
		{"exp with a fraction", `"exp":1790000025`, `"exp":1790000025.0`, "malformed"},
		{"exp with an exponent", `"exp":1790000025`, `"exp":1790000025e0`, "malformed"},
		{"exp true", `"exp":1790000025`, `"exp":true`, "malformed"},
		{"exp as iat", `"exp":1790000025`, `"exp":1790000000`, "malformed"},
		{"exp after iat by one", `"iat":1790000000,"exp":1790000025`, `"iat":9007199254740992,"exp":9007199254740993`, "ok"},
		{"the largest exp", `"exp":1790000025`, `"exp":9223372036854775807`, "ok"},
		{"exp beyond 64 bits", `"exp":1790000025`, `"exp":9223372036854775808`, "malformed"},
		{"iat below 0", `"iat":1790000000`, `"iat":-1`, "malformed"},
		{"iat -0", `"iat":1790000000`, `"iat":-0`, "ok"},
		{"iat below 64 bits", `"iat":1790000000`, `"iat":-9223372036854775809`, "malformed"},
		{"iat in the future", `"iat":1790000000`, `"iat":1790000024`, "ok"},
		{"nbf in the future, which tokens do not have", `"iat"`, `"nbf":1790000024,"iat"`, "ok"},
		{"ep 0", `"ep":3`, `"ep":0`, "ok"},
		{"ep below 0", `"ep":3`, `"ep":-1`, "malformed"},
		{"ep true", `"ep":3`, `"ep":true`, "malformed"},
		{"qty true", `"qty":2`, `"qty":true`, "malformed"},
		{"the largest ep", `"ep":3`, `"ep":9223372036854775807`, "ok"},
		{"ep of many digits", `"ep":3`, `"ep":` + strings.Repeat("9", 400), "malformed"},
		{"lines that are no list", `"lines":[`, `"lines":{},"x":[`, "malformed"},
		{"lines null", `"lines":[`, `"lines":null,"x":[`, "malformed"},
		{"no line", `"lines":[`, `"lines":[],"x":[`, "malformed"},
		{"a line that is no object", `"lines":[`, `"lines":["a",`, "malformed"},
		{"a line that is null", `"lines":[`, `"lines":[null,`, "malformed"},
		{"a line that is a list", `"lines":[`, `"lines":[[],`, "malformed"},
		{"a line with a member twice", `"qty":2`, `"qty":9,"qty":2`, "malformed"},
		{"a line with another member", `"qty":2`, `"qty":2,"x":[{}]`, "ok"},
		{"a line of 15 levels", `"qty":2`, `"qty":2,"x":` + strings.Repeat("[", 15) + "1" + strings.Repeat("]", 15), "ok"},
		{"a line of 16 levels", `"qty":2`, `"qty":2,"x":` + strings.Repeat("[", 16) + "1" + strings.Repeat("]", 16), "malformed"},
		{"a line without sku", `"sku":"20002001",`, ``, "malformed"},
		{"a line without qty", `,"qty":2`, ``, "malformed"},
		{"an empty sku", `"sku":"20002001"`, `"sku":""`, "malformed"},
		{"a sku that is a number", `"sku":"20002001"`, `"sku":20002001`, "malformed"},
		{"qty 0", `"qty":2`, `"qty":0`, "malformed"},
		{"qty below 0", `"qty":2`, `"qty":-2`, "malformed"},
		{"qty as text", `"qty":2`, `"qty":"2"`, "malformed"},
		{"qty with a fraction", `"qty":2`, `"qty":2.0`, "malformed"},
		{"qty above the largest", `"qty":2`, `"qty":1000000000001`, "malformed"},
		{"an empty region", `"qty":2`, `"qty":2,"region":""`, "ok"},
		{"a region that is null", `"qty":2`, `"qty":2,"region":null`, "malformed"},
		{"a region that is a number", `"qty":2`, `"qty":2,"region":1`, "malformed"},
	} {
		f.claim(c.name, c.from, c.to, c.want)
	}
	for _, name := range []string{"iss", "aud", "sub", "jti", "iat", "exp", "ep", "sale", "lines"} {
		f.claim("no "+name, `"`+name+`":`, `"no `+name+`":`, "malformed")
	}
}

// strings are texts that decoders read in different ways.
func (f *forge) strings() {
	for _, c := range []struct{ name, text, want string }{
		{"every escape", `\"\\\/\b\f\n\r\t\u0041`, "ok"},
		{"NUL in escapes", `\u0000`, "ok"},
		{"a pair of surrogates", `\ud83d\ude00\uD83D\uDE00`, "ok"},
		{"half a pair", `\ud83d`, "malformed"},
		{"the other half", `\ude00`, "malformed"},
		{"halves the wrong way round", `\ude00\ud83d`, "malformed"},
		{"half a pair and a letter", `\ud83d\u0041`, "malformed"},
		{"a backslash before half a pair", `\\\ud83d`, "malformed"},
		{"a backslash, and no escape", `\\ud83d`, "ok"},
		{"an escape that JSON does not have", `\x41`, "malformed"},
		{"a quote in an escape", `\'`, "malformed"},
		{"an escape in capitals", `\U0041`, "malformed"},
		{"an escape cut short", `\u004`, "malformed"},
		{"an escape of other digits", `\u00g1`, "malformed"},
		{"an escape with a sign", `\u+041`, "malformed"},
		{"an escape with a space", `\u 041`, "malformed"},
		{"a tab", "\t", "malformed"},
		{"a line end", "\n", "malformed"},
		{"the byte 0", "\x00", "malformed"},
		{"the byte 0x1f", "\x1f", "malformed"},
		{"the byte 0x7f", "\x7f", "ok"},
		{"other scripts", "手机😀é", "ok"},
		{"separators of lines", "\u2028\u2029", "ok"},
		{"no UTF-8", "\xff", "malformed"},
		{"a character cut short", "\xe6\x89", "malformed"},
		{"an overlong form", "\xc0\xaf", "malformed"},
		{"a surrogate in UTF-8", "\xed\xa0\x80", "malformed"},
		{"beyond Unicode", "\xf4\x90\x80\x80", "malformed"},
		{"the replacement character", "\ufffd", "ok"},
		{"a character that is none", "\uffff", "ok"},
	} {
		f.claim("text: "+c.name, `"ref":"cart-9"`, `"ref":"`+c.text+`"`, c.want)
	}
	f.claim("text: half a pair in a name", `"ref"`, `"\ud83d":1,"ref"`, "malformed")
	f.claim("text: half a pair in a text that is not known", `"ref"`, `"x":["\ud83d"],"ref"`, "malformed")
	same := f.step(rawEd25519(f.t, goodHeader, strings.Replace(f.body, "buyer-7", `\u624b机\ud83d\ude00`, 1)), "ok")
	same.Subject = "手机😀"
	f.add("a buyer in escapes", same)
	composed := f.step(rawEd25519(f.t, goodHeader, strings.Replace(f.body, "buyer-7", "\u00e9", 1)), "subject")
	composed.Subject = "e\u0301"
	f.add("a buyer in another form of Unicode", composed)
	nul := f.step(rawEd25519(f.t, goodHeader, strings.Replace(f.body, "buyer-7", `buyer-7\u0000`, 1)), "subject")
	f.add("a buyer with NUL behind", nul)
}
