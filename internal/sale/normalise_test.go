package sale_test

import (
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
		"buyer":  {"": "", "Ann": "Ann", " ann ": " ann ", "\xff": "\xff"},
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
	for _, seed := range []string{"+86 (0)138", "Straße 5, ﬁeld", "か.\u3099", "\u1100.\u1161", "2001:db8::1", "ǰ\u0345", "\u0390\ufe0f\u0301", "İ", "00(0)0", "0 \u05a2 \uff9f", "0\u309a.\u093c A"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, kind := range []string{"buyer", "phone", "address", "device", "ip"} {
			once := sale.NormaliseIdentity(kind, value)
			if twice := sale.NormaliseIdentity(kind, once); twice != once {
				t.Errorf("%s %+q becomes %+q, and that %+q", kind, value, once, twice)
			}
			if utf8.ValidString(value) && !utf8.ValidString(once) {
				t.Errorf("%s %+q becomes %+q", kind, value, once)
			}
		}
	})
}
