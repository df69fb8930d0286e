package reference_test

import (
	"flag"
	"testing"

	"github.com/stockgate/stockgate/internal/test/reference"
)

var update = flag.Bool("update", false, "write the generated parts of docs")

const root = "../../../"

// The options and metrics in docs are those of the source: `make docs` writes them.
func TestReference(t *testing.T) {
	options, err := reference.Options(root)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := reference.Metrics(root)
	if err != nil {
		t.Fatal(err)
	}
	for page, parts := range map[string]reference.Parts{
		"docs/configure.md": options,
		"docs/metrics.md":   {"metrics": metrics},
	} {
		if err := parts.Check(root+page, *update); err != nil {
			t.Error(err)
		}
	}
}
