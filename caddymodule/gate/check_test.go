package gate_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/gate/check"
	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/internal/strictjson"
)

// TestCheckHasTheOptionsOfTheGate: the JSON of a check with every option is that of a gate
// with the same ones. No option of the gate hides one of theirs.
func TestCheckHasTheOptionsOfTheGate(t *testing.T) {
	var check check.Check
	fill(reflect.ValueOf(&check.AttemptOptions).Elem())
	text, err := json.Marshal(&check)
	if err != nil {
		t.Fatal(err)
	}
	var whole gate.Gate
	if err := strictjson.Unmarshal(text, &whole); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if again, err := json.Marshal(&whole); err != nil || string(again) != string(text) {
		t.Errorf("the check is %s, the gate %s, %v", text, again, err)
	}
	if n := len(whole.AttemptOptions.Sale); n != 1 {
		t.Errorf("the gate has %d values of sale", n)
	}
	var top map[string]any
	fields := slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[option.AttemptOptions]()), func(f reflect.StructField) bool { return f.Anonymous })
	if err := json.Unmarshal(text, &top); err != nil || len(top) != len(fields) {
		t.Errorf("the JSON has %d options: %s", len(top), text)
	}
}

// fill gives every field a value that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8: // of raw JSON
		v.SetUint('7')
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), one)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	default:
		panic("no value of kind " + v.Kind().String())
	}
}
