package gate_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/gate"
)

// TestCheckHasTheOptionsOfTheGate: a check has the gate's options except for those about
// reservations, with the same names and types, and loses none of them on the way to its
// gate and back.
func TestCheckHasTheOptionsOfTheGate(t *testing.T) {
	without := []string{"Check", "Ref", "RefShared", "Repeats", "Idempotency", "IdempotencyTTL", "Outcome", "Answers", "Rules", "InDoubt",
		"HoldFor", "ForwardTimeout", "MaxInFlight", "ExitsAs"}
	whole, check := reflect.TypeFor[gate.Gate](), reflect.TypeFor[gate.Check]()
	full := new(gate.Gate)
	for _, f := range reflect.VisibleFields(whole) {
		if !f.IsExported() {
			continue
		}
		mine, has := check.FieldByName(f.Name)
		if has == slices.Contains(without, f.Name) || has && (mine.Type != f.Type || mine.Tag != f.Tag) {
			t.Errorf("%s: the gate has %v, the check %v", f.Name, f, mine)
		}
		if has {
			fill(reflect.ValueOf(full).Elem().FieldByName(f.Name))
		}
	}
	full.Check = true
	if got := gate.GateOfCheck(full); !reflect.DeepEqual(got, full) {
		t.Errorf("%+v becomes %+v", full, got)
	}
}

// fill gives a value that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	default:
		panic("no value of kind " + v.Kind().String())
	}
}
