package sale_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// The head of every file below is three lines, "items:" is line 4.
const head = "id: s\nstarts_at: 2026-11-11T00:00:00Z\nends_at: 2026-11-12T00:00:00Z\n"

const oneItem = "items: [{sku: a, stock: 1}]\n"

func TestParseNamesFieldAndLine(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		// the form of the file
		"empty":          {"", "the file is empty: a sale needs id, starts_at, ends_at and items"},
		"only a comment": {"# soon\n", "the file is empty: a sale needs id, starts_at, ends_at and items"},
		"null":           {"~\n", "line 1: a sale is a mapping with id, starts_at, ends_at and items, not nothing: give a value or leave the field out"},
		"a list":         {"- id: s\n", "line 1: a sale is a mapping with id, starts_at, ends_at and items, not a list"},
		"text":           {"double11\n", `line 1: a sale is a mapping with id, starts_at, ends_at and items, not "double11"`},
		"two documents":  {head + oneItem + "---\n" + head, "line 5: a second document begins: one file holds one sale"},
		"broken second":  {head + oneItem + "---\n\"", "line 6: cannot be read as YAML: found unexpected end of stream"},
		"not UTF-8":      {head + "items: [{sku: \xff, stock: 1}]", "line 4: the byte 0xff is not UTF-8 text: save the file as UTF-8"},
		"UTF-16":         {"\xff\xfei\x00d\x00", "line 1: the byte 0xff is not UTF-8 text: save the file as UTF-8"},
		"NUL":            {head + "items: \x00\n", "line 4: the byte 0x00 is not UTF-8 text: save the file as UTF-8"},
		"tab":            {head + "items:\n\t- {sku: a, stock: 1}\n", "line 5: cannot be read as YAML: found character that cannot start any token"},
		"unclosed":       {head + "items: [{sku: a, stock: 1\n", "line 4: cannot be read as YAML: did not find expected ',' or '}'"},
		"bad indent":     {head + "items:\n  - sku: a\n    stock: 1\n   max: 2\n", "line 5: cannot be read as YAML: did not find expected '-' indicator"},
		"colon":          {head + "items: a: b\n", "line 4: cannot be read as YAML: mapping values are not allowed in this context"},
		"no comment":     {head + "items:\n  - sku: \"a\"# small\n    stock: 1\n", "line 5: cannot be read as YAML: found a comment without preceding whitespace"},
		"broken JSON":    {"{\n\t\"id\": \"s\",\n\t\"items\": [}\n", "line 3: cannot be read as JSON: invalid character '}' looking for beginning of value"},
		"JSON and more":  {"{\"id\": \"s\"}\n{}\n", "line 2: cannot be read as JSON: invalid character '{' after top-level value"},
		"nested JSON":    {`{"id":` + strings.Repeat("[", 20_000), "line 1: cannot be read as JSON: invalid character '[' exceeded max depth"},

		"colon in line 1": {"id: a: b\n", "line 1: cannot be read as YAML: mapping values are not allowed in this context"},
		"unclosed line 1": {"{id: a", "line 1: cannot be read as YAML: did not find expected ',' or '}'"},
		"too deep":        {strings.Repeat("[", 20_000), "line 1: cannot be read as YAML: exceeded max depth of 10000"},

		// references
		"unknown alias": {head + "items:\n  - *a\n", `line 5: aliases such as "*a" are not supported: write the value out`},
		"anchor and alias": {head + "items:\n  - &a {sku: a, stock: 1}\n  - *a\n",
			"line 5: anchors such as \"&a\" are not supported: write the value out where it is used\n" +
				"line 6: aliases such as \"*a\" are not supported: write the value out"},
		"merge key":      {head + "items:\n  - {sku: a, <<: {stock: 1}}\n", "line 5: merge keys (<<) are not supported: write the fields out"},
		"tag":            {head + "items: [{sku: !!str 020, stock: 1}]\n", "line 4: tags such as \"!!str\" are not supported: leave the tag out"},
		"tag of a field": {head + "!x items: []\n", "line 4: tags such as \"!x\" are not supported: leave the tag out"},

		// fields
		"nothing given": {"{}", "line 1: id: is missing: give the sale a short name such as double11\n" +
			"line 1: starts_at: is missing: give a time such as 2026-11-11T00:00:00+08:00\n" +
			"line 1: ends_at: is missing: give a time such as 2026-11-11T00:00:00+08:00\n" +
			"line 1: items: is missing: list what is sold"},
		"a slip":         {head + oneItem + "timezome: UTC\n", "line 5: timezome: there is no such field: did you mean timezone?"},
		"swapped":        {head + "items: [{sku: a, stokc: 1, stock: 1}]\n", "line 4: items[0].stokc: there is no such field: did you mean stock?"},
		"half a name":    {head + oneItem + "start: 1\n", "line 5: start: there is no such field: did you mean starts_at?"},
		"capitals":       {head + "items:\n  - SKU: a\n    sku: a\n    stock: 1\n", "line 5: items[0].SKU: there is no such field: did you mean sku?"},
		"unknown":        {head + oneItem + "price: 1\n", "line 5: price: there is no such field: known are id, starts_at, ends_at, timezone, items, stock_from, bought_from, limits, missing, unpaid, waitlist, max_hold, moved_in"},
		"comma":          {head + "items: [{sku: a, stock: 1,000}]\n", "line 4: items[0]: YAML reads the comma in a number such as 1,000 as the end of it: write the number without commas"},
		"hostile name":   {head + oneItem + "\"a.b: \\e[2J\": 1\n", `line 5: ["a.b: \x1b[2J"]: there is no such field: known are id, starts_at, ends_at, timezone, items, stock_from, bought_from, limits, missing, unpaid, waitlist, max_hold, moved_in`},
		"unknown limit":  {head + oneItem + "limits:\n- {per: buyer, every: sale, count: units, max: 1, soft: yes}\n", "line 6: limits[0].soft: there is no such field: known are per, every, max, count, sku, shadow"},
		"shadow yes":     {head + oneItem + "limits:\n- {per: buyer, every: sale, count: units, max: 1, shadow: yes}\n", `line 6: limits[0].shadow: must be true or false, not "yes"`},
		"shadow in text": {head + oneItem + "limits:\n- {per: buyer, every: sale, count: units, max: 1, shadow: \"true\"}\n", `line 6: limits[0].shadow: must be true or false, not "true"`},
		"status":         {head + oneItem + "status: open\n", "line 5: status: a file never changes the status: leave it out and use sale open, pause or close"},
		"twice":          {head + oneItem + "id: t\n", "line 5: id: is given twice, first in line 1"},
		"twice in item":  {head + "items:\n  - sku: a\n    stock: 1\n    sku: a\n", "line 7: items[0].sku: is given twice, first in line 5"},
		"twice in JSON":  {"{\"id\":\"s\",\n\"starts_at\":\"2026-11-11T00:00:00Z\",\"ends_at\":\"2026-11-12T00:00:00Z\",\n\"items\":[{\"sku\":\"a\",\"stock\":1,\n\"\\u0073ku\":\"b\"}]}", "line 4: items[0].sku: is given twice, first in line 3"},
		"region twice":   {head + "items: [{sku: a, regions: {020: 1, \"020\": 2}}]\n", "line 4: items[0].regions.020: is given twice, first in line 4"},
		"name is a list": {head + oneItem + "? [a]\n: 1\n", "line 5: a name before a colon must be text: put it in quotes"},
		"region null":    {head + "items: [{sku: a, regions: {x: 1, ~: 1}}]\n", "line 4: items[0].regions: a name before a colon must be text: put it in quotes"},
		"region true":    {head + "items: [{sku: a, regions: {x: 1, true: 1}}]\n", "line 4: items[0].regions: a name before a colon must be text: put it in quotes"},
		"null field":     {head + oneItem + "limits:\n", "line 5: limits: must be a list, not nothing: give a value or leave the field out"},

		// id, window, time zone
		"id": {strings.Replace(head, "id: s", "id: Double 11", 1) + oneItem,
			`line 1: id: must be 1 to 64 of a-z, 0-9, dot, underscore and hyphen, and begin with a letter or digit, not "Double 11"`},
		"id list":         {strings.Replace(head, "id: s", "id: [s]", 1) + oneItem, "line 1: id: must be text, not a list"},
		"id true":         {strings.Replace(head, "id: s", "id: true", 1) + oneItem, `line 1: id: must be text, not "true": put it in quotes if that is the name`},
		"no zone":         {"id: s\nstarts_at: 2026-11-11T00:00:00\nends_at: 2026-11-12T00:00:00Z\n" + oneItem, `line 2: starts_at: has no zone: add one, as in 2026-11-11T00:00:00+08:00, or Z for UTC, to "2026-11-11T00:00:00"`},
		"a date":          {"id: s\nstarts_at: 2026-11-11\nends_at: 2026-11-12T00:00:00Z\n" + oneItem, `line 2: starts_at: has no zone: add one, as in 2026-11-11T00:00:00+08:00, or Z for UTC, to "2026-11-11"`},
		"a space":         {"id: s\nstarts_at: 2026-11-11 00:00:00+08:00\nends_at: 2026-11-12T00:00:00Z\n" + oneItem, `line 2: starts_at: must be a time such as 2026-11-11T00:00:00+08:00, not "2026-11-11 00:00:00+08:00"`},
		"a comma":         {"id: s\nstarts_at: 2026-11-11T00:00:00,5Z\nends_at: 2026-11-12T00:00:00Z\n" + oneItem, `line 2: starts_at: must be a time such as 2026-11-11T00:00:00+08:00, not "2026-11-11T00:00:00,5Z"`},
		"Unix time":       {"id: s\nstarts_at: 1794326400\nends_at: 2026-11-12T00:00:00Z\n" + oneItem, `line 2: starts_at: must be a time such as 2026-11-11T00:00:00+08:00, not "1794326400"`},
		"time list":       {"id: s\nstarts_at: []\nends_at: 2026-11-12T00:00:00Z\n" + oneItem, `line 2: starts_at: must be a time such as 2026-11-11T00:00:00+08:00, not a list`},
		"no such day":     {"id: s\nstarts_at: 2026-02-30T00:00:00Z\nends_at: 2026-11-12T00:00:00Z\n" + oneItem, `line 2: starts_at: there is no such time: "2026-02-30T00:00:00Z"`},
		"a day off":       {"id: s\nstarts_at: 2026-11-11T00:00:00+24:00\nends_at: 2026-11-12T00:00:00Z\n" + oneItem, "line 2: starts_at: its zone must be whole minutes, less than a day, from UTC"},
		"for ever":        {"id: s\nstarts_at: 2026-11-11T00:00:00Z\nends_at: 9999-12-31T00:00:00Z\n" + oneItem, "line 3: ends_at: must be in the years 1970 to 2099"},
		"year 0":          {"id: s\nstarts_at: 0000-11-11T00:00:00Z\nends_at: 2026-12-31T00:00:00Z\n" + oneItem, "line 2: starts_at: must be in the years 1970 to 2099"},
		"backwards":       {"id: s\nstarts_at: 2026-11-12T00:00:00Z\nends_at: 2026-11-11T00:00:00Z\n" + oneItem, "line 3: ends_at: must be later than starts_at (2026-11-12T00:00:00Z)"},
		"no time at all":  {"id: s\nstarts_at: 2026-11-11T00:00:00+08:00\nends_at: 2026-11-10T16:00:00Z\n" + oneItem, "line 3: ends_at: must be later than starts_at (2026-11-11T00:00:00+08:00)"},
		"Local":           {head + oneItem + "timezone: Local\n", `line 5: timezone: must be an IANA name such as Asia/Shanghai, not "Local": every edge must mean the same zone`},
		"empty zone":      {head + oneItem + "timezone: ''\n", `line 5: timezone: must be an IANA name such as Asia/Shanghai, not "": every edge must mean the same zone`},
		"unknown zone":    {head + oneItem + "timezone: Asia/Peking\n", `line 5: timezone: there is no time zone "Asia/Peking": use an IANA name such as Asia/Shanghai`},
		"zone is a path":  {head + oneItem + "timezone: ../../etc/passwd\n", `line 5: timezone: there is no time zone "../../etc/passwd": use an IANA name such as Asia/Shanghai`},
		"zone is a shift": {head + oneItem + "timezone: +08:00\n", `line 5: timezone: there is no time zone "+08:00": use an IANA name such as Asia/Shanghai`},

		// items
		"no items":              {head + "items: []\n", "line 4: items: must have at least one item"},
		"items mapping":         {head + "items: {sku: a}\n", "line 4: items: must be a list, not a mapping"},
		"item text":             {head + "items:\n  - a\n", `line 5: items[0]: must be a mapping (name: value), not "a"`},
		"no sku":                {head + "items:\n  - stock: 1\n", "line 5: items[0].sku: is missing: name the item"},
		"empty sku":             {head + "items:\n  - {stock: 1, sku: ''}\n", `line 5: items[0].sku: must be 1 to 128 printable ASCII characters without space, not ""`},
		"space in sku":          {head + "items:\n  - {stock: 1, sku: a b}\n", `line 5: items[0].sku: must be 1 to 128 printable ASCII characters without space, not "a b"`},
		"sku not ASCII":         {head + "items:\n  - {stock: 1, sku: 手机}\n", `line 5: items[0].sku: must be 1 to 128 printable ASCII characters without space, not "\u624b\u673a"`},
		"long sku":              {head + "items:\n  - {stock: 1, sku: " + strings.Repeat("a", 129) + "}\n", `line 5: items[0].sku: must be 1 to 128 printable ASCII characters without space, not "` + strings.Repeat("a", 40) + `\u2026"`},
		"an id twice":           {head + "items:\n  - {sku: a, ids: [b, c, b], stock: 1}\n", "line 5: items[0].ids: \"b\" is already the id of items[0]: a name belongs to one item"},
		"an id that is its sku": {head + "items:\n  - {sku: a, ids: [a], stock: 1}\n", "line 5: items[0].ids: \"a\" is already the sku of items[0]: a name belongs to one item"},
		"an id of another item": {head + "items:\n  - {sku: a, ids: [c], stock: 1}\n  - {sku: b, ids: [c], stock: 1}\n", "line 6: items[1].ids: \"c\" is already the id of items[0]: a name belongs to one item"},
		"a sku that is an id":   {head + "items:\n  - {sku: a, ids: [b], stock: 1}\n  - {sku: b, stock: 1}\n", "line 6: items[1].sku: is already the id of items[0]"},
		"no ids":                {head + "items:\n  - {sku: a, ids: [], stock: 1}\n", "line 5: items[0].ids: must have at least one id: leave it out where there is none"},
		"an id with a space":    {head + "items:\n  - {sku: a, ids: [b c], stock: 1}\n", "line 5: items[0].ids: must be 1 to 128 printable ASCII characters without space, not \"b c\""},
		"too many ids":          {head + "items:\n  - {sku: a, ids: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17], stock: 1}\n", "line 5: items[0].ids: must have at most 16 entries, not 17"},
		"ids that are no list":  {head + "items:\n  - {sku: a, ids: b, stock: 1}\n", "line 5: items[0].ids: must be a list, not \"b\""},
		"same sku":              {head + "items:\n  - {sku: 020, stock: 1}\n  - {sku: b, stock: 1}\n  - {sku: \"020\", stock: 1}\n", "line 7: items[2].sku: is already the sku of items[0]"},
		"same cell":             {head + "items:\n  - {sku: a@b, stock: 1}\n  - sku: a\n    regions:\n      c: 1\n      b: 1\n", `line 9: items[1].regions.b: its stock would be called "a@b", as that of items[0]: rename one of them`},
		"no stock":              {head + "items:\n  - {sku: b, stock: 1}\n  - {sku: a}\n", "line 6: items[1]: needs stock (a number of units), regions (units by region) or components (what a bundle is made of)"},
		"both":                  {head + "items:\n  - sku: a\n    stock: 1\n    regions: {b: 1}\n", "line 7: items[0].regions: cannot stand beside stock: give one of them"},
		"no regions":            {head + "items:\n  - {sku: a, regions: {}}\n", "line 5: items[0].regions: must have at least one region"},
		"regions number":        {head + "items:\n  - {sku: a, regions: 5}\n", `line 5: items[0].regions: must be a mapping (name: value), not "5"`},
		"region name":           {head + "items:\n  - sku: a\n    regions:\n      hong kong: 5\n", `line 7: items[0].regions["hong kong"]: must be 1 to 128 printable ASCII characters without space, not "hong kong"`},
		"dotted region":         {head + "items:\n  - sku: a\n    regions:\n      cn.bj: -5\n", `line 7: items[0].regions["cn.bj"]: must not be negative, got "-5"`},
		"region units":          {head + "items:\n  - sku: a\n    regions:\n      bj: many\n", `line 7: items[0].regions.bj: must be a whole number in plain digits such as 1000, not "many"`},
		"too many units":        {head + "items:\n  - {sku: a, stock: 1000000000001}\n", "line 5: items[0].stock: must be 0 to 1000000000000"},
		"huge stock":            {head + "items:\n  - {sku: a, stock: " + strings.Repeat("9", 400) + "}\n", "line 5: items[0].stock: must be 0 to 1000000000000"},
		"min 0":                 {head + "items:\n  - {sku: a, stock: 1, min: 0}\n", "line 5: items[0].min: must be 1 to 10000"},
		"max 0":                 {head + "items:\n  - {sku: a, stock: 1, max: 0}\n", "line 5: items[0].max: must be 1 to 10000"},
		"max too high":          {head + "items:\n  - {sku: a, stock: 1, max: 10001}\n", "line 5: items[0].max: must be 1 to 10000"},
		"max below min":         {head + "items:\n  - sku: a\n    stock: 1\n    min: 3\n    max: 2\n", "line 8: items[0].max: must be at least min (3), not 2"},

		// limits
		"limits mapping": {head + oneItem + "limits: {per: buyer}\n", "line 5: limits: must be a list, not a mapping"},
		"limit text":     {head + oneItem + "limits: [buyer]\n", `line 5: limits[0]: must be a mapping (name: value), not "buyer"`},
		"empty limit": {head + oneItem + "limits:\n  - {}\n", "line 6: limits[0].per: is missing: use buyer, phone, email, address, device or ip, or a list of them\n" +
			"line 6: limits[0].every: is missing: use order, hour, day, week, month or sale\n" +
			"line 6: limits[0].count: is missing: use units or orders\n" +
			"line 6: limits[0].max: is missing: say how many"},
		"a slip in per":      {limited("{per: phon, every: sale, count: units, max: 1}"), `line 6: limits[0].per: "phon" is unknown: did you mean phone?`},
		"a slip in every":    {limited("{per: ip, every: Daily, count: units, max: 1}"), `line 6: limits[0].every: "Daily" is unknown: did you mean day?`},
		"a slip in count":    {limited("{per: ip, every: day, count: order, max: 1}"), `line 6: limits[0].count: "order" is unknown: did you mean orders?`},
		"per mapping":        {limited("{per: {phone: 1}, every: sale, count: units, max: 1}"), "line 6: limits[0].per: must be an identity or a list of them, not a mapping"},
		"per null":           {limited("{per: ~, every: sale, count: units, max: 1}"), "line 6: limits[0].per: must be text, not nothing: give a value or leave the field out"},
		"per joined":         {limited("{per: buyer+phone, every: sale, count: units, max: 1}"), `line 6: limits[0].per: "buyer+phone" is unknown: use buyer, phone, email, address, device or ip`},
		"empty union":        {limited("{per: [], every: sale, count: units, max: 1}"), "line 6: limits[0].per: must have at least one identity: use buyer, phone, email, address, device or ip"},
		"slip in union":      {limited("{every: sale, count: units, max: 1, per: [\n    buyer,\n    adress]}"), `line 8: limits[0].per[1]: "adress" is unknown: did you mean address?`},
		"twice in union":     {limited("{every: sale, count: units, max: 1, per: [\n    phone, buyer,\n    phone]}"), "line 8: limits[0].per[2]: names phone again, after limits[0].per[0]: leave one of them out"},
		"list in union":      {limited("{per: [buyer, [phone]], every: sale, count: units, max: 1}"), "line 6: limits[0].per[1]: must be text, not a list"},
		"true in union":      {limited("{per: [buyer, yes, true], every: sale, count: units, max: 1}"), `line 6: limits[0].per[2]: must be text, not "true": put it in quotes if that is the name` + "\n" + `line 6: limits[0].per[1]: "yes" is unknown: use buyer, phone, email, address, device or ip`},
		"union of seven":     {limited("{per: [buyer, phone, email, address, device, ip, buyer], every: sale, count: units, max: 1}"), "line 6: limits[0].per: must have at most 6 entries, not 7"},
		"orders of an order": {limited("{per: buyer, every: order, count: orders, max: 1}"), "line 6: limits[0].count: an order is never more than one order: use units, or another window than order"},
		"same union": {limited("{per: [phone, buyer], every: day, count: units, max: 1}\n  - {per: [buyer, phone], every: day, count: units, max: 2}"),
			"line 7: limits[1]: is of the same kind as limits[0] (per, every, count and sku): keep one of them"},
		"union of one": {limited("{per: [buyer], every: day, count: units, max: 1}\n  - {per: buyer, every: day, count: units, max: 2}"),
			"line 7: limits[1]: is of the same kind as limits[0] (per, every, count and sku): keep one of them"},
		"missing":          {head + oneItem + "missing: ignore\n", `line 5: missing: "ignore" is unknown: use refuse or skip`},
		"slip in missing":  {head + oneItem + "missing: skipp\n", `line 5: missing: "skipp" is unknown: did you mean skip?`},
		"missing null":     {head + oneItem + "missing:\n", "line 5: missing: must be text, not nothing: give a value or leave the field out"},
		"max_hold number":  {head + oneItem + "max_hold: 30\n", `line 5: max_hold: must be whole hours, minutes or seconds such as 90s, 30m or 1h30m, not "30"`},
		"max_hold 1.5h":    {head + oneItem + "max_hold: 1.5h\n", `line 5: max_hold: must be whole hours, minutes or seconds such as 90s, 30m or 1h30m, not "1.5h"`},
		"max_hold 1d":      {head + oneItem + "max_hold: 1d\n", `line 5: max_hold: must be whole hours, minutes or seconds such as 90s, 30m or 1h30m, not "1d"`},
		"max_hold -5m":     {head + oneItem + "max_hold: -5m\n", `line 5: max_hold: must be whole hours, minutes or seconds such as 90s, 30m or 1h30m, not "-5m"`},
		"max_hold 30s5m":   {head + oneItem + "max_hold: 30s5m\n", `line 5: max_hold: must be whole hours, minutes or seconds such as 90s, 30m or 1h30m, not "30s5m"`},
		"max_hold empty":   {head + oneItem + "max_hold: ''\n", `line 5: max_hold: must be whole hours, minutes or seconds such as 90s, 30m or 1h30m, not ""`},
		"max_hold null":    {head + oneItem + "max_hold:\n", "line 5: max_hold: must be a length of time such as 30m, not nothing: give a value or leave the field out"},
		"max_hold list":    {head + oneItem + "max_hold: [30m]\n", "line 5: max_hold: must be a length of time such as 30m, not a list"},
		"max_hold 0":       {head + oneItem + "max_hold: 0s\n", "line 5: max_hold: must be 3s to 168h in whole seconds"},
		"max_hold short":   {head + oneItem + "max_hold: 2s\n", "line 5: max_hold: must be 3s to 168h in whole seconds"},
		"max_hold long":    {head + oneItem + "max_hold: 168h1s\n", "line 5: max_hold: must be 3s to 168h in whole seconds"},
		"max_hold huge":    {head + oneItem + "max_hold: 999999h\n", "line 5: max_hold: must be 3s to 168h in whole seconds"},
		"unpaid number":    {head + oneItem + "unpaid: 3\n", `line 5: unpaid: must be off or a mapping such as {per: buyer, at_once: 1, ended: 2, within: 1h}, not "3"`},
		"unpaid null":      {head + oneItem + "unpaid:\n", "line 5: unpaid: must be off or a mapping such as {per: buyer, at_once: 1, ended: 2, within: 1h}, not nothing: give a value or leave the field out"},
		"unpaid list":      {head + oneItem + "unpaid: [off]\n", "line 5: unpaid: must be a mapping (name: value), not a list"},
		"unpaid field":     {head + oneItem + "unpaid: {max: 1}\n", "line 5: unpaid.max: there is no such field: known are per, at_once, ended, within"},
		"unpaid per":       {head + oneItem + "unpaid: {per: mother}\n", `line 5: unpaid.per: "mother" is unknown: use buyer, phone, email, address, device or ip`},
		"unpaid per none":  {head + oneItem + "unpaid: {per: []}\n", "line 5: unpaid.per: must have at least one identity: use buyer, phone, email, address, device or ip"},
		"unpaid per twice": {head + oneItem + "unpaid: {per: [ip, buyer, ip]}\n", "line 5: unpaid.per[2]: names ip again, after unpaid.per[0]: leave one of them out"},
		"unpaid at_once":   {head + oneItem + "unpaid: {at_once: 0}\n", "line 5: unpaid.at_once: must be 1 to 100"},
		"unpaid ended":     {head + oneItem + "unpaid: {ended: 101}\n", "line 5: unpaid.ended: must be 1 to 100"},
		"unpaid within":    {head + oneItem + "unpaid: {within: 169h}\n", "line 5: unpaid.within: must be 1s to 168h in whole seconds"},
		"unpaid within 0":  {head + oneItem + "unpaid: {within: 0s}\n", "line 5: unpaid.within: must be 1s to 168h in whole seconds"},
		"missing in limit": {limited("{per: buyer, every: day, count: units, max: 1, missing: skip}"),
			"line 6: limits[0].missing: there is no such field: known are per, every, max, count, sku, shadow"},
		"unknown per":  {limited("{per: mother, every: sale, count: units, max: 1}"), `line 6: limits[0].per: "mother" is unknown: use buyer, phone, email, address, device or ip`},
		"every year":   {limited("{per: buyer, every: year, count: units, max: 1}"), `line 6: limits[0].every: "year" is unknown: use order, hour, day, week, month or sale`},
		"count money":  {limited("{per: buyer, every: sale, count: money, max: 1}"), `line 6: limits[0].count: "money" is unknown: use units or orders`},
		"max of none":  {limited("{per: buyer, every: sale, count: units, max: 0}"), "line 6: limits[0].max: must be 1 to 1000000000000"},
		"max text":     {limited("{per: buyer, every: sale, count: units, max: two}"), `line 6: limits[0].max: must be a whole number in plain digits such as 1000, not "two"`},
		"unknown item": {limited("{per: buyer, every: sale, count: units, max: 1, sku: b}"), `line 6: limits[0].sku: no item of this sale has the sku "b"`},
		"same kind": {limited("{per: buyer, every: sale, count: units, max: 1, sku: a}\n  - {sku: a, count: units, max: 2, every: sale, per: buyer}"),
			"line 7: limits[1]: is of the same kind as limits[0] (per, every, count and sku): keep one of them"},
		"too many limits": {head + oneItem + "limits:" + strings.Repeat("\n  - {per: buyer, every: sale, count: units, max: 1}", 17) + "\n",
			"line 6: limits: must have at most 16 entries, not 17"},

		// several at once, by line
		"all of it": {"id: UP\nstarts_at: soon\nitems:\n  - {sku: a, stock: 1.5, max: 2, min: 3}\n  - {sku: a}\nlimits:\n  - {per: person, every: sale, count: units, max: 1}\n",
			`line 1: id: must be 1 to 64 of a-z, 0-9, dot, underscore and hyphen, and begin with a letter or digit, not "UP"` + "\n" +
				"line 1: ends_at: is missing: give a time such as 2026-11-11T00:00:00+08:00\n" +
				`line 2: starts_at: must be a time such as 2026-11-11T00:00:00+08:00, not "soon"` + "\n" +
				`line 4: items[0].stock: must be a whole number in plain digits such as 1000, not "1.5"` + "\n" +
				"line 4: items[0].max: must be at least min (3), not 2\n" +
				"line 5: items[1].sku: is already the sku of items[0]\n" +
				"line 5: items[1]: needs stock (a number of units), regions (units by region) or components (what a bundle is made of)\n" +
				`line 7: limits[0].per: "person" is unknown: use buyer, phone, email, address, device or ip`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := sale.Parse([]byte(test.text))
			if err == nil {
				t.Fatalf("took it: %+v", s)
			}
			if got := err.Error(); got != test.want {
				t.Errorf("\ngot  %s\nwant %s", got, test.want)
			}
			if _, ok := errors.AsType[sale.Problems](err); !ok {
				t.Errorf("the error is %T, not Problems", err)
			}
		})
	}
}

func limited(limit string) string { return head + oneItem + "limits:\n  - " + limit + "\n" }

func TestNumbersArePlain(t *testing.T) {
	for _, text := range []string{
		"1_000", "0x10", "0o17", "0b1", "010", "00", "1e3", "1.0", "1.", ".5", "+5", "-0", "-1", "1 000", "1,5", ".inf", ".nan", "~", "true", "five",
		`"5"`, "'5'", "２", "2026-11-11", "[5]", "{}", "0777777777777777777777", "1000 units",
	} {
		s, err := sale.Parse([]byte(head + "items:\n  - sku: a\n    stock: " + text + "\n"))
		if err == nil {
			t.Errorf("stock: %s is taken as %d", text, s.Items[0].Stock)
			continue
		}
		if want := "line 6: items[0].stock: must "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("stock: %s: got %q, want %q…", text, err, want)
		}
	}
	for _, text := range []string{"-1", "1.0", "1e3", `"5"`, "null", "true", "[]", "1E400"} {
		json := `{"id":"s","starts_at":"2026-11-11T00:00:00Z","ends_at":"2026-11-12T00:00:00Z","items":[{"sku":"a","stock":` + text + `}]}`
		if s, err := sale.Parse([]byte(json)); err == nil {
			t.Errorf("JSON stock %s is taken as %d", text, s.Items[0].Stock)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(head + "items:\n")
	for range 500 {
		b.WriteString("  - {}\n")
	}
	_, err := sale.Parse([]byte(b.String()))
	problems, ok := errors.AsType[sale.Problems](err)
	if !ok {
		t.Fatal(err)
	}
	if last := problems[len(problems)-1].String(); len(problems) != 101 || last != "and 900 more" {
		t.Errorf("%d problems, the last is %q", len(problems), last)
	}
	_, err = sale.Parse(make([]byte, sale.MaxFile+1))
	if want := "the file has more than 16 MiB: split the sale"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAliasesCannotMultiply(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	_, err := sale.Parse([]byte(b.String()))
	if err == nil || !strings.HasPrefix(err.Error(), "line 1: anchors such as \"&a0\" are not supported") {
		t.Errorf("got %v", err)
	}
}

func TestValidateGoValues(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*sale.Sale)
		want   string
	}{
		"valid": {func(*sale.Sale) {}, ""},
		"nothing": {func(s *sale.Sale) { *s = sale.Sale{} },
			"id: is missing: give the sale a short name such as double11\n" +
				"starts_at: is missing: give a time such as 2026-11-11T00:00:00+08:00\n" +
				"ends_at: is missing: give a time such as 2026-11-11T00:00:00+08:00\n" +
				"items: must have at least one item"},
		"id":           {func(s *sale.Sale) { s.ID = "a\n" }, `id: must be 1 to 64 of a-z, 0-9, dot, underscore and hyphen, and begin with a letter or digit, not "a\n"`},
		"long id":      {func(s *sale.Sale) { s.ID = strings.Repeat("a", 65) }, `id: must be 1 to 64 of a-z, 0-9, dot, underscore and hyphen, and begin with a letter or digit, not "` + strings.Repeat("a", 40) + `\u2026"`},
		"odd offset":   {func(s *sale.Sale) { s.StartsAt = s.StartsAt.In(time.FixedZone("LMT", 29143)) }, "starts_at: its zone must be whole minutes, less than a day, from UTC"},
		"both":         {func(s *sale.Sale) { s.Items[1].Stock = 1 }, "items[1].regions: cannot stand beside stock: give one of them"},
		"no stock":     {func(s *sale.Sale) { s.Items[0].Stock = 0 }, ""},
		"negative":     {func(s *sale.Sale) { s.Items[0].Stock = -1 }, "items[0].stock: must be 0 to 1000000000000"},
		"bad region":   {func(s *sale.Sale) { s.Items[1].Regions["bei jing"] = -1 }, "items[1].regions[\"bei jing\"]: must be 0 to 1000000000000\nitems[1].regions[\"bei jing\"]: must be 1 to 128 printable ASCII characters without space, not \"bei jing\""},
		"empty region": {func(s *sale.Sale) { s.Items[1].Regions[""] = 1 }, `items[1].regions[""]: must be 1 to 128 printable ASCII characters without space, not ""`},
		"negative min": {func(s *sale.Sale) { s.Items[0].Min = -1 }, "items[0].min: must be 1 to 10000"},
		"same cell":    {func(s *sale.Sale) { s.Items[0].SKU = "20002002@beijing"; s.Limits = nil }, `items[1].regions.beijing: its stock would be called "20002002@beijing", as that of items[0]: rename one of them`},
		"limit":        {func(s *sale.Sale) { s.Limits[0] = sale.Limit{Per: "buyer", Every: "sale", Count: "units"} }, "limits[0].max: must be 1 to 1000000000000"},
		"union":        {func(s *sale.Sale) { s.Limits[0].Per = "phone+buyer" }, ""},
		"bad union":    {func(s *sale.Sale) { s.Limits[0].Per = "buyer+fax+buyer" }, "limits[0].per[1]: \"fax\" is unknown: use buyer, phone, email, address, device or ip\nlimits[0].per[2]: names buyer again, after limits[0].per[0]: leave one of them out"},
		"loose plus":   {func(s *sale.Sale) { s.Limits[0].Per = "buyer+" }, "limits[0].per[1]: \"\" is unknown: use buyer, phone, email, address, device or ip"},
		"missing":      {func(s *sale.Sale) { s.Missing = "maybe" }, `missing: "maybe" is unknown: use refuse or skip`},
		"skip":         {func(s *sale.Sale) { s.Missing = sale.SkipMissing }, ""},
		"same kind":    {func(s *sale.Sale) { s.Limits[1] = s.Limits[0] }, "limits[1]: is of the same kind as limits[0] (per, every, count and sku): keep one of them"},
		"many limits":  {func(s *sale.Sale) { s.Limits = make([]sale.Limit, 17) }, "limits: must have at most 16 entries, not 17"},
		"many items":   {func(s *sale.Sale) { s.Items = make([]sale.Item, sale.MaxItems+1) }, "items: must have at most 100000 entries, not 100001"},
		"many cells": {func(s *sale.Sale) {
			for i := range sale.MaxItems {
				s.Items[1].Regions[fmt.Sprint(i)] = 1
			}
		}, "items: must have at most 100000 stock cells, not 100003"},
	} {
		t.Run(name, func(t *testing.T) {
			s := double11Value()
			test.change(&s)
			got := ""
			if err := s.Validate(); err != nil {
				got = err.Error()
			}
			if name == "many items" || name == "many limits" {
				got, _, _ = strings.Cut(got, "\n")
			}
			if got != test.want {
				t.Errorf("\ngot  %s\nwant %s", got, test.want)
			}
			made, err := sale.New(s)
			if (err == nil) != (test.want == "") || (made == nil) != (err != nil) {
				t.Errorf("New disagrees with Validate: %v, %v", made, err)
			}
		})
	}
}
