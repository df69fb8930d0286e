package sale

import (
	"fmt"
	"strings"
)

// country says how numbers are written in a country: of some 240 countries, that is all that their
// digits need to be compared. The lengths and ranges of a country's numbers, which change each month, are not
// used: a person must not become another one in the middle of a sale.
type country struct {
	name string // ISO 3166-1, such as DE
	code string // of its numbers, such as 49
	idd  string // what is dialled there before another country's code, where it does not begin with 00
}

// countries are the names of countries, each before the code of its numbers (ITU-T E.164).
var countries = parseCountries(`
AC247 AD376 AE971 AF93 AG1 AI1 AL355 AM374 AO244 AR54 AS1 AT43 AU61 AW297 AX358 AZ994 BA387 BB1 BD880 BE32 BF226 BG359
BH973 BI257 BJ229 BL590 BM1 BN673 BO591 BQ599 BR55 BS1 BT975 BW267 BY375 BZ501 CA1 CC61 CD243 CF236 CG242 CH41 CI225
CK682 CL56 CM237 CN86 CO57 CR506 CU53 CV238 CW599 CX61 CY357 CZ420 DE49 DJ253 DK45 DM1 DO1 DZ213 EC593 EE372 EG20
EH212 ER291 ES34 ET251 FI358 FJ679 FK500 FM691 FO298 FR33 GA241 GB44 GD1 GE995 GF594 GG44 GH233 GI350 GL299 GM220
GN224 GP590 GQ240 GR30 GT502 GU1 GW245 GY592 HK852 HN504 HR385 HT509 HU36 ID62 IE353 IL972 IM44 IN91 IO246 IQ964 IR98
IS354 IT39 JE44 JM1 JO962 JP81 KE254 KG996 KH855 KI686 KM269 KN1 KP850 KR82 KW965 KY1 KZ7 LA856 LB961 LC1 LI423 LK94
LR231 LS266 LT370 LU352 LV371 LY218 MA212 MC377 MD373 ME382 MF590 MG261 MH692 MK389 ML223 MM95 MN976 MO853 MP1 MQ596
MR222 MS1 MT356 MU230 MV960 MW265 MX52 MY60 MZ258 NA264 NC687 NE227 NF672 NG234 NI505 NL31 NO47 NP977 NR674 NU683 NZ64
OM968 PA507 PE51 PF689 PG675 PH63 PK92 PL48 PM508 PR1 PS970 PT351 PW680 PY595 QA974 RE262 RO40 RS381 RU7 RW250 SA966
SB677 SC248 SD249 SE46 SG65 SH290 SI386 SJ47 SK421 SL232 SM378 SN221 SO252 SR597 SS211 ST239 SV503 SX1 SY963 SZ268
TA290 TC1 TD235 TG228 TH66 TJ992 TK690 TL670 TM993 TN216 TO676 TR90 TT1 TV688 TW886 TZ255 UA380 UG256 US1 UY598 UZ998
VA39 VC1 VE58 VG1 VI1 VN84 VU678 WF681 WS685 XK383 YE967 YT262 ZA27 ZM260 ZW263
`)

// untrunked are the codes of countries where nothing is dialled before a national number, so that a zero
// at its beginning belongs to it, as in Italy.
var untrunked = setOf(`
30 34 39 45 47 48 52 56 65 216 220 221 222 223 224 225 226 227 228 229 230 235 236 237 238 239 240 241 242 244
245 246 247 248 253 257 258 266 267 268 269 290 297 298 299 350 351 352 354 356 357 371 372 376 378 420 500
501 502 503 504 505 506 507 509 592 597 599 670 672 673 674 675 676 677 678 679 680 681 682 683 685 687 688
689 690 691 852 853 960 965 968 973 974 975 992 998
`)

// idds are the prefixes of international calls, by a country's code.
var idds = map[string]string{"1": "011", "7": "810", "53": "119", "61": "0011", "81": "010", "375": "810", "692": "011", "993": "810"}

func parseCountries(table string) map[string]*country {
	all := make(map[string]*country)
	for _, word := range strings.Fields(table) {
		name, code := word[:2], word[2:]
		all[name] = &country{name, code, idds[code]}
	}
	return all
}

func setOf(words string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// findCountry returns the country of a name.
func findCountry(name string) (*country, error) {
	if c := countries[strings.ToUpper(name)]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("country %q: write the two letters of a country (ISO 3166), such as DE, GB or CN", name)
}

// number returns the international form of a number that was written in the country.
func (c *country) number(digits string, international bool) string {
	for _, prefix := range []string{c.idd, "00"} {
		if prefix != "" && !international && strings.HasPrefix(digits, prefix) {
			digits, international = digits[len(prefix):], true
		}
	}
	code := c.code
	if international {
		digits = strings.TrimLeft(digits, "0")
		code = callingCode(digits)
		digits = digits[len(code):]
	}
	if digits = withoutTrunk(code, digits); digits == "" {
		return ""
	}
	return "+" + code + digits
}

// callingCode returns the country's code at the beginning of an international number. No code is the beginning
// of another one.
func callingCode(digits string) string {
	length := 3
	switch {
	case strings.HasPrefix(digits, "1"), strings.HasPrefix(digits, "7"):
		length = 1
	case len(digits) >= 2 && strings.Contains(twoDigits, digits[:2]):
		length = 2
	}
	return digits[:min(length, len(digits))]
}

// twoDigits are the codes that have two.
const twoDigits = "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94 95 98"

// withoutTrunk returns a national number without what is dialled before it within its country, most often 0.
// A prefix that numbers themselves may begin with is one only where the rest has the length of a number.
func withoutTrunk(code, digits string) string {
	switch code {
	case "1":
		return cutTrunk(digits, 10, "1")
	case "7":
		return cutTrunk(digits, 10, "8")
	case "52": // prefixes of before 2019
		return cutTrunk(digits, 10, "044", "045", "01", "1")
	case "36":
		for strings.HasPrefix(digits, "06") {
			digits = digits[len("06"):]
		}
		return digits
	case "370":
		return cutTrunk(digits, 8, "0", "8")
	case "375":
		return cutTrunk(digits, 9, "80", "8", "0")
	case "692":
		return cutTrunk(digits, 7, "1")
	case "993":
		return cutTrunk(digits, 8, "8")
	}
	if untrunked[code] {
		return digits
	}
	return strings.TrimLeft(digits, "0")
}

// cutTrunk cuts off the first of the prefixes that leaves a number of that length.
func cutTrunk(digits string, length int, prefixes ...string) string {
	for _, prefix := range prefixes {
		if rest, has := strings.CutPrefix(digits, prefix); has && len(rest) == length {
			return rest
		}
	}
	return digits
}
