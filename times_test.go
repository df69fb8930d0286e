package stockgate_test

import (
	"os"
	"regexp"
	"testing"
)

var useOfTime = regexp.MustCompile(`\btiming\.\w+\.(\w+)\b`)

// Only tests set the times of package timing; all else reads them, or calls.
func TestOnlyTestsSetTimes(t *testing.T) {
	uses := 0
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
					uses++
				case "Set":
					t.Errorf("%s sets a time that only tests may set: %s", name, use[0])
				}
			}
		}
	}
	if uses < 15 {
		t.Errorf("only %d uses of times found", uses)
	}
}
