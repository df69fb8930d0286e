package sale_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stockgate/stockgate/internal/sale"
)

func TestNormaliseIdentity(t *testing.T) {
	for kind, values := range map[string]map[string]string{
		"phone": {
			"":                      "",
			"13800138000":           "13800138000",
			" 138-0013-8000 ":       "13800138000",
			"138.0013/8000":         "13800138000",
			"(010) 1234":            "0101234",
			"+86 138 0013 8000":     "+8613800138000",
			"+8613800138000":        "+8613800138000",
			"008613800138000":       "+8613800138000",
			"00 86 (138) 0013-8000": "+8613800138000",
			"(+86)13800138000":      "+8613800138000",
			"+0086 13800138000":     "+8613800138000",
			"tel:+8613800138000":    "+8613800138000",
			"+44 (0)20 7946 0958":   "+442079460958",
			"0044 ( 0 ) 2079460958": "+442079460958",
			"(0)2079460958":         "02079460958",
			"138+00138000":          "13800138000",
			"＋８６１３８００１３８０００":         "+8613800138000",
			"١٣٨٠٠١٣٨٠٠٠":            "13800138000",
			"१३८":                    "138",
			"138\u200b0013\u00ad800": "1380013800",
			"none":                   "",
			"+":                      "",
			"00":                     "",
			"+000":                   "",
			"0":                      "0",
			"\xff1\xfe2":             "12",

			"+1 212 555 0100 x12":           "+12125550100",
			"+1 212 555 0100x12":            "+12125550100",
			"+1 212 555 0100 X 12":          "+12125550100",
			"+1 (212) 555-0100 ext. 12":     "+12125550100",
			"+1 212 555 0100 (ext 12)":      "+12125550100",
			"+1 212 555 0100 Extension: 12": "+12125550100",
			"+1 212 555 0100 #12":           "+12125550100",
			"+1 212 555 0100#12#":           "+12125550100",
			"+1 212 555 0100,,12":           "+12125550100",
			"+7 495 555 01 00 доб. 12":      "+74955550100",
			"tel:+1-212-555-0100;ext=12":    "+12125550100",
			"+12125550100;isub=1;ext=12":    "+12125550100",
			"1-800-FLOWERS x12":             "18003569377",
			"138xxxx8000":                   "13899998000",
			"138,0013,8000":                 "13800138000",
			"138#0013#8000":                 "13800138000",
			"138 0013 8000 x 13800138000":   "1380013800013800138000", // too long for what follows a sign
			"0171;1234567":                  "01711234567",

			"1-800-FLOWERS":        "18003569377",
			"1-800-flowers":        "18003569377",
			"1-800-356-9377":       "18003569377",
			"1-800-CONTACTS":       "180026682287",
			"1-800-222-TIPS":       "18002228477",
			"+1 (800) GOT-JUNK":    "+18004685865",
			"138 0013 8000 mobile": "13800138000",
			"home: 138 0013 8000":  "13800138000",
			"555-0100 a":           "5550100",
			"FLOWERS":              "",
		},
		"email": {
			"":                                  "",
			"a@x.test":                          "a@x.test",
			"A@X.Test":                          "a@x.test",
			" a@x.test\r\n":                     "a@x.test",
			"Ａ＠ｘ．ｔｅｓｔ":                          "a@x.test",
			"a+shop@x.test":                     "a+shop@x.test",
			"a.b@x.test":                        "a.b@x.test",
			"a..b.@x.test":                      "a..b.@x.test",
			"o'neil/x=1@x.test":                 "o'neil/x=1@x.test",
			`"a"@x.test`:                        "a@x.test",
			`"a b"@x.test`:                      "",
			`"a\"b"@x.test`:                     "",
			`"a@b"@x.test`:                      "",
			"Jo\u0301@x.test":                   "jó@x.test",
			"JÓ@x.test":                         "jó@x.test",
			"用户@例子.测试":                          "用户@xn--fsqu00a.xn--0zwm56d",
			"a@BÜCHER.test":                     "a@xn--bcher-kva.test",
			"a@bu\u0308cher.test":               "a@xn--bcher-kva.test",
			"a@XN--BCHER-KVA.test":              "a@xn--bcher-kva.test",
			"a@localhost":                       "a@localhost",
			"a":                                 "",
			"@x.test":                           "",
			"a@":                                "",
			"a@x..test":                         "",
			"a@x.test.":                         "",
			"a@.test":                           "",
			"a@-x.test":                         "",
			"a@x_y.test":                        "",
			"a@[192.0.2.7]":                     "",
			"a@xn--a":                           "",
			"Ann <a@x.test>":                    "",
			"a(b)@x.test":                       "",
			"mailto:a@x.test":                   "",
			"a@x.test,b@x.test":                 "",
			"a\u200b@x.test":                    "",
			"a b@x.test":                        "",
			"\xff@x.test":                       "",
			strings.Repeat("a", 65) + "@x.test": "",
			"a@" + strings.Repeat(strings.Repeat("x", 63)+".", 4) + "x": "",
		},
		"address": {
			"":                 "",
			"  12,  Main St. ": "12 main st",
			"12 MAIN ST":       "12 main st",
			"12\tMain\r\n St":  "12 main st",
			"Flat 1/23":        "flat 1 23",
			"Flat 12/3":        "flat 12 3",
			"Flat 123":         "flat 123",
			"Straße 5":         "strasse 5",
			"STRASSE 5":        "strasse 5",
			"Şişli":            "şişli",
			"ΟΔΟΣ":             "οδοσ",
			"οδος":             "οδοσ",
			"Cafe\u0301 1":     "café 1",
			"CAFÉ 1":           "café 1",
			"Cafe 1":           "cafe 1",
			"ﬁeld":             "field",
			"北京市朝阳区建国路88号":     "北京市朝阳区建国路88号",
			"北京市 朝阳区，建国路８８号。":                    "北京市朝阳区建国路88号",
			"北 京 市朝阳区（建国路 88 号）":                 "北京市朝阳区建国路88号",
			"建国路88号5-302":                        "建国路88号5 302",
			"建国路88号5 - 302":                      "建国路88号5 302",
			"建国路88号53-02":                        "建国路88号53 02",
			"東京タワー 5":                            "東京タワー5",
			"東京ﾀﾜｰ5":                             "東京タワー5",
			"か゛":                                 "が",
			"か.\u3099":                           "が",
			"서울 강남구 12":                          "서울 강남구 12",
			"ถนน สุขุมวิท":                       "ถนนสุขุมวิท",
			"Ma\u200bin\u00ad \u2060St\ufe0f":    "main st",
			"\u202e12 Main\u202c \u3164St\u034f": "12 main st",
			"♥ 12 Main St ♥":                     "12 main st",
			"№ 5, ＭＡＩＮ":                          "no 5 main",
			"…, -":                               "",
			"\xff12 \xfeMain":                    "12 main",
		},
		"ip": {
			"":                              "",
			"203.0.113.7":                   "203.0.113.7",
			" 203.0.113.7 ":                 "203.0.113.7",
			"203.0.113.7:5678":              "203.0.113.7",
			"::ffff:203.0.113.7":            "203.0.113.7",
			"::ffff:cb00:7107":              "203.0.113.7",
			"64:ff9b::203.0.113.7":          "203.0.113.7",
			"64:ff9b:1::203.0.113.7":        "203.0.113.7",
			"::ffff:0:203.0.113.7":          "203.0.113.7",
			"[64:ff9b::203.0.113.7]:443":    "203.0.113.7",
			"2001:db8:1:2:3:4:5:6":          "2001:db8:1:2::",
			"2001:DB8:1:2::":                "2001:db8:1:2::",
			"2001:db8:1:3::1":               "2001:db8:1:3::",
			"[2001:db8:1:2::9]:443":         "2001:db8:1:2::",
			"fe80::1%eth0":                  "fe80::",
			"::1":                           "::",
			"203.0.113.07":                  "",
			"203.0.113":                     "",
			"3405803783":                    "",
			"203.0.113.7, 198.51.100.1":     "",
			"2001:db8::/64":                 "",
			"localhost":                     "",
			"::ffff:203.0.113.7%x":          "203.0.113.7",
			"0000:0000:0000:0000:0:0:0:0:0": "",
		},
		"buyer":  {"": "", "Ann": "Ann", " ann ": " ann ", "\xff": "\xff", "A@x.test": "A@x.test"},
		"any":    {"A@x.test": "A@x.test"},
		"device": {"": "", "ABC-1": "ABC-1", "abc-1": "abc-1"},
		"other":  {"": "", "１": "１"},
	} {
		for value, want := range values {
			got := sale.NormaliseIdentity(kind, value)
			if got != want {
				t.Errorf("%s %q becomes %q, want %q", kind, value, got, want)
			}
			if again := sale.NormaliseIdentity(kind, got); again != got {
				t.Errorf("%s %q becomes %q, and that %q", kind, value, got, again)
			}
		}
	}
}

// Options of identities: the country of phones, buyers that are e-mail addresses, and tags of these.
func TestIdentityRules(t *testing.T) {
	for rules, kinds := range map[sale.IdentityOptions]map[string]map[string]string{
		{Country: "DE"}: {"phone": {
			"0171 1234567":              "+491711234567",
			"+49 171 1234567":           "+491711234567",
			"0049 171 1234567":          "+491711234567",
			"+49 (0)171 1234567":        "+491711234567",
			"+49 0171 1234567":          "+491711234567",
			"(0171) 1234567 ext 9":      "+491711234567",
			"171 1234567":               "+491711234567",
			"tel:+49-171-1234567;ext=1": "+491711234567",
			"+39 06 69812345":           "+390669812345",
			"+39 (0)6 69812345":         "+390669812345",
			"0039 06 69812345":          "+390669812345",
			"+1 212 555 0100":           "+12125550100",
			"+1 1 212 555 0100":         "+12125550100",
			"+7 8 912 345 67 89":        "+79123456789",
			"+7 800 555 35 35":          "+78005553535",
			"+36 06 20 123 4567":        "+36201234567",
			"+33 (0)6 12 34 56 78":      "+33612345678",
			"+351 912 345 678":          "+351912345678",
			"+":                         "",
			"+49":                       "",
			"0":                         "",
			"none":                      "",
			"":                          "",
		}},
		{Country: "it"}: {"phone": {"06 69812345": "+390669812345", "347 1234567": "+393471234567", "+39 347 1234567": "+393471234567"}},
		{Country: "US"}: {"phone": {
			"212-555-0100": "+12125550100", "1 212 555 0100": "+12125550100", "011 49 171 1234567": "+491711234567",
			"1-800-FLOWERS": "+18003569377", "800-CONTACTS": "+180026682287",
		}},
		{Country: "RU"}:                    {"phone": {"8 912 345-67-89": "+79123456789", "912 345-67-89": "+79123456789", "8 (800) 555-35-35": "+78005553535", "8~10 49 171 1234567": "+491711234567"}},
		{Country: "AU"}:                    {"phone": {"0412 345 678": "+61412345678", "0011 49 171 1234567": "+491711234567"}},
		{Country: "HU"}:                    {"phone": {"06 20 123 4567": "+36201234567"}},
		{Country: "MX"}:                    {"phone": {"55 1234 5678": "+525512345678", "+52 1 55 1234 5678": "+525512345678", "044 55 1234 5678": "+525512345678"}},
		{Country: "BY"}:                    {"phone": {"8 029 123-45-67": "+375291234567", "80 29 1234567": "+375291234567", "+375 29 1234567": "+375291234567"}},
		{Country: "LT"}:                    {"phone": {"8 612 34567": "+37061234567", "0 612 34567": "+37061234567"}},
		{Country: "CN"}:                    {"phone": {"13800138000": "+8613800138000", "0086 138 0013 8000": "+8613800138000", "010 6552 9988": "+861065529988"}},
		{Country: "GB"}:                    {"phone": {"020 7946 0958": "+442079460958", "+44 (0)20 7946 0958": "+442079460958"}},
		{}:                                 {"phone": {"0171 1234567": "01711234567"}, "email": {"a+b@x.test": "a+b@x.test"}},
		{Buyer: "name", EmailTags: "kept"}: {"buyer": {"A@x.test": "A@x.test"}},
		{Buyer: "email"}: {
			"buyer":  {"A@X.test": "a@x.test", "A＠x.test": "a@x.test", "Ann": "Ann", "a@": "", "A+b@x.test": "a+b@x.test"},
			"any":    {"A@x.test": "a@x.test", "a@": "a@", "Ann": "Ann", "1＠2": "1@2"},
			"device": {"A@x.test": "A@x.test"},
		},
		{Buyer: "email", EmailTags: "ignored"}: {
			"buyer": {"A+shop@x.test": "a@x.test", "a++@x.test": "a@x.test", "+a@x.test": "+a@x.test", "a+b": "a+b"},
			"email": {"A+Shop@x.test": "a@x.test", `"a+b"@x.test`: "a@x.test"},
		},
	} {
		r, err := rules.Rules()
		if err != nil {
			t.Fatal(err)
		}
		for kind, values := range kinds {
			for value, want := range values {
				got := r.Normalise(kind, value)
				if again := r.Normalise(kind, got); got != want || again != got {
					t.Errorf("%v: %s %q becomes %q, and that %q, want %q", rules, kind, value, got, again, want)
				}
			}
		}
	}
}

func TestIdentityOptions(t *testing.T) {
	for _, tc := range []struct {
		options sale.IdentityOptions
		text    string // of the rules, or a part of the error
	}{
		{sale.IdentityOptions{}, ""},
		{sale.IdentityOptions{Buyer: "name", EmailTags: "kept"}, ""},
		{sale.IdentityOptions{Country: "de", Buyer: "email", EmailTags: "ignored"}, "country DE, buyer email, email_tags ignored"},
		{sale.IdentityOptions{Country: "+49"}, "two letters"},
		{sale.IdentityOptions{Country: "ZZ"}, "two letters"},
		{sale.IdentityOptions{Buyer: "phone"}, "there are name and email"},
		{sale.IdentityOptions{EmailTags: "off"}, "there are kept and ignored"},
	} {
		rules, err := tc.options.Rules()
		if err == nil && rules.String() != tc.text || err != nil && (tc.text == "" || !strings.Contains(err.Error(), tc.text)) {
			t.Errorf("%+v: %q %v, want %q", tc.options, rules, err, tc.text)
		}
	}
}

func TestDigitsOfAllScripts(t *testing.T) {
	last, value := rune(-1), 9
	for r := range rune(unicode.MaxRune) {
		if !unicode.Is(unicode.Nd, r) {
			continue
		}
		if r != last+1 && value != 9 {
			t.Errorf("%q ends its script with %d", last, value)
		}
		value, last = (value+1)%10, r
		if got, want := sale.NormaliseIdentity("phone", string(r)), string(rune('0'+value)); got != want {
			t.Errorf("%q is %q, want %s", r, got, want)
		}
	}
}

// FuzzNormaliseIdentity: the normal form of an identity is its own normal form, and the
// form can be hashed and compared by every edge alike.
func FuzzNormaliseIdentity(f *testing.F) {
	for _, seed := range []string{"+86 (0)138", "Straße 5, ﬁeld", "か.\u3099", "\u1100.\u1161", "2001:db8::1", "ǰ\u0345", "\u0390\ufe0f\u0301", "İ", "00(0)0", "0 \u05a2 \uff9f", "0\u309a.\u093c A", "A+b@BÜ.test", "1-800-FLOWERS x12", "8 10 49 (0)171", "İ@x.test"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, options := range []sale.IdentityOptions{{}, {Country: "DE", Buyer: "email", EmailTags: "ignored"}, {Country: "RU", Buyer: "email"}, {Country: "US"}} {
			rules, err := options.Rules()
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"buyer", "phone", "email", "address", "device", "ip", "any"} {
				once := rules.Normalise(kind, value)
				if twice := rules.Normalise(kind, once); twice != once {
					t.Errorf("%s: %s %+q becomes %+q, and that %+q", rules, kind, value, once, twice)
				}
				if edge := sale.NormaliseIdentity(kind, once); edge != once {
					t.Errorf("%s: %s %+q becomes %+q, and at an edge %+q", rules, kind, value, once, edge)
				}
				if utf8.ValidString(value) && !utf8.ValidString(once) {
					t.Errorf("%s: %s %+q becomes %+q", rules, kind, value, once)
				}
			}
		}
	})
}
