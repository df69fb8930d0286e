package strictjson_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/strictjson"
)

type order struct {
	ID    string            `json:"id"`
	Delta int64             `json:"delta"`
	Dry   bool              `json:"dry_run,omitempty"`
	Lines []line            `json:"lines"`
	Names map[string]string `json:"names"`
	Raw   json.RawMessage   `json:"raw"`
	At    time.Time         `json:"at"`
	Plain int
	base
	hidden int
	Never  int `json:"-"`
}

type line struct {
	SKU string `json:"sku"`
	Qty *int64 `json:"qty"`
}

type base struct {
	Ref string `json:"ref"`
}

// readOrder reads an order field by field.
func readOrder(raw string, o *order) error {
	return strictjson.Read([]byte(raw), func(r *strictjson.Reader) error {
		return r.Object(strictjson.Members{
			"id": strictjson.Text(&o.ID), "delta": strictjson.Integer(&o.Delta), "dry_run": strictjson.Flag(&o.Dry),
			"lines": func(r *strictjson.Reader) error {
				return r.Array(func(int) error {
					l := line{Qty: new(int64)}
					err := r.Object(strictjson.Members{"sku": strictjson.Text(&l.SKU), "qty": strictjson.Integer(l.Qty)}, "sku")
					o.Lines = append(o.Lines, l)
					return err
				})
			},
			"open": func(r *strictjson.Reader) error {
				return r.OpenObject(strictjson.Members{"a": strictjson.Text(&o.Ref)})
			},
			"even": func(r *strictjson.Reader) error {
				var n int64
				if err := strictjson.Integer(&n)(r); err != nil || n%2 == 0 {
					return err
				}
				return errOdd
			},
		}, "id")
	})
}

var errOdd = errors.New("must be even")

func TestReadTakesPlainJSON(t *testing.T) {
	var got order
	err := readOrder(` {"dry_run":true, "lines":[{"sku":"a\ud83d\ude00","qty":-3},{"sku":"\\ud800"}],"id":"x","delta":9223372036854775807,"open":{"a":"b","c":{"d":[1,{}]}},"even":2} `, &got)
	if err != nil || got.ID != "x" || !got.Dry || got.Delta != 1<<63-1 || got.Ref != "b" ||
		len(got.Lines) != 2 || got.Lines[0].SKU != "a😀" || *got.Lines[0].Qty != -3 || got.Lines[1].SKU != `\ud800` {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	for raw, want := range map[string]string{
		``:                                       "it must be one JSON object",
		`nonsense`:                               "it must be one JSON object",
		`[]`:                                     "it must be one JSON object",
		`null`:                                   "it is null: give a value or leave the field out",
		`{"id":"x"`:                              "the JSON cannot be read: EOF",
		`{"id":"x",}`:                            "the JSON cannot be read: invalid character '}'",
		`{"id":"x"]`:                             "the JSON cannot be read: invalid character ']'",
		`{"id":"x"}{}`:                           "something follows: give no more than one JSON value",
		`{"id":"x"} ]`:                           "something follows: give no more than one JSON value",
		"{\"id\":\"\xff\"}":                      "the JSON is not UTF-8",
		`{}`:                                     "id is missing",
		`{"id":"x","id":"x"}`:                    "id is given twice",
		`{"id":"x","\u0069d":"y"}`:               "id is given twice",
		`{"id":"x","Id":"y"}`:                    `there is no field "Id"; known are delta, dry_run, even, id, lines, open`,
		`{"id":null}`:                            "id is null: give a value or leave the field out",
		`{"id":1}`:                               "id must be text",
		`{"id":"\ud800"}`:                        "id has half of a surrogate pair",
		`{"id":"\uDC00\ud800"}`:                  "id has half of a surrogate pair",
		`{"id":"\ud800\u0041"}`:                  "id has half of a surrogate pair",
		`{"id":"\\\ud800"}`:                      "id has half of a surrogate pair",
		`{"id":"x","\udfff":1}`:                  "it has half of a surrogate pair",
		`{"delta":"1"}`:                          "delta must be a whole number",
		`{"delta":1.0}`:                          "delta must be a whole number",
		`{"delta":1e2}`:                          "delta must be a whole number",
		`{"delta":9223372036854775808}`:          "delta must be a whole number",
		`{"dry_run":"no"}`:                       "dry_run must be true or false",
		`{"even":3}`:                             "even must be even",
		`{"lines":{}}`:                           "lines must be a list",
		`{"lines":null}`:                         "lines is null: give a value or leave the field out",
		`{"lines":[`:                             "the JSON cannot be read: EOF",
		`{"lines":[1]}`:                          "lines number 1: it must be one JSON object",
		`{"lines":[{"sku":"a"},{}]}`:             "lines number 2: sku is missing",
		`{"lines":[{"sku":"a","qty":null}]}`:     "lines number 1: qty is null: give a value or leave the field out",
		`{"lines":[{"sku":"a","sku":"b"}]}`:      "lines number 1: sku is given twice",
		`{"lines":[{"sku":"a","SKU":"b"}]}`:      `lines number 1: there is no field "SKU"; known are qty, sku`,
		`{"open":{"a":"b","a":"c"}}`:             "open.a is given twice",
		`{"open":{"b c":1,"b c":2}}`:             `open."b c" is given twice`,
		`{"open":{"x":{"y":[0,{"z":1,"z":2}]}}}`: "open.x.y number 2: z is given twice",
		`{"open":{"x":[[1,"\ud800"]]}}`:          "open.x number 1 number 2 has half of a surrogate pair",
		`{"open":{"x":` + strings.Repeat("[", 5000): "open.x" + strings.Repeat(" number 1", 16) + " is nested too deep",
	} {
		err := readOrder(raw, new(order))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", raw, err, want)
		}
	}
	if err := readOrder(`{"even":1}`, new(order)); !errors.Is(err, errOdd) {
		t.Errorf("%v does not wrap the caller's error", err)
	}
}

func TestUnmarshalReadsAsEncodingJSON(t *testing.T) {
	for _, raw := range []string{
		`{}`, `null`,
		`{"id":"x","delta":-5,"dry_run":true,"lines":[{"sku":"a","qty":1},{"sku":"b","qty":null}],"names":{"A":"1","a":"2"},"Plain":3,"ref":"r"}`,
		`{"raw":{"any":["thing",{"A":1,"a":2}]},"at":"2026-11-11T00:00:00Z","lines":null,"names":null,"id":null}`,
	} {
		got, want := order{hidden: 1}, order{hidden: 1}
		if err := strictjson.Unmarshal([]byte(raw), &got); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if err := json.Unmarshal([]byte(raw), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, encoding/json reads %+v (%v)", raw, got, want, err)
		}
	}
}

func TestUnmarshalSaysWhatIsWrong(t *testing.T) {
	const known = "known are Plain, at, delta, dry_run, id, lines, names, raw, ref"
	for raw, want := range map[string]string{
		``:                                  "the JSON cannot be read: EOF",
		`{"delta":5,"delta":-3}`:            "delta is given twice",
		`{"dry_run":true,"Dry_Run":false}`:  `there is no field "Dry_Run"; ` + known,
		`{"dry_run":true,"dry\u005frun":0}`: "dry_run is given twice",
		`{"DELTA":5}`:                       `there is no field "DELTA"; ` + known,
		`{"Never":5}`:                       `there is no field "Never"; ` + known,
		`{"-":5}`:                           `there is no field "-"; ` + known,
		`{"hidden":5}`:                      `there is no field "hidden"; ` + known,
		`{"base":{"ref":"r"}}`:              `there is no field "base"; ` + known,
		`{"lines":[{"sku":"a"},{"Sku":1}]}`: `lines number 2: there is no field "Sku"; known are qty, sku`,
		`{"names":{"a":"1","a":"2"}}`:       "names.a is given twice",
		`{"raw":{"a":{"b":1,"b":2}}}`:       "raw.a.b is given twice",
		`{"raw":"\ud800"}`:                  "raw has half of a surrogate pair",
		`{"delta":1.5}`:                     "delta cannot be read: it must be a whole number",
		`{"dry_run":1}`:                     "dry_run cannot be read: it must be true or false",
		`{"id":1}`:                          "id cannot be read: it must be text",
		`{"lines":{}}`:                      "lines cannot be read: it must be a list",
		`{"names":[]}`:                      "names cannot be read: it must be an object",
		`[]`:                                "it cannot be read: it must be an object",
		`{"at":"never"}`:                    "the JSON cannot be read: ",
		`{}{}`:                              "something follows: give no more than one JSON value",
	} {
		if err := strictjson.Unmarshal([]byte(raw), new(order)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}
