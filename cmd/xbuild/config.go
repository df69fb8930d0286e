package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// config is what xcaddy.json says.
type config struct {
	// CaddyVersion is a release of Caddy 2, as v2.11.9, or latest.
	CaddyVersion string `json:"caddy_version"`
	// Dependencies are the Go modules compiled in.
	Dependencies []dependency `json:"dependencies"`
	// Expect lists ids of Caddy modules that the result must have.
	Expect []string `json:"expect,omitempty"`
}

// dependency is one Go module that registers Caddy modules.
type dependency struct {
	// Module is its path, as github.com/stockgate/stockgate.
	Module string `json:"module"`
	// Version is a release, a branch, a commit, or latest. It is not needed
	// beside Replace.
	Version string `json:"version,omitempty"`
	// Replace is a directory to build the module from, relative to the file
	// that names it.
	Replace string `json:"replace,omitempty"`
}

// readConfig reads and checks a file. Directories in it become absolute.
func readConfig(name string) (config, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return config{}, fmt.Errorf("read what to build: %w", err)
	}
	c, err := parseConfig(text)
	if err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	for i, d := range c.Dependencies {
		if d.Replace == "" {
			continue
		}
		if !filepath.IsAbs(d.Replace) {
			d.Replace = filepath.Join(filepath.Dir(name), d.Replace)
		}
		if d.Replace, err = filepath.Abs(d.Replace); err == nil {
			_, err = os.Stat(filepath.Join(d.Replace, "go.mod"))
		}
		if err != nil {
			return c, fmt.Errorf("%s: dependencies[%d]: replace: the directory must hold a Go module: %w", name, i, err)
		}
		c.Dependencies[i] = d
	}
	return c, nil
}

// parseConfig reads the JSON text of a config. What it does not know is an error: a misspelt
// name would silently build something else. Module paths and versions are left to the go tool.
func parseConfig(text []byte) (config, error) {
	var c config
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return c, errors.New("there is more after the JSON object: remove it")
	}
	if c.CaddyVersion != "latest" && !releases.MatchString(c.CaddyVersion) {
		return c, fmt.Errorf("caddy_version is %q: name a release of Caddy 2, as v2.11.9, or latest", c.CaddyVersion)
	}
	seen := map[string]bool{}
	for i, d := range c.Dependencies {
		switch {
		case d.Module == "":
			return c, fmt.Errorf("dependencies[%d]: module is missing: name a Go module, as github.com/stockgate/stockgate", i)
		case d.Version == "" && d.Replace == "":
			return c, fmt.Errorf("dependencies[%d]: %s has no version: name one, as v1.2.3 or latest, or a directory to replace it", i, d.Module)
		case seen[d.Module]:
			return c, fmt.Errorf("dependencies[%d]: %s is listed twice", i, d.Module)
		}
		seen[d.Module] = true
	}
	return c, nil
}
