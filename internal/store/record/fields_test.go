package record_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/store/record"
)

// The scripts and this package have a record's fields at the same positions.
func TestFieldsAreThoseOfTheScripts(t *testing.T) {
	source, err := os.ReadFile("../../../lua/changes.lua")
	if err != nil {
		t.Fatal(err)
	}
	positions := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^local ([A-Z_, ]+) = ([0-9, ]+)$`).FindAllStringSubmatch(string(source), -1) {
		numbers := strings.Split(m[2], ", ")
		for i, name := range strings.Split(m[1], ", ") {
			n, err := strconv.Atoi(numbers[i])
			if err != nil {
				t.Fatal(err)
			}
			positions[name] = n
		}
	}
	fields := map[string]record.Field{
		"STATE": record.FieldState, "DEADLINE": record.FieldDeadline, "EXP": record.FieldExp, "CREATED": record.FieldCreated,
		"CHANGED": record.FieldChanged, "MODE": record.FieldMode, "BUYER": record.FieldBuyer, "LINES": record.FieldLines,
		"CHARGES": record.FieldCharges, "CAUSE": record.FieldCause, "VERSION": record.FieldVersion, "GUARD": record.FieldGuard,
		"PRINT": record.FieldPrint, "KEY_TTL": record.FieldKeyTTL, "REF": record.FieldRef, "GATE": record.FieldGate,
		"RETURNED": record.FieldReturned, "PROBES": record.FieldProbes, "UNPAID": record.FieldUnpaid,
	}
	if len(fields) != int(record.Fields) || positions["FIELDS"] != len(fields) {
		t.Errorf("records have %d fields here, %d in the scripts, %d in this test", record.Fields, positions["FIELDS"], len(fields))
	}
	for name, field := range fields {
		if positions[name] != int(field)+1 {
			t.Errorf("%s is field %d in the scripts, %d here", name, positions[name], field+1)
		}
	}
}
