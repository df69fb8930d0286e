package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Binaries are the absolute paths of built binaries, which commas separate.
func Binaries(list string) (paths []string, err error) {
	for _, name := range strings.Split(list, ",") {
		path, err := filepath.Abs(name)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%w; build it first: make build, or scripts/build-last for the last version", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
