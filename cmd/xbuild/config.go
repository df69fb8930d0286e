package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

var (
	caddyVersions = regexp.MustCompile(`^(latest|v2\.\d+\.\d+(-[0-9A-Za-z.-]+)?)$`)
	modulePaths   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)+$`)
	versions      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)
	releases      = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+incompatible)?$`)
)

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
		dir := d.Replace
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(name), dir)
		}
		if c.Dependencies[i].Replace, err = moduleDir(dir); err != nil {
			return c, fmt.Errorf("%s: dependencies[%d]: replace: %w", name, i, err)
		}
	}
	return c, nil
}

// parseConfig reads the JSON text of a config. An unknown field is an error: a misspelt
// name would silently build something else.
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
	if !caddyVersions.MatchString(c.CaddyVersion) {
		return c, fmt.Errorf("caddy_version is %q: name a release of Caddy 2, as v2.11.9, or latest", c.CaddyVersion)
	}
	seen := map[string]bool{}
	for i, d := range c.Dependencies {
		if err := d.check(); err != nil {
			return c, fmt.Errorf("dependencies[%d]: %w", i, err)
		}
		if seen[d.Module] {
			return c, fmt.Errorf("dependencies[%d]: %s is listed twice", i, d.Module)
		}
		seen[d.Module] = true
	}
	return c, nil
}

func (d dependency) check() error {
	switch {
	case !modulePaths.MatchString(d.Module):
		return fmt.Errorf("module is %q: name a Go module, as github.com/stockgate/stockgate", d.Module)
	case d.Version == "" && d.Replace == "":
		return fmt.Errorf("%s has no version: name one, as v1.2.3 or latest, or a directory to replace it", d.Module)
	case d.Version != "" && !versions.MatchString(d.Version):
		return fmt.Errorf("version of %s is %q: name a release, a branch, a commit, or latest", d.Module, d.Version)
	}
	return nil
}

// parseWith reads a --with flag, written as xcaddy writes it:
// module[@version][=directory], the directory relative to where xbuild runs.
func parseWith(s string) (dependency, error) {
	var d dependency
	module, dir, replaced := strings.Cut(s, "=")
	var versioned bool
	d.Module, d.Version, versioned = strings.Cut(module, "@")
	switch {
	case replaced && dir == "":
		return d, fmt.Errorf("%q names no directory after the =", s)
	case versioned && d.Version == "":
		return d, fmt.Errorf("%q names no version after the @", s)
	case !replaced && !versioned:
		d.Version = "latest"
	}
	d.Replace = dir
	if err := d.check(); err != nil {
		return d, err
	}
	if replaced {
		var err error
		if d.Replace, err = moduleDir(dir); err != nil {
			return d, err
		}
	}
	return d, nil
}

// moduleDir checks that a directory holds a Go module; it returns the absolute
// path.
func moduleDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("the directory must hold a Go module: %w", err)
	}
	return dir, nil
}

// add adds a dependency from the command line; it replaces one with the same module.
func (c *config) add(d dependency) {
	for i := range c.Dependencies {
		if c.Dependencies[i].Module == d.Module {
			c.Dependencies[i] = d
			return
		}
	}
	c.Dependencies = append(c.Dependencies, d)
}
