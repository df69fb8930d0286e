package directive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.yaml.in/yaml/v4"
)

// mostTexts bounds a file of texts, in bytes.
const mostTexts = 1 << 20

// readTexts reads a file of texts, whose path is relative to the Caddyfile, as for import.
func readTexts(d *caddyfile.Dispenser, path string) (map[string]map[string]string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(d.File()), path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostTexts+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > mostTexts:
		return nil, fmt.Errorf("it has more than %d KiB", mostTexts>>10)
	}
	return parseTexts(text)
}

// parseTexts reads one document of YAML, or of JSON, which is YAML but for tabs.
func parseTexts(text []byte) (texts map[string]map[string]string, err error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&texts); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w; write texts by reason below each language, such as `de: {sold_out: Ausverkauft.}`", err)
	}
	if len(texts) == 0 {
		return nil, errors.New("it has no texts: write them by reason below each language, such as `de: {sold_out: Ausverkauft.}`")
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("a second document begins: write all languages in one")
	}
	return texts, nil
}
