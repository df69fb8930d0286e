package stockgate_test

import (
	"os"
	"regexp"
	"testing"
)

var useOfTime = regexp.MustCompile(`\btiming\.\w+\.(\w+)\b`)

// Only tests set the times of package timing; all else reads them.
func TestOnlyTestsSetTimes(t *testing.T) {
	reads := 0
	for dir, files := range sources(t) {
		if isTestRoom(dir) {
			continue
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range useOfTime.FindAllStringSubmatch(string(text), -1) {
				switch use[1] {
				case "Now", "Call":
					reads++
				case "Set":
					t.Errorf("%s sets a time that only tests may set: %s", name, use[0])
				}
			}
		}
	}
	if reads < 15 {
		t.Errorf("only %d reads of times found", reads)
	}
}
